"""Full text search in the embedded store: FTS5, asked with words of ours alone.

1. Words reach the query in quotes, and hold neither a quote nor any other sign of its language.
2. An index row is a word too, of a column of its own, so that a filter is a part of the same look-up.
3. A search runs in a thread, on a connection of its own, one at a time: however much it finds, the loop goes on.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Final, Literal

import trio

from broker.store.port import FIELDS, Document, Unavailable
from broker.store.sums import damaged, sum_of
from broker.store.words import query, words

COLUMNS: Final = ("first", "second", "third")
WAITING: Final = 64
"""Searches that may wait for their turn: the longest take 20 ms each where 10,000 documents are."""
RANK: Final = 1 << 48
"""A hit's place is its rank and, falling, its document's number: there are fewer than this."""
MATCH: Final = (
    "SELECT document.name, document.version, document.data, search.rowid, document.sum, document.kind"
    " FROM search LEFT JOIN document ON document.id = search.rowid"
    " WHERE search MATCH ? AND search.rowid < ? ORDER BY search.rowid DESC LIMIT ?"
)
INSERT: Final = "INSERT INTO search (rowid, first, second, third, marks) VALUES (?, ?, ?, ?, ?)"
DELETE: Final = "DELETE FROM search WHERE rowid = ?"

VOCABULARY: Final = "CREATE VIRTUAL TABLE temp.search_words USING fts5vocab('main', 'search', 'instance')"
WORDS: Final = "SELECT doc, col, term FROM temp.search_words"
KEPT: Final = (
    "SELECT kept.id, document.name, kept.c0, kept.c1, kept.c2, kept.c3"
    " FROM search_content AS kept LEFT JOIN document ON document.id = kept.id"
    " UNION ALL SELECT id, name, NULL, NULL, NULL, NULL FROM document"
    " WHERE searched AND id NOT IN (SELECT id FROM search_content)"
)

Row = tuple[int, str, str, str, str]


def row_of(document: int, kind: str, text: Sequence[str], index: Sequence[tuple[str, str | int]]) -> Row:
    """The row by which a document is found."""
    first, second, third = (" ".join(words(each)) for each in (*text, "", "", "")[:FIELDS])
    marks = [_mark(kind), *(_mark(kind, name, value) for name, value in index if isinstance(value, str))]
    return document, first, second, third, " ".join(marks)


def _mark(*parts: str) -> str:
    """One word for a kind, or for an index row of a kind."""
    sized = b"".join(b"%d:%b" % (len(each), each) for each in map(str.encode, parts))
    return blake2b(sized, digest_size=10).hexdigest()


def matches(kind: str, text: str | None, marks: Sequence[tuple[str, str]]) -> list[str]:
    """The queries that find the hits, a rank each, the best first."""
    wanted = [_mark(kind), *(_mark(kind, name, value) for name, value in marks)]
    filtered = "marks : (" + " AND ".join(f'"{each}"' for each in wanted) + ")"
    if text is None:
        return [filtered]
    looked_for = query(text)
    if not looked_for:
        return []
    every = "(" + " AND ".join(f'"{word}"' for word in looked_for) + "*)"
    within = ["{" + " ".join(COLUMNS[: rank + 1]) + "} : " + every for rank in range(FIELDS)]
    ranked = [within[0], *(f"({more} NOT {less})" for less, more in pairwise(within))]
    return [f"{each} AND {filtered}" for each in ranked]


def misplaced(db: sqlite3.Connection) -> Iterator[str]:
    """The names of documents that the index of words does not find by what it should; "" for one that is no document's.
    Reads all of it. Raises sqlite3.Error."""
    db.execute(VOCABULARY)
    try:
        found: dict[int, int] = {}
        for id, column, word in db.execute(WORDS):
            found[id] = found.get(id, 0) ^ hash((column, word))
        for id, name, *fields in db.execute(KEPT):
            total = 0
            for column, field in zip((*COLUMNS, "marks"), fields, strict=True):
                for word in set(str(field or "").split()):
                    total ^= hash((column, word))
            if name is None or fields[-1] is None or found.pop(id, 0) != total:
                yield name or ""
        if found:
            yield ""
    finally:
        db.execute("DROP TABLE temp.search_words")


class Searcher:
    """The port's search, on a connection that can't write. `hop`: as the store has it."""

    def __init__(self, db: sqlite3.Connection, hop: Literal["thread", "inline"]) -> None:
        self._db = db
        self._hop = hop
        self._turn = trio.Lock()
        self._closed = False

    async def search(
        self, kind: str, text: str | None, marks: Sequence[tuple[str, str]], after: int, limit: int
    ) -> list[Document]:
        """See the port. Raises Unavailable, sqlite3.Error; cancelling is heard once the search is done."""
        asked = matches(kind, text, marks)
        if self._turn.statistics().tasks_waiting >= WAITING:
            raise Unavailable("too many search at once")
        async with self._turn:
            if self._closed:
                raise Unavailable("the store is closed")
            if self._hop == "inline":
                return self._find(kind, asked, after, limit)
            return await trio.to_thread.run_sync(self._find, kind, asked, after, limit)

    def _find(self, kind: str, asked: Sequence[str], after: int, limit: int) -> list[Document]:
        """All ranks in one snapshot, so that none is found twice."""
        found: list[Document] = []
        past = max(after, 0)
        self._db.execute("BEGIN")
        try:
            for rank in range(past // RANK, len(asked)):
                below = (rank + 1) * RANK - max(past, rank * RANK)
                for row in self._db.execute(MATCH, (asked[rank], below, max(limit, 0) - len(found))):
                    found.append(_document(kind, rank, row))
                if len(found) >= limit:
                    break
        finally:
            self._db.execute("COMMIT")
        return found

    async def close(self) -> None:
        """Close the connection, after the search that is under way."""
        async with self._turn:
            self._closed = True
            self._db.close()


def _document(kind: str, rank: int, row: tuple[str | None, int, bytes, int, int | None, str]) -> Document:
    name, version, data, id, total, its = row
    if name is None or its != kind or total not in (None, sum_of(data)):
        raise damaged(f"a document of {kind}")
    return Document(name, version, data, (rank + 1) * RANK - id)
