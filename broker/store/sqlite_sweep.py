"""Retention in the embedded store: a bounded step, inside the writer's transaction, when all texts are indexed.

1. A stream's events go from the oldest up to the first young one; `removed` says how far, and a run goes when all
   of it has.
2. An event's age is its text's. One whose text a Drop has taken is older than everything.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import msgspec

from broker.store.port import Retention
from broker.store.sqlite_tail import read_events

LONG: Final = 256
"""A stream that ever had so many events is in the index `stream_long`."""
FORGET: Final = "DELETE FROM remembered WHERE id IN (SELECT id FROM remembered WHERE until < ? LIMIT ?)"
NEXT: Final = "SELECT stream FROM stream_run WHERE stream > ? ORDER BY stream LIMIT 1"
NEXT_LONG: Final = (
    "SELECT stream FROM stream_run WHERE stream > ? AND last >= 256 AND last % 256 < 64"
    " ORDER BY stream LIMIT 1"
)
BOUNDS: Final = (
    "SELECT removed, (SELECT max(last) FROM stream_run WHERE stream = stream.id) FROM stream WHERE id = ?"
)
RUNS: Final = "SELECT last, events FROM stream_run WHERE stream = ? AND last > ? ORDER BY last"
TEXT: Final = "SELECT at, log IS NULL FROM text WHERE id = ?"


class Sweep(msgspec.Struct, frozen=True):
    """Remove what retention lets go; the outcome is how many rows."""

    retention: Retention
    limit: int


def sweep(db: sqlite3.Connection, work: Sweep) -> int:
    """Do it; returns how many rows went. Raises sqlite3.Error."""
    retention, limit = work.retention, work.limit
    removed = db.execute(FORGET, (retention.now, limit)).rowcount
    stream = 0
    # A stream in the short index has so many events at least; with less to keep, look at every stream.
    sql = NEXT_LONG if retention.events_keep >= LONG else NEXT
    while removed < limit and (row := db.execute(sql, (stream,)).fetchone()):
        stream = row[0]
        removed += _sweep_stream(db, stream, retention, limit - removed)
    return removed


def _sweep_stream(db: sqlite3.Connection, stream: int, retention: Retention, limit: int) -> int:
    bounds: tuple[int, int] = db.execute(BOUNDS, (stream,)).fetchone()
    removed, newest = bounds
    upto = min(newest - retention.events_keep, removed + limit)
    old = removed
    own: list[tuple[int]] = []
    for position, text in _events(db, stream, removed):  # mostly the first one is young
        if position > upto:
            break
        at, is_own = db.execute(TEXT, (text,)).fetchone() or (None, False)
        if at is not None and at >= retention.events_before:
            break
        old = position
        if is_own:
            own.append((text,))
    if old > removed:
        db.execute("UPDATE stream SET removed = ? WHERE id = ?", (old, stream))
        db.execute("DELETE FROM stream_run WHERE stream = ? AND last <= ?", (stream, old))
        db.executemany("DELETE FROM text WHERE id = ?", own)
    return old - removed


def _events(db: sqlite3.Connection, stream: int, after: int) -> Iterator[tuple[int, int]]:
    """Position and text of the events that come after."""
    with closing(db.execute(RUNS, (stream, after))) as runs:
        for last, packed in runs:
            run = read_events(last, packed)
            for position, (text, _, _) in enumerate(run.items, run.first):
                if position > after:
                    yield position, text
