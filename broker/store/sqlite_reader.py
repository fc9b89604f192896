"""All reading of the embedded store, on a connection of its own that can't write.

1. Each query is bounded by its limit and finds its rows by an index (test_sqlite_reader.py asks the planner).
2. Rows and events are first looked for in the tail, then on the disk, then come their texts; what is committed
   meanwhile is not seen, what is removed meanwhile may be. No snapshot is kept that would hold back the log.
3. What was not written so is not handed out: a row, event or document that has changed, is another one, or is missing
   between two others raises.
"""

import sqlite3
from contextlib import closing
from typing import Any, Final, TypeVar

from broker.store.epoch import epoch_of
from broker.store.port import Document, Entry, Event, Head, Remembered
from broker.store.sqlite_tail import RUN, Ref, Run, Tail, Told, encode, read_events, read_texts
from broker.store.sums import damaged, sum_of

LOG: Final = "SELECT id FROM log WHERE name = ? AND dropped = 0"
ROWS: Final = "SELECT last, texts FROM log_run WHERE log = ? AND last > ? ORDER BY last"
ROWS_BACK: Final = "SELECT last, texts FROM log_run WHERE log = ? AND last < ? ORDER BY last DESC"
ENTRIES: Final = (
    "SELECT text.n, text.data, text.at, text.sum, text.told, text.log FROM json_each(?) AS wanted"
    " CROSS JOIN text ON text.id = wanted.value"  # CROSS: in the order of the list
)
STREAM: Final = "SELECT id, removed FROM stream WHERE name = ?"
EVENTS: Final = "SELECT last, events FROM stream_run WHERE stream = ? AND last > ? ORDER BY last"
TOLD: Final = (
    "SELECT wanted.key, text.data, text.at, text.sum, text.told FROM json_each(?) AS wanted"
    " CROSS JOIN text ON text.id = wanted.value"
)
NEWEST: Final = "SELECT max(last) FROM stream_run WHERE stream = ?"
COMMITTED: Final = "SELECT max(id) FROM text WHERE id <= ?"
DROPPED: Final = "SELECT 1 FROM log WHERE id = ? AND dropped = 1"
ANY_DROPPED: Final = "SELECT 1 FROM log WHERE dropped = 1 AND id > 0 LIMIT 1"
GET: Final = "SELECT name, version, data, 0, sum, kind FROM document WHERE kind = ? AND name = ?"
_MARKED: Final = (
    "SELECT document.name, document.version, document.data, {order}, document.sum, document.kind"
    " FROM mark LEFT JOIN document ON document.id = mark.document"  # LEFT: the mark first; each has its document
    " WHERE mark.facet = (SELECT id FROM facet WHERE kind = ? AND name = ?) AND {rest} LIMIT ?"
)
FIND: Final = _MARKED.format(order="mark.id", rest="mark.value = ? AND mark.id > ? ORDER BY mark.id")
FIND_NEWEST: Final = _MARKED.format(
    order="mark.id", rest="mark.value = ? AND mark.id < ? ORDER BY mark.id DESC"
)
DUE: Final = _MARKED.format(
    order="mark.value", rest="mark.value <= ? ORDER BY mark.value, mark.id"
)  # integers come before all text in SQLite's order, so that text is never ≤
RECALL: Final = "SELECT digest, outcome, until, sum FROM remembered WHERE scope = ? AND name = ?"
META: Final = "SELECT value FROM meta WHERE name = 'secret'"
MAX: Final = 2**63 - 1
"""SQLite's largest integer."""

T = TypeVar("T")


class Reader:
    """The port's reads as plain functions; sqlite3.Error where the file can't be read."""

    def __init__(self, db: sqlite3.Connection, tail: Tail, *, judge: bool = False) -> None:
        """`judge`: keep rule 3, as a store does. Who looks for damage judges by itself."""
        self._db = db
        self._tail = tail
        self._judge = judge
        kept = db.execute(META).fetchone()
        if kept is None:
            raise sqlite3.DatabaseError("the store has lost its secret")
        self._secret: bytes = kept[0]

    def entries(self, log: str, after: int, limit: int) -> list[Entry]:
        row = self._db.execute(LOG, (log,)).fetchone()
        if row is None:
            return []
        waiting = self._waiting_rows(row[0])
        found: Run[int] = Run(after + 1, [])
        with closing(self._db.execute(ROWS, (row[0], after))) as runs:
            for last, packed in runs:
                if len(found.items) >= limit:
                    break
                _extend(found, read_texts(last, packed))
        if waiting is not None:
            _extend(found, waiting)
        if limit > 0 and found.first > after + 1:
            self._missing_rows(row[0])
        texts = found.items[: max(limit, 0)]
        return self._entries(row[0], range(found.first, found.first + len(texts)), texts)

    def tail(self, log: str, before: int | None, limit: int) -> list[Entry]:
        row = self._db.execute(LOG, (log,)).fetchone()
        if row is None:
            return []
        before = MAX - RUN if before is None else min(before, MAX - RUN)
        texts: list[int] = []
        top = -1
        waiting = self._waiting_rows(row[0])
        if waiting is not None:
            top = min(waiting.last, before - 1)
            texts += _before(waiting, before)
            before = min(before, waiting.first)
        with closing(self._db.execute(ROWS_BACK, (row[0], before + RUN))) as runs:
            for last, packed in runs:
                if len(texts) >= limit:
                    break
                run = read_texts(last, packed)
                if texts and run.last < before - 1:
                    self._missing_rows(row[0])
                top = min(run.last, before - 1) if not texts else top
                texts += _before(run, before)
                before = min(before, run.first)
        texts = texts[: max(limit, 0)]
        return self._entries(row[0], range(top, top - len(texts), -1), texts)

    def _entries(self, log: int, numbers: range, texts: list[int]) -> list[Entry]:
        """The rows of these numbers, in that order. A row that a Drop has taken meanwhile is none."""
        found = self._db.execute(ENTRIES, (encode(texts).decode(),)).fetchall()
        if len(found) < len(texts):
            self._missing_rows(log)
        if self._judge and len(found) == len(texts):
            for number, (n, data, _, total, told, owner) in zip(numbers, found, strict=True):
                if (owner, n) != (log, number) or not _is_whole(total, told, data):
                    raise damaged(f"row {number} of log {log}")
        return [Entry(n, data, at) for n, data, at, *_ in found]

    def _missing_rows(self, log: int | None) -> None:
        """Rows are not where they should be: a Drop has taken them (of `log`, or None: of any), or the file is
        damaged."""
        if not self._judge:
            return
        sql, bound = (ANY_DROPPED, ()) if log is None else (DROPPED, (log,))
        if self._db.execute(sql, bound).fetchone() is None:
            raise damaged("what should lie in the table of texts or of runs")

    def _waiting_rows(self, log: int) -> Run[int] | None:
        newest = self._tail.newest
        run = self._tail.logs.get(log)
        if run is None:
            return None
        items = run.items.copy()
        committed = self._committed(newest)
        while items and items[-1] > committed:
            items.pop()
        return Run(run.first, items)

    def _waiting_events(self, stream: int) -> Run[Ref] | None:
        newest = self._tail.newest
        run = self._tail.streams.get(stream)
        if run is None:
            return None
        items = run.items.copy()
        committed = self._committed(newest)
        while items and items[-1][0] > committed:
            items.pop()
        return Run(run.first, items)

    def _committed(self, newest: int) -> int:
        """The last text that is committed: the tail also holds what is only staged, or was rolled back since it
        was copied; such a number is not given again."""
        found: int | None = self._db.execute(COMMITTED, (newest,)).fetchone()[0]
        return found or 0

    def get(self, kind: str, id: str) -> Document | None:
        row = self._db.execute(GET, (kind, id)).fetchone()
        return None if row is None else self._document(kind, row)

    def find(self, kind: str, name: str, value: str, after: int, limit: int, newest: bool) -> list[Document]:
        sql, bound = (FIND_NEWEST, after or MAX) if newest else (FIND, after)
        rows = self._db.execute(sql, (kind, name, value, bound, max(limit, 0)))
        return [self._document(kind, row) for row in rows]

    def due(self, kind: str, name: str, upto: int, limit: int) -> list[Document]:
        rows = self._db.execute(DUE, (kind, name, upto, max(limit, 0)))
        return [self._document(kind, row, all_whole=False) for row in rows]

    def _document(self, kind: str, row: tuple[Any, ...], all_whole: bool = True) -> Document:
        name, version, data, order, total, found = row
        if name is None or (self._judge and found != kind):
            raise damaged(f"a document of {kind}")
        if self._judge and not _is_whole(total, data):
            if all_whole:
                raise damaged(f"a document of {kind}")
            data = b""
        if (
            type(data) is not bytes
        ):  # a file can hold anything there; whoever looks through it names it by its sum
            data = b""
        return Document(name, version, data, order)

    def recall(self, scope: str, key: str) -> Remembered | None:
        row = self._db.execute(RECALL, (scope, key)).fetchone()
        if row is None:
            return None
        digest, outcome, until, total = row
        if self._judge and not _is_whole(total, digest, outcome):
            raise damaged("a remembered answer")
        return Remembered(digest, outcome, until)

    def head(self, stream: str) -> Head:
        epoch = epoch_of(self._secret, stream)
        row = self._db.execute(STREAM, (stream,)).fetchone()
        if row is None:
            return Head(epoch, 1, 0)
        id, removed = row
        waiting = self._waiting_events(id)
        written = self._db.execute(NEWEST, (id,)).fetchone()[0]
        newest = max(removed, written or 0, waiting.last if waiting is not None else 0)
        return Head(epoch, removed + 1, newest)

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        row = self._db.execute(STREAM, (stream,)).fetchone()
        if row is None:
            return []
        id, removed = row
        waiting = self._waiting_events(id)
        after = max(after, removed)
        found: list[Event] = []
        while len(found) < limit:
            refs = self._refs(id, after, limit - len(found), waiting)
            if not refs.items:
                break
            if self._judge and refs.first > after + 1 and self._removed(stream) < refs.first - 1:
                raise damaged(f"stream {id} after {after}")
            found += self._events(stream, id, refs)
            after = refs.last
        return found

    def _events(self, stream: str, id: int, refs: Run[Ref]) -> list[Event]:
        """The events of these places, without those whose text a Drop has taken."""
        texts = encode([ref[0] for ref in refs.items]).decode()
        rows = self._db.execute(TOLD, (texts,)).fetchall()
        if len(rows) < len(refs.items):
            self._missing_rows(None)
        found = []
        for key, data, at, total, told in rows:
            _, kind, own = refs.items[key]
            position = refs.first + key
            if self._judge and not (_is_whole(total, told, data) and _tells(told, (id, position, kind, own))):
                raise damaged(f"event {position} of stream {id}")
            found.append(Event(stream, position, kind, own, data, at))
        return found

    def _removed(self, stream: str) -> int:
        """How far a sweep has come by now."""
        removed: int = self._db.execute(STREAM, (stream,)).fetchone()[1]
        return removed

    def _refs(self, stream: int, after: int, limit: int, waiting: Run[Ref] | None) -> Run[Ref]:
        """The first events that come after, at most `limit`."""
        found: Run[Ref] = Run(after + 1, [])
        with closing(self._db.execute(EVENTS, (stream, after))) as runs:
            for last, packed in runs:
                if len(found.items) >= limit:
                    break
                _extend(found, read_events(last, packed))
        if waiting is not None:
            _extend(found, waiting)
        del found.items[limit:]
        return found

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _extend(found: Run[T], run: Run[T]) -> None:
    """Add what of a run follows; where nothing is found yet, it may begin later (a sweep has been there)."""
    if not found.items:
        found.first = max(found.first, run.first)
    if run.first <= found.last + 1:
        found.items += run.items[found.last + 1 - run.first :]


def _before(run: Run[T], before: int) -> list[T]:
    """The same falling, from the one that comes before."""
    return run.items[: max(before - run.first, 0)][::-1]


def _is_whole(total: int | None, *parts: bytes | str) -> bool:
    """Whether a row is what was written. An upgrade has left some without a sum."""
    return total is None or total == sum_of(*[part if isinstance(part, bytes) else b"" for part in parts])


def _tells(told: bytes | str, event: Told) -> bool:
    """Whether a text names this as one of its events. An upgrade has left some that name none."""
    return isinstance(told, str) or encode(event) in told
