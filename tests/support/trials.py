"""Finished trials, without a broker."""

from typing import Any, Final

import msgspec

from broker.core.artifact import ref_of
from broker.core.plan.read import Checked, read_plan
from broker.core.plan.tree import Plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import Tape
from broker.core.trials.report import Report, report_of
from broker.core.trials.review import Graded, read_trial, review
from broker.core.trials.script import Advance, Artifact, Call, Entry, Start, artifact_of, replay
from broker.store.port import Put, Unit
from broker.wire.canonical import encode
from tests.support.broker import Bench

TRADES: Final = """plan fade 1
on {on}
bound position 1000, loss 2500, orders 400, until 3000
when position = 0 and mid < avg(mid, 50): buy 1000 at ask
when position > 0 and mid > avg(mid, 50): sell 1000 at bid"""


def plan(text: str = TRADES, on: str = "EURCHF") -> Plan:
    """A plan of its text."""
    checked = read_plan(text.replace("{on}", on))
    assert isinstance(checked, Checked), checked
    return checked.plan


def market(kind: str = "mean-revert", seed: int = 5, ticks: int = 600) -> tuple[Tape, Entry]:
    """A tape that is made by rule, and its entry."""
    tape = make(KINDS[kind], seed, ticks)
    return tape, Entry(tape.ref(), tape.about, len(tape), kind, seed)


def trial(tape: Tape, entry: Entry, *calls: Call) -> bytes:
    """The artifact of some calls; of none: of TRADES along the whole tape."""
    done = calls or (Start(plan(on=tape.about.instrument)), Advance(len(tape)))
    return artifact_of(entry, done, replay(tape, done))


def changed(content: bytes, *path: str | int, to: Any) -> bytes:
    """An artifact with another value at a path."""
    value: Any = msgspec.json.decode(content)
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = to
    return encode(value)


async def publish(bench: Bench, content: bytes) -> str:
    """Store an artifact as the end of a session does; its ref."""
    ref = ref_of(content)
    if await bench.store.get("artifact", ref) is None:
        await bench.store.commit(Unit(puts=(Put("artifact", ref, 0, content),)))
    return ref


def report(ticks: int = 600) -> Report:
    """What is shown of TRADES along a tape."""
    tape, entry = market(ticks=ticks)
    content = trial(tape, entry)
    artifact = read_trial(content)
    assert isinstance(artifact, Artifact)
    graded = review(content, artifact, tape)
    assert isinstance(graded, Graded)
    return report_of(ref_of(content), artifact, graded)
