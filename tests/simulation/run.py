"""One seed, one run: play it, judge it, and where it fails find the least of its plan that still does."""

import hashlib
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec
import trio

from tests.simulation.plan import Plan, draw
from tests.simulation.schedule import Steps, run_alike
from tests.simulation.world import World


class Outcome(msgspec.Struct):
    """What a run was."""

    seed: int
    steps: int
    """Steps of the plan that were played."""
    fault: str | None = None
    virtual_s: float = 0.0
    real_s: float = 0.0
    struck: Counter[str] = msgspec.field(default_factory=Counter)
    checks: Counter[str] = msgspec.field(default_factory=Counter)
    accepted: int = 0
    digest: str = ""
    trace: list[str] = msgspec.field(default_factory=list)


def play(plan: Plan) -> Outcome:
    """Run a plan. What goes wrong stands in `fault`."""
    outcome = Outcome(plan.seed, len(plan.steps))
    began = time.perf_counter()

    with tempfile.TemporaryDirectory(prefix="turret-simulation-") as folder:

        async def main(steps: Steps) -> None:
            world = World(plan, steps, Path(folder))
            try:
                await world.play()
                if world.ledger.fault is not None:
                    raise world.ledger.fault
            except Exception as error:
                outcome.fault = said(world.ledger.fault or error)
            outcome.virtual_s = trio.current_time()
            outcome.struck, outcome.checks = world.struck, world.ledger.checks
            outcome.accepted = sum(len(call.rows) for call in world.ledger.calls.values())
            outcome.trace = world.trace

        try:
            run_alike(plan.seed, main)
        except Exception as error:
            outcome.fault = outcome.fault or said(error)
    outcome.real_s = time.perf_counter() - began
    outcome.digest = hashlib.sha256("\n".join(outcome.trace).encode()).hexdigest()[:16]
    return outcome


def said(error: BaseException) -> str:
    """The first fault within a group, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def plan_of(seed: int, steps: int | None = None, only: Collection[int] | None = None) -> Plan:
    """The plan of a seed, cut to its first steps, or to some of them."""
    plan = draw(seed)
    if only is not None:
        return plan.only(frozenset(only))
    return plan if steps is None else plan.only(range(steps))


def shrink(seed: int, runs: int = 80) -> tuple[list[int], Outcome]:
    """Fewer steps of a failing seed's plan that fail in the same way: their indexes, and how.

    Leaves out halves, quarters, … single ones, within a number of runs.
    """
    kept = list(range(len(draw(seed).steps)))
    outcome = play(plan_of(seed))
    kind = _kind(outcome.fault)
    size = max(1, len(kept) // 2)
    while runs > 0:
        smaller = False
        for start in range(0, len(kept), size):
            trial = kept[:start] + kept[start + size :]
            runs -= 1
            if runs < 0:
                break
            tried = play(plan_of(seed, only=trial))
            if tried.fault is not None and _kind(tried.fault) == kind:
                kept, outcome, smaller = trial, tried, True
                break
        if not smaller:
            if size == 1:
                break
            size = max(1, size // 2)
    return kept, outcome


def _kind(fault: str | None) -> str:
    return ":".join((fault or "").split(":")[:2])[:60]


def command(seed: int, only: Iterable[int] | None = None) -> str:
    """What replays a run."""
    shown = f" --only {','.join(map(str, only))}" if only is not None else ""
    return f"python -m tests.simulation --seed {seed}{shown}"


class Report:
    """Many runs, added up."""

    def __init__(self) -> None:
        self.seeds = 0
        self.virtual_s = 0.0
        self.real_s = 0.0
        self.accepted = 0
        self.struck: Counter[str] = Counter()
        self.checks: Counter[str] = Counter()
        self.failed: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.virtual_s += outcome.virtual_s
        self.real_s += outcome.real_s
        self.accepted += outcome.accepted
        self.struck += outcome.struck
        self.checks += outcome.checks
        if outcome.fault is not None:
            self.failed.append(outcome)

    def text(self) -> str:
        faults = self.struck.copy()
        del faults["probe"]
        lines = [
            f"{self.seeds} seeds, {len(self.failed)} failed; {self.virtual_s / 3600:.1f} virtual hours "
            f"in {self.real_s:.0f} s; {self.accepted} envelopes committed",
            f"{faults.total()} faults: "
            + ", ".join(f"{kind} {count}" for kind, count in faults.most_common()),
            f"{self.checks.total()} checks:",
            *(f"  {count:8}  {what}" for what, count in self.checks.most_common()),
        ]
        return "\n".join(lines)
