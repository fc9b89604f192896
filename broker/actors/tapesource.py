"""Tapes that the broker fetches from a URL, for operators (docs/reference/trial.md, Tape sources).

1. One at a time: a file is as large as the longest tape. Whoever asks meanwhile is told to come back.
2. It is read and cut in turns of the mill, a piece at a time, so that nobody waits for it.
3. It goes the way of every import (broker.actors.tapestore): parts that nobody sees, then all of it or nothing.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from broker.actors.house import House
from broker.actors.mill import Mill
from broker.actors.tapestore import Finish, Send
from broker.core.tapes.catalog import KIND, parts_of, unfit
from broker.core.tapes.csvfile import Complaint, CsvReader
from broker.core.tapes.source import MOST, PATIENCE_S, Missed, refusal_of, wrong
from broker.core.tapes.tape import Tape
from broker.wire.refusals import Refusal, refuse

WHO: Final = "operators"
"""Whose turn it is in the mill."""
PIECE: Final = 8_192
"""Bytes that are read in a turn: some 2 ms."""
TOLD: Final = 20
"""How often progress is told of one file, at most."""
Told = Callable[[int, int], Awaitable[None]]
"""Hears how many bytes are read, of how many."""
_OFF: Final = refuse("unavailable", "this broker fetches nothing", reason="sources")
_BUSY: Final = refuse("overloaded", "another tape is being fetched; wait for it", retry_after_ms=5_000)


class Source(Protocol):
    """The way to files of others, given to open_broker; a gateway fills it in. Without one nothing is fetched."""

    async def fetch(
        self, url: str, headers: Sequence[tuple[str, str]], *, most: int, patience_s: float
    ) -> bytearray | Missed:
        """GET once: all of a file, of so many bytes at most, within so many seconds. Raises nothing for what a source
        or a URL does; cancelling closes the connection."""
        ...


class TapeSource:
    """What all who have tapes fetched share."""

    def __init__(self, source: Source | None, mill: Mill, house: House) -> None:
        self._source = source
        self._mill = mill
        self._house = house
        self._busy = False

    async def bring(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],
        reader: CsvReader,
        finish: Callable[[int], Finish],
        *,
        told: Told | None = None,
    ) -> Any:
        """Fetch and import a tape; its entry of the catalog, or why there is none. `headers`: with their secrets.
        `finish`: the end of the import, by how many parts there are. `told`: of the bytes that are read, TOLD times.

        Cancelling stops it: parts that were kept are swept as those of any broken import, and nothing is imported but
        where the end of the import was asked for already, which goes on."""
        if self._source is None:
            return _OFF
        if self._busy:
            return _BUSY
        self._busy = True
        try:
            body = await self._source.fetch(url, headers, most=MOST, patience_s=PATIENCE_S)
            if isinstance(body, Missed):
                return refusal_of(body)
            tape = await self._read(body, reader, told)
            del body  # what is large goes as soon as it may
            if isinstance(tape, Complaint):
                return wrong(tape)
            if (why := unfit(tape.about, len(tape))) is not None:
                return wrong(Complaint(0, why, why))
            ref, parts = await self._cut(tape)
            del tape
            return await self._bring(ref, parts, finish)
        finally:
            self._busy = False

    async def _read(self, body: bytearray, reader: CsvReader, told: Told | None) -> Tape | Complaint:
        said = 0
        for at in range(0, len(body), PIECE):
            async with self._mill.turn(WHO):
                if (complaint := reader.feed(bytes(body[at : at + PIECE]))) is not None:
                    return complaint
            if told is not None and (at - said) * TOLD >= len(body):
                said = at
                await told(at, len(body))
        return reader.end()

    async def _cut(self, tape: Tape) -> tuple[str, list[bytes]]:
        """A tape's ref, and its parts."""
        parts, made, digest = list[bytes](), parts_of(tape), hashlib.sha256()
        while True:
            async with self._mill.turn(WHO):
                part = next(made, None)
                if part is None:
                    return digest.hexdigest(), parts
                digest.update(part)
                parts.append(part)

    async def _bring(self, ref: str, parts: list[bytes], finish: Callable[[int], Finish]) -> Any:
        for number, part in enumerate(parts):
            answer = await self._house.ask(KIND, ref, Send(number, part))
            if isinstance(answer, Refusal):
                return answer
            if answer["here"]:
                break
        count = len(parts)
        parts.clear()
        return await self._house.ask(KIND, ref, finish(count))
