"""Units become rows: what the tables hold, what is checked, what will be written.

1. A unit is checked whole before any row of it is made, so that one that conflicts leaves nothing behind.
2. This is the only one to change the tables (but for what retention takes), so that what it last saw of a log,
   stream or document is true until a rollback: then it forgets all.
3. Rows are collected for a whole batch and written by a few statements.
"""

import sqlite3
from typing import Final

import msgspec

from broker.store.port import FIELDS, Conflict, Deliver, Event, Put, Remember, Unit
from broker.store.sqlite_search import DELETE, INSERT, row_of
from broker.store.sqlite_search import Row as Found
from broker.store.sqlite_tail import ROWS, Tail, Told, encode, insert
from broker.store.sums import sum_of

KEPT: Final = 20_000
"""Logs, streams and documents whose state is kept in memory, each; beyond it all are forgotten at once."""


COLUMNS: Final = 7
DOCUMENT: Final = (
    "INSERT INTO document (id, kind, name, version, data, sum, searched) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
TEXT: Final = "text (id, log, n, at, told, sum, data)"
DROP_TEXTS: Final = (
    "DELETE FROM text WHERE id IN"
    " (SELECT item.value FROM log_run, json_each(log_run.texts) AS item WHERE log_run.log = ?)"
)

Texts = list[int | bytes | None]
"""id, log, n, at, told, sum, data of each text, one after the other: as a statement takes them."""


class _Log(msgspec.Struct):
    id: int = 0
    newest: int = -1
    dropped: bool = False


class _Stream(msgspec.Struct):
    id: int = 0
    newest: int = 0


class _Document(msgspec.Struct):
    id: int = 0
    version: int = 0
    data: bytes = b""
    stored: bool = False
    """Whether the table has its row; `version` is ahead of it until the rows are written."""
    marks: dict[tuple[int, str | int], int] = msgspec.field(default_factory=dict)
    """(facet, value) → the index row's id."""
    searched: bool = False
    """Whether the table of search has a row of it."""
    found_by: Found | None = None
    """The row that it is to have there."""


class _Rows(msgspec.Struct):
    """What one transaction will write, in the order of the tables."""

    logs: list[tuple[int, str]] = msgspec.field(default_factory=list)
    streams: list[tuple[int, str]] = msgspec.field(default_factory=list)
    texts: Texts = msgspec.field(default_factory=list)
    documents: dict[tuple[str, str], _Document] = msgspec.field(default_factory=dict)
    facets: list[tuple[int, str, str]] = msgspec.field(default_factory=list)
    marks: dict[int, tuple[int, int, int, str | int]] = msgspec.field(default_factory=dict)
    unmarked: list[tuple[int]] = msgspec.field(default_factory=list)
    remembered: dict[tuple[str, str], Remember] = msgspec.field(default_factory=dict)
    dropped: list[tuple[int]] = msgspec.field(default_factory=list)
    told: list[Event] = msgspec.field(default_factory=list)


class Stage:
    """Works on the writing connection, inside a transaction that the writer opens and ends."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._rows = _Rows()
        self.tail = Tail(db)
        self._remember_nothing()
        self._next = {table: self._last_id(table) for table in ("log", "stream", "document", "mark")}

    def _last_id(self, table: str) -> int:
        kept = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        newest = self._db.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608  # a name of ours
        return max(kept[0] if kept else 0, newest[0] or 0)

    def _take_id(self, table: str) -> int:
        self._next[table] += 1
        return self._next[table]

    def forget(self) -> None:
        """After a rollback: nothing that was seen need be true."""
        self.tail.load()
        self._remember_nothing()

    def _remember_nothing(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._streams: dict[str, _Stream] = {}
        self._documents: dict[tuple[str, str], _Document] = {}
        facets = self._db.execute("SELECT kind, name, id FROM facet")
        self._facets: dict[tuple[str, str], int] = {(kind, name): id for kind, name, id in facets}

    def begin(self) -> None:
        """Start an empty batch. Between batches only, memory is bounded: within one it is ahead of the tables."""
        self._rows = _Rows()
        for kept in (self._logs, self._streams, self._documents):
            if len(kept) > KEPT:
                kept.clear()

    def add(self, unit: Unit) -> Conflict | ValueError | None:
        """Check a unit and make its rows; or say why nothing was done."""
        try:
            self._check(unit)
        except (Conflict, ValueError) as refused:
            return refused
        self._apply(unit)
        return None

    def _check(self, unit: Unit) -> None:
        if unit.append is None and any(letter.data is None for letter in unit.deliver):
            raise ValueError("an event without data needs an Append to refer to")
        if unit.append is not None:
            log = self._log(unit.append.log)
            if log.dropped:
                raise Conflict("drop", unit.append.log)
            if log.newest + 1 != unit.append.n:
                raise Conflict("append", unit.append.log)
        versions: dict[tuple[str, str], int] = {}
        for put in unit.puts:
            if len(put.text) > FIELDS:
                raise ValueError(f"a document has at most {FIELDS} fields of text")
            place = (put.kind, put.id)
            if versions.get(place, self._document(*place).version) != put.expect:
                raise Conflict("put", put.id)
            versions[place] = 0 if put.doc is None else put.expect + 1
        if unit.remember is not None and self._is_remembered(unit.remember.scope, unit.remember.key):
            raise Conflict("remember", unit.remember.key)

    # ── what the tables hold ──

    def _log(self, name: str) -> _Log:
        log = self._logs.get(name)
        if log is None:
            row = self._db.execute(
                "SELECT id, (SELECT max(last) FROM log_run WHERE log = log.id), dropped FROM log WHERE name = ?",
                (name,),
            ).fetchone()
            log = _Log()
            if row is not None:
                waiting = self.tail.logs.get(row[0])
                written = -1 if row[1] is None else row[1]
                log = _Log(row[0], written if waiting is None else waiting.last, bool(row[2]))
            self._logs[name] = log
        return log

    def _stream(self, name: str) -> _Stream:
        stream = self._streams.get(name)
        if stream is None:
            row = self._db.execute(
                "SELECT id, removed, (SELECT max(last) FROM stream_run WHERE stream = stream.id)"
                " FROM stream WHERE name = ?",
                (name,),
            ).fetchone()
            stream = _Stream()
            if row is not None:
                waiting = self.tail.streams.get(row[0])
                stream = _Stream(row[0], max(row[1], row[2] or 0) if waiting is None else waiting.last)
            self._streams[name] = stream
        return stream

    def _document(self, kind: str, name: str) -> _Document:
        document = self._documents.get((kind, name))
        if document is None:
            document = _Document()
            row = self._db.execute(
                "SELECT id, version, searched FROM document WHERE kind = ? AND name = ?", (kind, name)
            ).fetchone()
            if row is not None:
                marks = self._db.execute("SELECT facet, value, id FROM mark WHERE document = ?", row[:1])
                found = {(facet, value): id for facet, value, id in marks}
                document = _Document(row[0], row[1], stored=True, marks=found, searched=bool(row[2]))
            self._documents[kind, name] = document
        return document

    def _is_remembered(self, scope: str, key: str) -> bool:
        if (scope, key) in self._rows.remembered:
            return True
        row = self._db.execute("SELECT 1 FROM remembered WHERE scope = ? AND name = ?", (scope, key))
        return row.fetchone() is not None

    # ── units become rows ──

    def _apply(self, unit: Unit) -> None:
        rows = self._rows
        append = unit.append
        text, data, at = 0, b"", 0
        if append is not None:
            log = self._open_log(append.log)
            log.newest = append.n
            text, data, at = self._take_text(), append.data, append.at
            self.tail.row(log.id, append.n, text)
        told = []
        for letter in unit.deliver:
            if letter.data is None:
                told.append(self._tell(letter, text, data, at))
            else:
                self._tell_own(letter, letter.data)
        if append is not None:
            places = encode(told)
            rows.texts += (text, log.id, append.n, at, places, sum_of(places, data), data)
        for put in unit.puts:
            self._put(put)
        if unit.remember is not None:
            rows.remembered[unit.remember.scope, unit.remember.key] = unit.remember
        if unit.drop is not None:
            log = self._open_log(unit.drop.log)
            log.dropped = True
            rows.dropped.append((log.id,))

    def _take_text(self) -> int:
        self.tail.newest += 1
        return self.tail.newest

    def _open_log(self, name: str) -> _Log:
        log = self._log(name)
        if not log.id:
            log.id = self._take_id("log")
            self._rows.logs.append((log.id, name))
        return log

    def _open_stream(self, name: str) -> _Stream:
        stream = self._stream(name)
        if not stream.id:
            stream.id = self._take_id("stream")
            self._rows.streams.append((stream.id, name))
        return stream

    def _tell(self, letter: Deliver, text: int, data: bytes, at: int) -> Told:
        stream = self._streams.get(letter.stream)
        if stream is None or not stream.id:
            stream = self._open_stream(letter.stream)
        position = stream.newest = stream.newest + 1
        kind, own = letter.kind, letter.own
        self.tail.event(stream.id, position, (text, kind, own))
        self._rows.told.append(Event(letter.stream, position, kind, own, data, at))
        return (stream.id, position, kind, own)

    def _tell_own(self, letter: Deliver, data: bytes) -> None:
        text = self._take_text()
        told = self._tell(letter, text, data, letter.at)
        places = encode([told])
        self._rows.texts += (text, None, None, letter.at, places, sum_of(places, data), data)

    def _put(self, put: Put) -> None:
        document = self._document(put.kind, put.id)
        if put.doc is None and not document.version:
            return
        if not document.id:
            document.id = self._take_id("document")
        wanted = [(self._facet(put.kind, name), value) for name, value in put.index]
        if put.doc is None:
            wanted = []
        for mark in document.marks.keys() - wanted:
            self._unmark(document.marks.pop(mark))
        for mark in wanted:
            if mark not in document.marks:
                id = document.marks[mark] = self._take_id("mark")
                self._rows.marks[id] = (id, document.id, *mark)
        document.version = 0 if put.doc is None else put.expect + 1
        document.data = put.doc or b""
        document.found_by = None
        if put.text and put.doc is not None:
            document.found_by = row_of(document.id, put.kind, put.text, put.index)
        self._rows.documents[put.kind, put.id] = document

    def _unmark(self, id: int) -> None:
        if self._rows.marks.pop(id, None) is None:
            self._rows.unmarked.append((id,))

    def _facet(self, kind: str, name: str) -> int:
        facet = self._facets.get((kind, name))
        if facet is None:
            facet = self._facets[kind, name] = max(self._facets.values(), default=0) + 1
            self._rows.facets.append((facet, kind, name))
        return facet

    @property
    def told(self) -> list[Event]:
        """The batch's deliveries, in order."""
        return self._rows.told

    def plain(self) -> Texts | None:
        """The texts of a batch that is nothing else and fits in one statement: what most of them are."""
        rows = self._rows
        if rows.logs or rows.streams or rows.documents or rows.remembered or rows.dropped:
            return None
        return None if self.tail.due or len(rows.texts) > ROWS * COLUMNS else rows.texts

    def pages(self) -> int:
        """Pages that the batch's texts fill, about, and the few that every batch touches."""
        return 3 + sum(map(len, self._rows.texts[COLUMNS - 1 :: COLUMNS])) // 4096  # type: ignore[arg-type]  # data

    def write(self, *, all_indexed: bool = False) -> None:
        """Write the batch's rows inside a transaction. `all_indexed`: and all of the tail with it."""
        rows = self._rows
        many = self._db.executemany
        if rows.logs:
            many("INSERT INTO log (id, name) VALUES (?, ?)", rows.logs)
        if rows.streams:
            many("INSERT INTO stream (id, name) VALUES (?, ?)", rows.streams)
        if rows.texts:
            insert(self._db, TEXT, rows.texts)
        if rows.documents:
            self._write_documents(rows)
        if rows.remembered:
            many(
                "INSERT INTO remembered (scope, name, digest, outcome, until, sum) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (r.scope, r.key, r.digest, r.outcome, r.until, sum_of(r.digest, r.outcome))
                    for r in rows.remembered.values()
                ],
            )
        if (all_indexed or rows.dropped) and self.tail.behind:
            self.tail.flush()
        elif self.tail.due:
            self.tail.flush(len(rows.texts) // COLUMNS + len(rows.told))
        if rows.dropped:
            many("UPDATE log SET dropped = 1 WHERE id = ?", rows.dropped)
            many(DROP_TEXTS, rows.dropped)
            many("DELETE FROM log_run WHERE log = ?", rows.dropped)

    def _write_documents(self, rows: _Rows) -> None:
        many = self._db.executemany
        fresh, changed, gone = [], [], []
        lost: list[tuple[int]] = []
        found: list[Found] = []
        for (kind, name), document in rows.documents.items():
            if document.searched:
                lost.append((document.id,))
            if document.found_by is not None:
                found.append(document.found_by)
            document.searched, document.found_by = document.found_by is not None, None
            searched = int(document.searched)
            if not document.version:
                gone.append((document.id,))
            elif document.stored:
                changed.append(
                    (document.version, document.data, sum_of(document.data), searched, document.id)
                )
            else:
                total = sum_of(document.data)
                fresh.append((document.id, kind, name, document.version, document.data, total, searched))
            document.stored = document.version > 0
            document.data = b""
        for statement, values in (
            (DOCUMENT, fresh),
            ("UPDATE document SET version = ?, data = ?, sum = ?, searched = ? WHERE id = ?", changed),
            ("DELETE FROM document WHERE id = ?", gone),
            ("INSERT INTO facet (id, kind, name) VALUES (?, ?, ?)", rows.facets),
            ("DELETE FROM mark WHERE id = ?", rows.unmarked),
            ("INSERT INTO mark (id, document, facet, value) VALUES (?, ?, ?, ?)", rows.marks.values()),
            (DELETE, lost),
            (INSERT, found),
        ):
            if values:
                many(statement, values)
