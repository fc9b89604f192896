"""Tapes that operators import."""

from collections.abc import Sequence
from typing import Any

from broker.app import Missed
from broker.core.tapes.catalog import parts_of
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import Tape
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
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


URL = "https://feed.example/a-day.csv"
FACTS = {"url": URL, "instrument": "EURUSD", "tick": "0.00001", "title": "a day", "licence": "CC0-1.0"}


def csv(ticks: int = 40, *more: str) -> bytes:
    """A file of EURUSD, with lines that follow."""
    rows = (f"{1_772_443_800_000 + 1000 * n},1.08{n % 7}2,1.08{n % 7}4\n" for n in range(ticks))
    return "".join(("time,bid,ask\n", *rows, *more)).encode()


class Files:
    """A source in place of a bench's own: it gives one answer, and keeps what it was asked with."""

    def __init__(self, bench: Bench, answer: bytes | Missed) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, str]]] = []
        bench.broker._services.tape_source._source = self

    async def fetch(
        self, url: str, headers: Sequence[tuple[str, str]], *, most: int, patience_s: float
    ) -> bytearray | Missed:
        self.asked.append((url, dict(headers)))
        return self.answer if isinstance(self.answer, Missed) else bytearray(self.answer)


async def fetched_with_a_secret(bench: Bench) -> None:
    """Operators keep a secret, a tape is fetched with it, and it is forgotten: agents see the tape alone."""

    async def ask(tool: str, **params: Any) -> Any:
        return await bench.call(tool, OPERATOR, **params)

    files, asked = Files(bench, csv()), {**FACTS, "headers": {"Authorization": "Bearer ${FEED}"}}
    assert isinstance(await ask("fetch_tape", **asked), Refusal)
    await ask("set_secret", name="FEED", value="mine")
    assert [each["name"] for each in (await ask("list_secrets"))["secrets"]] == ["FEED"]
    entry = await ask("fetch_tape", **asked)
    assert (await bench.broker.catalog(await make_agent(bench, "Ann"), 100)).ref == entry["ref"]
    assert files.asked == [(URL, {"authorization": "Bearer mine"})]
    await ask("unset_secret", name="FEED")
    assert isinstance(await ask("fetch_tape", **asked), Refusal)
