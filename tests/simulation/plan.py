"""What happens in one run, as data drawn from its seed: who talks to whom, and what breaks when.

A plan is a list of steps in the order of their times. To shrink a failing run, steps are left out; what stays is
the same as before, because nothing in a step depends on another one.
"""

import random
from collections.abc import Collection
from typing import Literal

import msgspec

Style = Literal["polite", "burst", "silent", "cancel", "race", "twice", "rude", "abandon"]
"""How the two sides of a call behave.

polite: in turn, then END · burst: as fast as they can, beyond the limit · silent: nobody picks up · cancel: the
caller hangs up while it rings · race: both hang up at once · twice: two envelopes for the same n at once · rude:
wrong requests before each right one · abandon: it stops in the middle, and the wire ends it.
"""
STYLES: tuple[Style, ...] = (
    *("polite",) * 6,
    *("burst",) * 3,
    "silent",
    "cancel",
    *("race",) * 2,
    *("twice",) * 2,
    *("rude",) * 2,
    *("abandon",) * 3,
)

Kind = Literal[
    "cut",
    "silence",
    "delay",
    "slow",
    "repeat",
    "second",
    "away",
    "unavailable",
    "doubt",
    "applied",
    "late",
    "hang",
    "hang written",
    "outage",
    "crash",
    "stop",
    "step",
    "probe",
]
"""What breaks.

cut, silence, delay, slow: a dealer's connection is cut, goes dead without a word, takes long, is read slowly ·
repeat: a dealer sends an old request again, byte for byte · second: it opens another connection, maybe with a wrong
cursor · away: it stays away for long · unavailable, doubt, applied, late: the next commit fails, is in doubt, is in
doubt and written, is in doubt and lands later · hang, hang written: commits hang before or after they are written ·
outage: no commit goes for a while · crash: the process ends at some await, commits under way are written or not ·
stop: it is shut down in order · step: the wall clock steps · probe: no fault; presence and desks are asked about.
"""
STORE_FAULTS: tuple[Kind, ...] = ("unavailable", "doubt", "applied", "late", "hang", "hang written", "outage")
FAULTS: tuple[Kind, ...] = (
    *("cut",) * 3,
    "silence",
    *("delay",) * 2,
    *("slow",) * 2,
    *("repeat",) * 3,
    *("second",) * 2,
    "away",
    *STORE_FAULTS,
    "doubt",
    "applied",
    "late",
    *("crash",) * 3,
    "stop",
    *("step",) * 2,
)
MEMORY_ONLY: frozenset[Kind] = frozenset({"hang", "hang written", "outage"})
"""The embedded adapter on a virtual clock has nowhere to hang."""


class Talk(msgspec.Struct, frozen=True):
    """A dials B at second `at`, and they talk."""

    at: float
    caller: int
    called: int
    style: Style
    length: int
    think_s: float
    number: int
    """Its place in the plan as drawn, from which the conversation's id is made."""


class Fault(msgspec.Struct, frozen=True):
    """Something breaks at second `at`; which of the others count depends on the kind."""

    at: float
    kind: Kind
    dealer: int
    seconds: float
    awaits: int
    """How many steps of tasks later it strikes."""


Step = Talk | Fault


class Plan(msgspec.Struct, frozen=True):
    """One run."""

    seed: int
    store: Literal["memory", "sqlite"]
    dealers: int
    ports: tuple[bool, ...]
    """Who comes over the dealing port; the others call the broker itself."""
    idle_s: float
    actors_idle_s: float
    queue_events: int
    keep_events: int
    keep_days: float
    mailbox: int
    signatures_per_tick: int
    steps: tuple[Step, ...]
    players: int = 0
    """Agents that play in the arena."""

    def only(self, kept: Collection[int]) -> "Plan":
        """The same with these steps alone (by index)."""
        return msgspec.structs.replace(
            self, steps=tuple(step for index, step in enumerate(self.steps) if index in kept)
        )


PLAYED = 100_000
"""The first seed with players of the arena; those before it are the runs that they were."""
SPAN_S = 150.0
"""Within this time everything begins."""


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    chance = random.Random(f"plan {seed}")
    store: Literal["memory", "sqlite"] = "sqlite" if chance.random() < 0.15 else "memory"
    dealers = chance.randint(3, 7)
    talks = [_talk(chance, number, dealers) for number in range(chance.randint(6, 22))]
    if chance.random() < 0.5:  # one that dials more than it may have open
        talks += [_crowd(chance, len(talks) + number, dealers, chance.uniform(0, 60)) for number in range(11)]
    faults = [_fault(chance, dealers) for _ in range(chance.choice((0, 4, 8, 8, 12, 20)))]
    probes = [Fault(chance.uniform(0, SPAN_S), "probe", 0, 0.0, 0) for _ in range(4)]
    if store == "sqlite":
        faults = [fault for fault in faults if fault.kind not in MEMORY_ONLY]
    steps: list[Step] = [*talks, *faults, *probes]
    plan = Plan(
        seed=seed,
        store=store,
        dealers=dealers,
        ports=tuple(chance.random() < 0.5 for _ in range(dealers)),
        idle_s=chance.choice((40.0, 90.0, 300.0)),
        actors_idle_s=chance.choice((2.0, 10.0, 60.0)),
        queue_events=chance.choice((16, 64, 4096)),
        keep_events=chance.choice((8, 10_000, 10_000)),
        keep_days=chance.choice((0.0005, 7.0)),
        mailbox=chance.choice((2, 8, 64)),
        signatures_per_tick=chance.choice((1, 4, 64)),
        steps=tuple(sorted(steps, key=lambda step: step.at)),
        players=1 + seed % 3 if seed >= PLAYED else 0,
    )
    return _forgetful(plan) if plan.keep_events == 8 else plan


def _forgetful(plan: Plan) -> Plan:
    """Where streams keep little, somebody stays away for long, so that a cursor is lost; the others talk."""
    chance = random.Random(f"forgetful {plan.seed}")
    away = chance.randrange(plan.dealers)
    steps: list[Step] = [*plan.steps, Fault(chance.uniform(5, 30), "away", away, 120.0, 0)]
    for number in range(900, 906):
        talk = _talk(chance, number, plan.dealers)
        steps.append(
            msgspec.structs.replace(
                talk, at=chance.uniform(0, 60), called=away, caller=(away + 1) % plan.dealers
            )
        )
    return msgspec.structs.replace(
        plan, keep_days=0.0005, steps=tuple(sorted(steps, key=lambda step: step.at))
    )


def _talk(chance: random.Random, number: int, dealers: int) -> Talk:
    caller, called = chance.sample(range(dealers), 2)
    style = chance.choice(STYLES)
    length = chance.randint(34, 44) if style == "burst" else chance.randint(2, 9)
    think_s = 0.0 if style == "burst" else chance.choice((0.0, 0.1, 1.0, 6.0))
    return Talk(chance.uniform(0, SPAN_S), caller, called, style, length, think_s, number)


def _crowd(chance: random.Random, number: int, dealers: int, at: float) -> Talk:
    return Talk(
        at + chance.uniform(0, 30),
        0,
        1 + number % (dealers - 1),
        "abandon",
        chance.randint(2, 5),
        chance.choice((0.0, 1.0, 9.0)),
        number,
    )


def _fault(chance: random.Random, dealers: int) -> Fault:
    kind = chance.choice(FAULTS)
    seconds = chance.choice((0.05, 0.5, 3.0, 7.0, 15.0))
    if kind == "away":
        seconds = chance.choice((20.0, 120.0))
    elif kind == "step":
        seconds = chance.choice((-3600.0, -200.0, -30.0, -5.0, -0.5, 0.5, 5.0, 30.0, 200.0, 3600.0))
    return Fault(chance.uniform(0, SPAN_S), kind, chance.randrange(dealers), seconds, chance.randint(0, 80))
