"""The tail: which texts are whose, for those that came last and are not yet written to the tables of runs.

A text is written when it comes, in order of arrival: that is cheap. Which log or stream it belongs to is written
later, for many of them in one row (a run): written at once it would cost a page of the write-ahead log for each
log and stream that a batch touches.

1. What is neither in a run on disk nor here does not exist. After a crash `load` reads it from the texts themselves.
2. It also holds what is staged and not yet committed. A reader goes by what it finds in the table of texts.
3. A reader copies from here first and looks at the disk then: what moves meanwhile is seen twice, never not at all.
4. It holds FLUSH items, two thirds as many again, and a batch: `flush` writes half as much again as comes in.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

RUN: Final = 64
"""Items of one run at most; the schema counts on it. Its row then fits in a page with others."""
FLUSH: Final = 6144
"""Items (a row or an event each) that wait until they are written: 2,048 envelopes told to both parties."""
SLICE: Final = 64
"""Logs and streams whose runs are written with one batch at least: less than a millisecond."""

ROWS: Final = 256
"""Rows that one statement writes at most."""
STEP: Final = 16
"""Statements are made for so many rows or a multiple, so that few of them stay prepared."""

INSERT: Final = "INSERT INTO {} SELECT * FROM (VALUES {}) WHERE column1 IS NOT NULL"
INDEXED: Final = "SELECT value FROM meta WHERE name = 'indexed'"
LOAD: Final = "SELECT id, log, n, told FROM text WHERE id > ? ORDER BY id"
LOG_LAST: Final = "SELECT max(last) FROM log_run WHERE log = ?"
STREAM_LAST: Final = "SELECT max(last) FROM stream_run WHERE stream = ?"


Ref = tuple[int, str, bool]
"""An event in a run: the id of its text, its kind, whether it is one's own."""
Told = tuple[int, int, str, bool]
"""An event as the row of its text names it: stream, position, kind, whether it is one's own."""

T = TypeVar("T")


class Run(msgspec.Struct, Generic[T]):
    """Consecutive rows of a log (their text ids) or events of a stream; `first` is the number of the first."""

    first: int
    items: list[T]

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self.first + len(self.items) - 1


encode = msgspec.json.Encoder().encode
_told = msgspec.json.Decoder(list[Told])
_texts = msgspec.json.Decoder(list[int])
_events = msgspec.json.Decoder(list[Ref])


def read_texts(last: int, packed: str) -> Run[int]:
    """A row of log_run. sqlite3.DatabaseError where it is none."""
    items = _read(_texts, packed)
    return Run(last - len(items) + 1, items)


def read_events(last: int, packed: str) -> Run[Ref]:
    """A row of stream_run. sqlite3.DatabaseError where it is none."""
    items = _read(_events, packed)
    return Run(last - len(items) + 1, items)


def _read(decoder: msgspec.json.Decoder[T], packed: bytes | str) -> T:
    try:
        return decoder.decode(packed)
    except (msgspec.MsgspecError, TypeError) as error:
        raise sqlite3.DatabaseError(f"a run is damaged: {error}") from error


class Tail:
    """The runs that wait, by the ids of their logs and streams. The writer's; readers copy out of it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.logs: dict[int, Run[int]] = {}
        self.streams: dict[int, Run[Ref]] = {}
        self.count = 0
        """Items that came since the last flush was begun."""
        self.newest = 0
        """The highest text id ever given. One that was rolled back is not given again."""
        self.load()

    def load(self) -> None:
        """Read the tail from the texts that are beyond what is indexed: at most what rule 4 says."""
        kept = self._db.execute(INDEXED).fetchone()
        if kept is None:
            raise sqlite3.DatabaseError("the store has lost what is indexed")
        logs: dict[int, dict[int, int]] = {}
        streams: dict[int, dict[int, Ref]] = {}
        self._indexed: int = kept[0]
        self.newest = max(self.newest, self._indexed)
        for id, log, n, told in self._db.execute(LOAD, (self._indexed,)):
            self.newest = max(self.newest, id)
            if log is not None:
                logs.setdefault(log, {})[n] = id
            for stream, position, kind, own in _read(_told, told):
                streams.setdefault(stream, {})[position] = (id, kind, own)
        self._flushed: list[tuple[bool, int]] = []
        self._pending: list[tuple[bool, int]] = []
        self.logs = dict(self._beyond(LOG_LAST, logs))
        self.streams = dict(self._beyond(STREAM_LAST, streams))
        self.count = sum(len(run.items) for run in self.logs.values())
        self.count += sum(len(run.items) for run in self.streams.values())

    def _beyond(self, last: str, found: dict[int, dict[int, T]]) -> Iterator[tuple[int, Run[T]]]:
        """Runs of what is not in a run on disk: a flush may have been half done."""
        for owner, items in found.items():
            written = self._db.execute(last, (owner,)).fetchone()[0]
            rest = sorted(number for number in items if written is None or number > written)
            if rest:
                yield owner, Run(rest[0], [items[number] for number in rest])

    # ── the writer's ──

    def row(self, log: int, n: int, text: int) -> None:
        """Row n of a log is `text`."""
        self.count += 1
        run = self.logs.get(log)
        if run is None:
            self.logs[log] = Run(n, [text])
        else:
            run.items.append(text)

    def event(self, stream: int, position: int, ref: Ref) -> None:
        """The event at a position of a stream."""
        self.count += 1
        run = self.streams.get(stream)
        if run is None:
            self.streams[stream] = Run(position, [ref])
        else:
            run.items.append(ref)

    @property
    def due(self) -> bool:
        """Whether it is time for a flush, or one is half done."""
        return self.count >= FLUSH or bool(self._pending)

    @property
    def behind(self) -> bool:
        """Whether there are texts that must not be removed, because they alone say where they belong."""
        return self._indexed < self.newest

    def flush(self, came: int | None = None) -> None:
        """Write runs inside the writer's transaction: enough for `came` items that came with it, or all (None).

        They are written in the order of their keys, so that neighbours share a page. Once a transaction, when all
        its items are here; `landed` must follow the COMMIT, `load` a rollback.
        """
        if came is None or not self._pending:
            self._begin()
        written, least = 0, (came or 0) * 3 // 2
        logs: list[int | str] = []
        streams: list[int | str] = []
        while self._pending and (came is None or len(self._flushed) < SLICE or written < least):
            key = self._pending.pop()
            self._flushed.append(key)
            of_log, owner = key
            run: Run[Any] = self.logs[owner] if of_log else self.streams[owner]
            (logs if of_log else streams).extend(_rows(owner, run))
            written += len(run.items)
        insert(self._db, "log_run (log, last, texts)", logs)
        insert(self._db, "stream_run (stream, last, events)", streams)
        if not self._pending:
            self._indexed = self._target
            self._db.execute("UPDATE meta SET value = ? WHERE name = 'indexed'", (self._indexed,))

    def _begin(self) -> None:
        """All that is here now is to be written; what comes later is the next flush's."""
        self.count = 0
        self._target = self.newest
        self._pending = [(False, owner) for owner in sorted(self.streams, reverse=True)]
        self._pending += [(True, owner) for owner in sorted(self.logs, reverse=True)]

    def landed(self) -> None:
        """What was flushed is committed: let it go."""
        for of_log, owner in self._flushed:
            if of_log:
                del self.logs[owner]
            else:
                del self.streams[owner]
        self._flushed.clear()


def _rows(owner: int, run: Run[Any]) -> Iterator[int | str]:
    """Owner, last and items of each row, one after the other."""
    for start in range(0, len(run.items), RUN):
        items = run.items[start : start + RUN]
        yield owner
        yield run.first + start + len(items) - 1
        yield encode(items).decode()


def insert(db: sqlite3.Connection, into: str, values: Sequence[int | str | bytes | None]) -> None:
    """Write rows by statements of ROWS each: a thread needs the interpreter once for each and not once a row.

    `into`: a table and its columns, in brackets; the first one is never NULL. `values`: those of the first row, of the
    second, and so on. So few rows that one statement takes them are a transaction where none is open.
    """
    columns = into.count(",") + 1
    for start in range(0, len(values), ROWS * columns):
        some = values[start : start + ROWS * columns]
        rows = -(-len(some) // (columns * STEP)) * STEP
        db.execute(_statement(into, columns, rows), [*some, *[None] * (columns * rows - len(some))])


@cache
def _statement(into: str, columns: int, rows: int) -> str:
    marks = ", ".join([f"({', '.join('?' * columns)})"] * rows)
    return INSERT.format(into, marks)
