"""Tapes that operators import."""

from typing import Any

from broker.core.tapes.catalog import parts_of
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import Tape
from broker.wire.refusals import Refusal
from tests.support.broker import Bench
from tests.support.operators import OPERATOR

TICKS = 60


def foreign(seed: int = 77, ticks: int = TICKS, kind: str = "thin") -> Tape:
    """A tape that the catalog does not make."""
    return make(KINDS[kind], seed, ticks)


async def send(bench: Bench, tape: Tape) -> int:
    """Send all parts of a tape; how many there are."""
    parts = list(parts_of(tape))
    for n, part in enumerate(parts):
        answer = await bench.call("send_tape_rows", OPERATOR, ref=tape.ref(), part=n, rows=part.decode())
        assert not isinstance(answer, Refusal), answer
    return len(parts)


async def finish(bench: Bench, tape: Tape, parts: int, **words: Any) -> Any:
    """The end of an import, whatever it is told."""
    words = {"title": "A day in March", "licence": "CC-BY-4.0", **words}
    return await bench.call("import_tape", OPERATOR, ref=tape.ref(), parts=parts, **words)


async def bring(bench: Bench, tape: Tape, **words: Any) -> Any:
    """Import a tape; its entry of the catalog."""
    entry = await finish(bench, tape, await send(bench, tape), **words)
    assert not isinstance(entry, Refusal), entry
    return entry
