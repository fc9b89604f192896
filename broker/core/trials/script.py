"""What was done in a trial, call by call, and what came of it (docs/reference/trial.md, Artifacts).

1. A trial is its tape and its calls: start, advance, revise, submit. Whoever has both has every fill and every tick's
   profit and loss; nothing else is needed to go on with it, or to grade it.
2. An artifact is canonical JSON of these, without a time, a session's id or a key. The same tape and calls give the
   same bytes on every machine.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from broker.core.pieces import Pieces, whole
from broker.core.plan.program import Program
from broker.core.plan.tree import Plan, to_value
from broker.core.tapes.tape import About, Tape
from broker.core.trials.account import MODEL, UNBOUNDED, Fill, Side, fit, pnl
from broker.core.trials.run import Outcome, Place, Run, Why, bounds_of, outcome_of, ready
from broker.wire.canonical import encode

KIND: Final = "turret.trial"
"""The `kind` of such an artifact."""
FORMAT: Final = 1
MARKS: Final = 1_000
"""Ticks at which an artifact marks the profit and loss, at most."""


class Start(msgspec.Struct, frozen=True, tag_field="type", tag="start"):
    """The first call: with which plan."""

    plan: Plan


class Advance(msgspec.Struct, frozen=True, tag_field="type", tag="advance"):
    """Go on for so many ticks. Those that were run are in it, if it was over before."""

    ticks: int


class Revise(msgspec.Struct, frozen=True, tag_field="type", tag="revise"):
    """Go on with another plan. What is held and how many orders were sent stays, and of what rests what finds room in
    the plan's bounds, which what is held must be within."""

    plan: Plan


class Submit(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="submit"):
    """Send an order by hand, as a rule would at the tick that was run last: `size` units at `at` ticks (None: at any
    price). A number as `tif` is of ticks."""

    side: Side
    size: int
    at: int | None = None
    tif: Literal["ioc", "gtc"] | int = "ioc"


Call = Start | Advance | Revise | Submit


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which tape it was: its ref, what it is of, its ticks; and for one that is made by rule, how."""

    ref: str
    about: About
    ticks: int
    kind: str | None = None
    seed: int | None = None


class Result(msgspec.Struct, frozen=True):
    """What came of it. Money in millionths of the quote currency."""

    outcome: Outcome
    over: Why | None
    """None: it was ended before its plan was."""
    ticks: int
    pnl: int
    position: int
    orders: int
    avoided: int


class Artifact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finished trial as it is published."""

    kind: Literal["turret.trial"]
    format: Literal[1]
    fills_model: str
    entry: Entry
    calls: list[Call]
    fills: list[Fill]
    marks: list[tuple[int, int]]
    result: Result


class Trial:
    """A trial under way: a tape, and what the calls have made of it. Goes on from a place with the plan of then."""

    def __init__(
        self,
        tape: Tape,
        plan: Plan | None = None,
        place: Place | None = None,
        curve: "array[int] | None" = None,
        program: Program | None = None,
    ) -> None:
        self.tape = tape
        self.place = place or Place()
        self._curve = curve
        self._run = None if plan is None else Run(tape, plan, self.place, curve, program)

    @property
    def started(self) -> bool:
        return self._run is not None

    def do(self, call: Call) -> list[Fill]:
        """Do one call; what was filled by it. Raises ValueError for one that does not fit (`fault` says why before)."""
        return whole(self.doing(call))

    def doing(self, call: Call) -> Pieces[list[Fill]]:
        """The same in pieces; an advance is one. Nothing is changed before the last one."""
        if (why := self.fault(call)) is not None:
            raise ValueError(why)
        match call:
            case Start(plan) | Revise(plan):
                program = yield from ready(plan, self.tape, self.place.tick)
                fit(self.place.account, bounds_of(plan))
                self._run = Run(self.tape, plan, self.place, self._curve, program)
                return []
            case Advance(ticks):
                return self.advance(ticks)
            case Submit(side, size, at, tif):
                assert self._run is not None
                self._run.send(side, size, at, tif, self.place.tick - 1)
                return []

    def advance(self, ticks: int, most: int = UNBOUNDED) -> list[Fill]:
        """As `Run.advance`: a call in parts. The trial is started."""
        assert self._run is not None
        return self._run.advance(ticks, most)

    def fault(self, call: Call) -> str | None:
        """Why a call is not for now; None: it is."""
        if isinstance(call, Start):
            return "it was started before: revise its plan" if self.started else self._other(call.plan)
        if not self.started:
            return "start it first, with a plan"
        over = self.place.over is not None
        if over or (self.place.closing is not None and not isinstance(call, Advance)):
            return "the run is over: finalize it"
        if isinstance(call, Revise):
            return self._other(call.plan) or self._beyond(call.plan)
        return None

    def _other(self, plan: Plan) -> str | None:
        on = self.tape.about.instrument
        return None if plan.on == on else f"the plan is on {plan.on}, and the tape is of {on}"

    def _beyond(self, plan: Plan) -> str | None:
        held, most = abs(self.place.account.position), plan.bound.position
        said = f"{held} units are held, and the plan's bound is {most}: close what is above it first"
        return said if held > most else None


def result_of(trial: Trial) -> Result:
    """What has come of a trial so far."""
    place = trial.place
    last = place.tick - 1
    return Result(
        outcome=outcome_of(place),
        over=place.over,
        ticks=place.tick,
        pnl=pnl(place.account, trial.tape, last) if last >= 0 else 0,
        position=place.account.position,
        orders=place.account.sent,
        avoided=place.account.avoided,
    )


class Replayed(msgspec.Struct, frozen=True):
    """What calls came to: the profit and loss of each tick that was run, every fill, and where it stands."""

    curve: Sequence[int]
    fills: list[Fill]
    trial: Trial


def replay(tape: Tape, calls: Iterable[Call]) -> Replayed:
    """Do calls on a tape from the beginning. Raises ValueError where one does not fit."""
    curve: array[int] = array("q")
    trial, fills = Trial(tape, curve=curve), list[Fill]()
    for call in calls:
        fills += trial.do(call)
    return Replayed(curve, fills, trial)


def artifact_of(entry: Entry, calls: Sequence[Call], replayed: Replayed) -> bytes:
    """A finished trial as it is published: canonical JSON."""
    return written(entry, calls, replayed.fills, marks_of(replayed.curve), result_of(replayed.trial))


def written(
    entry: Entry, calls: Sequence[Call], fills: Sequence[Fill], marks: Sequence[Sequence[int]], result: Result
) -> bytes:
    """The same of its parts, by whoever has kept them."""
    return encode(
        {
            "kind": KIND,
            "format": FORMAT,
            "fills_model": MODEL,
            "entry": msgspec.to_builtins(entry),
            "calls": [_call(each) for each in calls],
            "fills": msgspec.to_builtins(fills),
            "marks": msgspec.to_builtins(marks),
            "result": msgspec.to_builtins(result),
        }
    )


def mark_step(ticks: int) -> int:
    """How many ticks marks are apart: the least power of two that leaves at most MARKS, with that of the last tick."""
    step = 1
    while step * (MARKS - 1) < ticks - 1:
        step *= 2
    return step


def marks_of(curve: Sequence[int]) -> list[list[int]]:
    """Tick and profit and loss of each tick that is marked, and of the last one. Since steps are powers of two, what a
    longer run marks of its beginning was marked before: marks can be kept while it is under way."""
    if not curve:
        return []
    last = len(curve) - 1
    return [[tick, curve[tick]] for tick in [*range(0, last, mark_step(len(curve))), last]]


def read_artifact(content: bytes) -> Artifact:
    """A trial's artifact. Raises ValueError for what is none."""
    artifact = msgspec.json.decode(content, type=Artifact)
    if encode(msgspec.json.decode(content)) != content:
        raise ValueError("an artifact is canonical JSON")
    return artifact


def _call(call: Call) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(call)
    if isinstance(call, Start | Revise):
        value["plan"] = to_value(call.plan)
    return value
