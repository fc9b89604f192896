"""Looking through an embedded store or a backup, beside a running broker or not: is it whole?

1. One snapshot is looked at, and nothing is written. Meanwhile the write-ahead log of a running store can't begin anew.
2. What is found is told and not mended; after a fault the next thing is looked at.
3. What a log's rows and a document mean is not known here: broker/actors/check.py goes through them.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from broker.store import sqlite_file
from broker.store.port import Document, Entry, Fault, SchemaTooNew, Step
from broker.store.sqlite_reader import Reader
from broker.store.sqlite_search import misplaced
from broker.store.sqlite_tail import Ref, Run, Tail, Told, encode, read_events
from broker.store.sums import sum_of

FAULTS: Final = 100
"""Lines of SQLite's own check that are asked for."""
PAGE: Final = 500
"""Rows or events read at once."""
SHAPE: Final = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
COMMENT: Final = re.compile(r"--[^\n]*")
LOGS: Final = "SELECT id, name FROM log WHERE dropped = 0 ORDER BY id"
DROPPED: Final = "SELECT count(*) FROM log WHERE dropped = 1"
STREAMS: Final = "SELECT id, name, removed FROM stream ORDER BY id"
RUNS: Final = "SELECT last, events FROM stream_run WHERE stream = ? ORDER BY last"
STRAY: Final = "SELECT count(*) FROM stream_run WHERE stream NOT IN (SELECT id FROM stream)"
TEXTS: Final = "SELECT max(id) FROM text"
ROWS: Final = "SELECT count(*) FROM text JOIN log ON log.id = text.log WHERE log.dropped = 0"
TOLD: Final = (
    "SELECT wanted.key, text.told FROM json_each(?) AS wanted LEFT JOIN text ON text.id = wanted.value"
)
DOCUMENTS: Final = "SELECT name FROM document WHERE kind = ? ORDER BY name"
MARKS: Final = (
    "SELECT facet.name, mark.value FROM document CROSS JOIN mark ON mark.document = document.id"
    " CROSS JOIN facet ON facet.id = mark.facet WHERE document.kind = ? AND document.name = ?"
)
SEARCHED: Final = (
    "SELECT kept.c0, kept.c1, kept.c2 FROM document JOIN search_content AS kept ON kept.id = document.id"
    " WHERE document.kind = ? AND document.name = ?"
)

TEXT_SUMS: Final = (
    "SELECT text.id, log.name, text.n, text.sum, text.told, text.data"
    " FROM text LEFT JOIN log ON log.id = text.log WHERE text.sum IS NOT NULL"
)
DOCUMENT_SUMS: Final = "SELECT kind, name, sum, data FROM document WHERE sum IS NOT NULL"
ANSWER_SUMS: Final = "SELECT scope, sum, digest, outcome FROM remembered WHERE sum IS NOT NULL"

_told = msgspec.json.Decoder(list[Told])


class Snapshot:
    """A store at one moment."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._tail = Tail(db)
        self._reader = Reader(db, self._tail)

    def size(self) -> int:
        """How many rows and events there are to look at, about."""
        texts = self._db.execute(TEXTS).fetchone()[0] or 0
        return int(texts) + sum(self._reader.head(name).newest for _, name, _ in self._streams())

    def pages(self) -> Iterator[Fault]:
        """What SQLite's own check finds: pages, indexes, and what may not be NULL or twice."""
        try:
            yield from self._pages("integrity_check")
        except sqlite3.Error as error:
            # A page that it trips over ends it before it has named any; the quick one only walks the pages.
            yield Fault("pages", sqlite_file.FILE, f"the indexes can't be compared: {error}")
            yield from self._pages("quick_check")
        try:
            for name in misplaced(self._db):
                words = "is not found by its words" if name else "words lead to no document"
                yield Fault("document" if name else "pages", name or "search", words)
        except sqlite3.Error as error:
            yield Fault("pages", "search", f"the index of words can't be read: {error}")

    def _pages(self, pragma: str) -> Iterator[Fault]:
        for (text,) in self._db.execute(f"PRAGMA {pragma}({FAULTS})"):
            if text != "ok":
                yield Fault("pages", sqlite_file.FILE, " ".join(text.split()))

    def sums(self) -> Iterator[Fault]:
        """Texts, documents and remembered answers that are not what was written, by the sums beside them."""
        for id, log, n, total, told, data in self._db.execute(TEXT_SUMS):
            if total != sum_of(told, data):
                yield Fault("text", log or str(id), "is not what was written", n)
        for kind, name, total, data in self._db.execute(DOCUMENT_SUMS):
            if total != sum_of(data):
                yield Fault("document", name, f"is not what was written ({kind})")
        for scope, total, digest, outcome in self._db.execute(ANSWER_SUMS):
            if total != sum_of(digest, outcome):
                yield Fault("answer", scope, "is not what was written")

    def logs(self) -> list[str]:
        """The names of the logs that have rows."""
        return [name for _, name in self._db.execute(LOGS)]

    def rows(self, log: str) -> list[Entry]:
        """All rows of a log. Raises sqlite3.Error."""
        found: list[Entry] = []
        while True:
            page = self._reader.entries(log, found[-1].n if found else -1, PAGE)
            found += page
            if len(page) < PAGE:
                return found

    def count_rows(self) -> int:
        """How many rows all logs have, counted where the texts are."""
        return int(self._db.execute(ROWS).fetchone()[0])

    def document(self, kind: str, id: str) -> Document | None:
        """A document. Raises sqlite3.Error."""
        return self._reader.get(kind, id)

    def documents(self, kind: str) -> Iterator[Document]:
        """All documents of a kind. Raises sqlite3.Error."""
        with closing(self._db.execute(DOCUMENTS, (kind,))) as names:
            for (name,) in names:
                if (found := self._reader.get(kind, name)) is not None:
                    yield found

    def marks(self, kind: str, id: str) -> set[tuple[str, str | int]]:
        """The index rows of a document. Raises sqlite3.Error."""
        return set(self._db.execute(MARKS, (kind, id)))

    def searched(self, kind: str, id: str) -> tuple[str, ...]:
        """The words of each field that a document is found by; () where it is not. Raises sqlite3.Error."""
        row = self._db.execute(SEARCHED, (kind, id)).fetchone()
        return () if row is None else tuple(row)

    def streams(self) -> Iterator[Step]:
        """Each stream's positions follow each other, and each event's text knows of it."""
        may_lack = bool(self._db.execute(DROPPED).fetchone()[0])
        if stray := self._db.execute(STRAY).fetchone()[0]:
            yield Fault("stream", "", f"{stray} runs of events belong to no stream")
        for id, name, removed in self._streams():
            try:
                yield from self._stream(id, name, removed, may_lack)
            except (sqlite3.Error, msgspec.MsgspecError) as error:
                yield Fault("stream", name, f"can't be read: {error}")

    def _streams(self) -> list[tuple[int, str, int]]:
        return list(self._db.execute(STREAMS))

    def _stream(self, id: int, name: str, removed: int, may_lack: bool) -> Iterator[Step]:
        due: int | None = None
        for run in self._runs(id):
            if due is None and run.first > removed + 1:
                yield Fault(
                    "stream", name, f"{removed + 1} is the oldest kept, and it is missing", removed + 1
                )
            elif due is not None and run.first != due:
                yield Fault("stream", name, f"an event is at {run.first} where {due} is due", due)
            due = run.last + 1
            kept = run.items[max(removed + 1 - run.first, 0) :]
            first = run.last - len(kept) + 1
            texts = encode([text for text, _, _ in kept]).decode()
            for key, told in self._db.execute(TOLD, (texts,)):
                if told is None and not may_lack:
                    yield Fault("stream", name, "the event's text is missing", first + key)
                elif told is not None and not _knows(told, id, first + key, kept[key]):
                    yield Fault("stream", name, "the event's text belongs to another event", first + key)
            yield len(kept)

    def _runs(self, stream: int) -> Iterator[Run[Ref]]:
        for last, packed in self._db.execute(RUNS, (stream,)).fetchall():
            yield read_events(last, packed)
        if (waiting := self._tail.streams.get(stream)) is not None:
            yield waiting


def _knows(told: bytes, stream: int, position: int, ref: Ref) -> bool:
    """Whether a text was told to this event. One that an older schema wrote does not say."""
    events = _told.decode(told)
    return not events or (stream, position, ref[1], ref[2]) in events


@contextmanager
def opened(path: Path) -> Iterator[tuple[Snapshot | None, list[Fault]]]:
    """A snapshot of a store's or a backup's file, with what is wrong with its schema; None where it is of no use.

    Raises NotAStore, SchemaTooNew, OSError.
    """
    version, _ = sqlite_file.judge(path)
    newest = max(step for step, _ in sqlite_file.schema())
    if version > newest:
        raise SchemaTooNew(f"{path} has schema {version}; this Turret knows up to {newest}")
    faults: list[Fault] = []
    snapshot: Snapshot | None = None
    with closing(sqlite_file.connect_reading(path)) as db:
        try:
            db.execute("BEGIN")
            db.execute("PRAGMA cache_size = -32768")
            if version < newest:
                words = f"schema {version} is older than this Turret's {newest}: serve or restore it once"
                faults.append(Fault("schema", "version", words))
            else:
                faults += _shape(db)
                snapshot = Snapshot(db)
        except sqlite3.Error as error:
            faults.append(Fault("schema", "", f"the store can't be read: {error}"))
        yield snapshot, faults


def _shape(db: sqlite3.Connection) -> Iterator[Fault]:
    """How its tables and indexes differ from those of a new store."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        sqlite_file.bring_up(fresh, 0)
        want = {(type, name): _plain(sql) for type, name, sql in fresh.execute(SHAPE)}
    have = {(type, name): _plain(sql) for type, name, sql in db.execute(SHAPE)}
    for type, name in sorted(want.keys() | have.keys()):
        if (type, name) not in have:
            yield Fault("schema", name, f"the {type} is missing")
        elif (type, name) not in want:
            yield Fault("schema", name, f"the {type} is none of this schema")
        elif have[type, name] != want[type, name]:
            yield Fault("schema", name, f"the {type} is not as this schema has it")


def _plain(sql: str) -> str:
    """A statement as SQLite keeps it, without the comments and line ends that are kept too."""
    return " ".join(COMMENT.sub("", sql).split())
