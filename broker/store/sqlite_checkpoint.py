"""Checkpoints beside the writer: the write-ahead log goes into the file without holding up commits for long.

SQLite's own checkpoint runs in the commit that crosses its mark: thousands of pages and an fsync while everybody
waits (measured: 50 ms for 4,000 pages). Here a thread of its own, on a connection of its own, moves what is there
while commits go on; what came meanwhile is little, and the writer moves it between two batches. Only so can the log
begin anew: while commits follow on each other there is always something that is not moved yet.
"""

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Final

from broker.store import sqlite_file
from broker.store.sqlite_hand import Hand

PAGES: Final = 1000
"""Pages in the write-ahead log after which it is moved: 4 MiB, about 3,000 envelopes."""


class Checkpointer:
    """A connection that writes nothing of its own, and its thread."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.busy = False
        """From `start` until the writer has moved the rest: then whoever called it sets it back."""
        self._db = db
        self._hand = Hand("store checkpoint", hurry=False)

    def start(self, then: Callable[[], None]) -> None:
        """Move what is there now; `then` is called on the loop, also where it failed: a commit will meet that."""
        self.busy = True
        self._hand.give(self._move, lambda _: then())

    def close(self, then: Callable[[], None]) -> None:
        """Finish what is under way, close the connection, end the thread; `then` is called on the loop."""
        self._hand.give(self._db.close, lambda _: then())
        self._hand.stop()

    def _move(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            sqlite_file.checkpoint(self._db)
