"""Imported tapes in the store: parts of one that comes, the whole of one that is here (trial.md, Catalog).

1. A tape's actor is named by its ref. A part that was sent before is known again: a broken import goes on, and one that
   nobody goes on with is swept when its time is over.
2. The last commit makes the tape visible, after its bytes were read back: nothing is ever half imported.
3. What is read is compared with its ref each time. Whatever else lies there is `unavailable`.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from broker.actors.mill import in_turns
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.core.conversation import Due
from broker.core.tapes.catalog import (
    FIRST,
    IMPORTED,
    KIND,
    LEFT_MS,
    PARTS,
    TapeRow,
    index_of,
    item_of,
    joining,
    whole,
)
from broker.core.tapes.tape import Tape
from broker.store.port import Append, Document, Drop, Put, Store, Unit
from broker.store.stored import damaged, read_row, stored
from broker.wire.refusals import Refusal, refuse

NO_TAPE = refuse(
    "not_found", "there is no imported tape with this ref; list_tapes shows those that are", path="ref"
)
_NEXT = ("tapes", "next")
"""Kind and id of the document (NextRow) that counts indices."""
PAGE = 8
"""Parts that are read at once: more would take the loop for tens of milliseconds."""


class NextRow(msgspec.Struct, frozen=True):
    """The index that the next new tape gets."""

    index: int


class Send(msgspec.Struct, frozen=True):
    """Keep a part. Answer: {ref, part, here}; `here`: the tape is there already."""

    part: int
    rows: bytes


class Finish(msgspec.Struct, frozen=True):
    """All parts were sent: let the tape be seen. Answer: its entry of the catalog."""

    parts: int
    title: str
    licence: str
    price: dict[str, Any]
    once: Once | None = None


class Remove(msgspec.Struct, frozen=True):
    """Take the tape out of the catalog. Answer: {ref, removed}."""

    once: Once | None = None


class TapeActor(RecordActor[TapeRow]):
    """One tape; the key is its ref."""

    kind = KIND
    type = TapeRow

    def __init__(
        self, key: str, *, turn: Callable[[], AbstractAsyncContextManager[None]], **parts: Any
    ) -> None:
        """`turn`: in which a piece of what takes long is done (broker.actors.mill)."""
        super().__init__(key, **parts)
        self._turn = turn

    def index_of(self, row: TapeRow) -> Index:
        return index_of(row)

    async def do(self, command: Any) -> Any:
        row = self.row
        match command:
            case Send():
                return await self._send(command, row)
            case Finish():
                return await self._finish(command, row)
            case Remove(once):
                if row is None or row.state != "here":
                    return NO_TAPE
                return await self._gone(row, {"ref": self.key, "removed": True}, once)
            case Due():
                if row is None or row.due is None or row.due > self.clock.now_ms():
                    return None
                return await self._gone(row, None, None)
        raise TypeError(type(command))

    async def _send(self, command: Send, row: TapeRow | None) -> Any:
        part, now = command.part, self.clock.now_ms()
        answer = {"ref": self.key, "part": part, "here": row is not None and row.state == "here"}
        if answer["here"]:
            return answer
        parts = row.parts if row is not None and row.state == "importing" else 0
        if part > parts:
            return refuse("conflict", f"part {parts} is the next one", path="part", expected=parts)
        if parts and part < parts:
            assert row is not None
            (kept,) = await self.store.entries(row.log, part - 1, limit=1)
            if kept.data == command.rows:
                return answer
            if part:
                return refuse(
                    "conflict", "another part was sent in this place; begin again with part 0", path="part"
                )
        if part == 0 and await self._full():
            return _too_many()
        turn = 0 if row is None else row.turn + (part == 0)
        index = None if row is None else row.index
        coming = TapeRow(self.key, "importing", turn, part + 1, now, due=now + LEFT_MS, index=index)
        append = Append(coming.log, part, command.rows, now)
        if parts and part == 0:  # other bytes lie there: they go in the same commit
            assert row is not None
            return await self._change(coming, answer, None, append=append, drop=Drop(row.log))
        return await self.write(coming, answer, append=append)

    async def _finish(self, command: Finish, row: TapeRow | None) -> Any:
        if row is not None and row.state == "here":
            return await self.write(row, item_of(row, command.price), once=command.once)
        if row is None or row.state != "importing" or row.parts != command.parts:
            there = row.parts if row is not None and row.state == "importing" else 0
            return refuse("conflict", f"{there} parts of this tape are there", path="parts", expected=there)
        tape = await in_turns(self._turn, joining(await read_parts(self.store, row), row.ref))
        if isinstance(tape, str):
            refused = await self._gone(row, None, None)
            return refused or refuse("bad_request", f"nothing was imported: {tape}", path="ref")
        counted = await self.store.get(*_NEXT)
        following = FIRST if counted is None else stored(NextRow, counted.doc, *_NEXT).index
        if await self._full():  # the parts stay: when there is room it is asked again
            return _too_many()
        index = following if row.index is None else row.index
        # Written each time: of two that come at once, the second one meets a conflict, and counts again.
        after = msgspec.json.encode(NextRow(max(following, index + 1)))
        puts = (Put(*_NEXT, 0 if counted is None else counted.version, after),)
        here = replace(
            row,
            state="here",
            due=None,
            changed_at=self.clock.now_ms(),
            index=index,
            about=tape.about,
            ticks=len(tape),
            title=command.title,
            licence=command.licence,
        )
        return await self.write(here, item_of(here, command.price), once=command.once, puts=puts)

    async def _full(self) -> bool:
        return len(await self.store.find(KIND, "all", "1", limit=IMPORTED)) == IMPORTED

    async def _gone(self, row: TapeRow, answer: Any, once: Once | None) -> Any:
        gone = TapeRow(row.ref, "gone", row.turn, 0, self.clock.now_ms(), index=row.index)
        return await self._change(gone, answer, once, drop=Drop(row.log))

    async def _change(
        self, row: TapeRow, answer: Any, once: Once | None, *, drop: Drop, append: Append | None = None
    ) -> Any:
        """As `write`, with a log that goes in the same commit."""
        unit: Unit | None = self._unit(row, answer, once, (), (), append)
        assert unit is not None  # the row stands in it
        refused = await self.commit(replace(unit, drop=drop))
        if refused is not None:
            return refused
        self._written(row)
        return answer


def _too_many() -> Refusal:
    said = f"at most {IMPORTED} tapes are kept: remove one (list_tapes, remove_tape; turret tape remove REF), ask again"
    return refuse("quota_exceeded", said, reason="tapes", limit=IMPORTED)


async def imported(store: Store) -> list[TapeRow]:
    """The imported tapes, by their index. Raises Unavailable."""
    rows = [_row(each) for each in await store.find(KIND, "all", "1", limit=IMPORTED)]
    return sorted(rows, key=lambda row: row.index or 0)


async def find_imported(store: Store, which: str | int) -> TapeRow | None:
    """The imported tape with this index or ref, or None. Raises Unavailable."""
    if isinstance(which, int):
        found = await store.find(KIND, "index", str(which), limit=1)
        return _row(found[0]) if found else None
    row = await read_row(store, TapeRow, KIND, which)
    return row if row is not None and row.state == "here" else None


async def read_imported(store: Store, ref: str) -> Tape | None:
    """An imported tape, or None. Raises Unavailable where its bytes are not those that the ref names. Cancelling waits
    for what is being read."""
    row = await find_imported(store, ref)
    if row is None:
        return None
    tape = await trio.to_thread.run_sync(whole, await read_parts(store, row), ref)
    if isinstance(tape, str):
        raise damaged(KIND, ref, tape)
    return tape


async def read_parts(store: Store, row: TapeRow) -> list[bytes]:
    """The parts of a tape, in order."""
    parts: list[bytes] = []
    while len(parts) <= PARTS and (page := await store.entries(row.log, len(parts) - 1, limit=PAGE)):
        parts += [entry.data for entry in page]
    return parts


def _row(document: Document) -> TapeRow:
    return stored(TapeRow, document.doc, KIND, document.id)
