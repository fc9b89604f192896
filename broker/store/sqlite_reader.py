"""All reading of the embedded store, on a connection of its own that can't write.

1. Each query is bounded by its limit and finds its rows by an index (test_sqlite_reader.py asks the planner).
2. Each is one statement, read to its end: a consistent prefix, and no snapshot that would hold back the log.
"""

import sqlite3
from typing import Final

from broker.store.epoch import epoch_of
from broker.store.port import Document, Entry, Event, Head, Remembered

ENTRIES: Final = (
    "SELECT n, data, at FROM entry WHERE log = (SELECT id FROM log WHERE name = ? AND dropped = 0)"
    " AND n > ? ORDER BY n LIMIT ?"
)
TAIL: Final = (
    "SELECT n, data, at FROM entry WHERE log = (SELECT id FROM log WHERE name = ? AND dropped = 0)"
    " AND n < ? ORDER BY n DESC LIMIT ?"
)
GET: Final = "SELECT version, data FROM document WHERE kind = ? AND name = ?"
_MARKED: Final = (
    "SELECT document.name, document.version, document.data, {order}"
    " FROM mark CROSS JOIN document ON document.id = mark.document"  # CROSS: the mark first
    " WHERE mark.facet = (SELECT id FROM facet WHERE kind = ? AND name = ?) AND {rest} LIMIT ?"
)
FIND: Final = _MARKED.format(order="mark.id", rest="mark.value = ? AND mark.id > ? ORDER BY mark.id")
FIND_NEWEST: Final = _MARKED.format(
    order="mark.id", rest="mark.value = ? AND mark.id < ? ORDER BY mark.id DESC"
)
DUE: Final = _MARKED.format(
    order="mark.value", rest="mark.value <= ? ORDER BY mark.value, mark.id"
)  # integers come before all text in SQLite's order, so that text is never ≤
RECALL: Final = "SELECT digest, outcome, until FROM remembered WHERE scope = ? AND name = ?"
HEAD: Final = (
    "SELECT removed, (SELECT min(position) FROM event WHERE stream = stream.id),"
    " (SELECT max(position) FROM event WHERE stream = stream.id) FROM stream WHERE name = ?"
)
EVENTS: Final = (
    "SELECT event.position, event.kind, event.own, coalesce(event.data, entry.data), event.at"
    " FROM event LEFT JOIN entry ON entry.id = event.entry"
    " WHERE event.stream = (SELECT id FROM stream WHERE name = ?) AND event.position > ?"
    " AND (event.data IS NOT NULL OR entry.id IS NOT NULL)"  # else a Drop has taken its text
    " ORDER BY event.position LIMIT ?"
)
META: Final = "SELECT value FROM meta WHERE name = 'secret'"
MAX: Final = 2**63 - 1
"""SQLite's largest integer."""


class Reader:
    """The port's reads as plain functions; sqlite3.Error where the file can't be read."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        kept = db.execute(META).fetchone()
        if kept is None:
            raise sqlite3.DatabaseError("the store has lost its secret")
        self._secret: bytes = kept[0]

    def entries(self, log: str, after: int, limit: int) -> list[Entry]:
        return [Entry(*row) for row in self._db.execute(ENTRIES, (log, after, max(limit, 0)))]

    def tail(self, log: str, before: int | None, limit: int) -> list[Entry]:
        bound = MAX if before is None else before
        return [Entry(*row) for row in self._db.execute(TAIL, (log, bound, max(limit, 0)))]

    def get(self, kind: str, id: str) -> Document | None:
        row = self._db.execute(GET, (kind, id)).fetchone()
        return None if row is None else Document(id, row[0], row[1])

    def find(self, kind: str, name: str, value: str, after: int, limit: int, newest: bool) -> list[Document]:
        sql, bound = (FIND_NEWEST, after or MAX) if newest else (FIND, after)
        return [Document(*row) for row in self._db.execute(sql, (kind, name, value, bound, max(limit, 0)))]

    def due(self, kind: str, name: str, upto: int, limit: int) -> list[Document]:
        return [Document(*row) for row in self._db.execute(DUE, (kind, name, upto, max(limit, 0)))]

    def recall(self, scope: str, key: str) -> Remembered | None:
        row = self._db.execute(RECALL, (scope, key)).fetchone()
        return None if row is None else Remembered(*row)

    def head(self, stream: str) -> Head:
        removed, oldest, newest = self._db.execute(HEAD, (stream,)).fetchone() or (0, None, None)
        newest = max(removed, newest or 0)
        return Head(epoch_of(self._secret, stream), oldest or newest + 1, newest)

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        rows = self._db.execute(EVENTS, (stream, after, max(limit, 0)))
        return [Event(stream, position, kind, bool(own), data, at) for position, kind, own, data, at in rows]

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
