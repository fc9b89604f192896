"""All writing of the embedded store: one transaction for as many units as wait.

1. One thread at a time calls it; it knows neither loop nor clock.
2. What failed before COMMIT is certainly not written: each unit is tried again alone.
3. What failed in COMMIT is in doubt unless SQLite's answer says that it is not, and then nothing is written until
   the store is opened anew: after a failed fsync nobody knows what the page cache holds.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from broker.store.port import Event, InDoubt, Retention, Unavailable, Unit
from broker.store.sqlite_stage import Stage

LONG: Final = 256
"""The step of the index `event_long`: a stream with so many events is in it."""


class Sweep(msgspec.Struct, frozen=True):
    """Remove what retention lets go; the outcome is how many rows."""

    retention: Retention
    limit: int


Work = Unit | Sweep
Outcome = Exception | int | None
"""None: written. An exception: raise it. A number: Sweep's."""


class Result(msgspec.Struct):
    """What became of each work, and the deliveries of those written, in order."""

    outcomes: list[Outcome]
    told: list[Event]


class Staged(msgspec.Struct):
    """A transaction that is complete but for its COMMIT."""

    works: Sequence[Work]
    outcomes: list[Outcome]
    told: list[Event]
    written: bool
    """False: nothing was written (all conflicts), so that its COMMIT does not reach the disk."""


class Writer:
    """The writing connection. A batch is `stage` then `complete`, or `run`, which is both."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.broken: str | None = None
        """Why nothing is written until the store is opened anew, or None."""
        self.db = db
        self._stage = Stage(db)

    def run(self, works: Sequence[Work]) -> Result:
        """Do it all, in order, in one transaction where possible. Never raises for a unit's sake."""
        try:
            staged = self.stage(works)
        except Exception as error:
            return self.run_each(works, error)
        return self.complete(staged)

    def stage(self, works: Sequence[Work]) -> Staged:
        """Open a transaction and write all rows into it; `complete` must be called next.

        Raises what went wrong before COMMIT; everything is then rolled back: call `run_each`.
        """
        if self.broken is not None:
            raise Unavailable(self.broken)
        before = self.db.total_changes
        self._stage.begin()
        try:
            self.db.execute("BEGIN IMMEDIATE")
            outcomes: list[Outcome] = [
                self._stage.add(work) if isinstance(work, Unit) else None for work in works
            ]
            told = self._stage.write()
            for index, work in enumerate(works):
                if isinstance(work, Sweep):
                    outcomes[index] = self._sweep(work.retention, work.limit)
        except BaseException:
            self._rollback()
            raise
        return Staged(works, outcomes, told, self.db.total_changes > before)

    def complete(self, staged: Staged) -> Result:
        """Make durable what was staged. Never raises for a unit's sake."""
        try:
            self.finish()
        except sqlite3.Error as error:
            self._rollback()
            # FULL comes from a write before the frame that commits; BUSY before any write.
            if getattr(error, "sqlite_errorname", "") in ("SQLITE_FULL", "SQLITE_BUSY"):
                return self.run_each(staged.works, error)
            self.broken = f"a commit failed: {error}"
            return Result([InDoubt(self.broken) for _ in staged.works], [])
        return Result(staged.outcomes, staged.told)

    def finish(self) -> None:
        """COMMIT: returns when the rows are on disk. A seam of its own for tests that break it."""
        self.db.execute("COMMIT")

    def run_each(self, works: Sequence[Work], error: Exception) -> Result:
        """After `error` rolled all of it back: each alone, so that one bad unit does not fail the others."""
        if len(works) == 1:
            return Result([_certain(error)], [])
        result = Result([], [])
        for work in works:
            alone = self.run((work,))
            result.outcomes += alone.outcomes
            result.told += alone.told
        return result

    def close(self) -> None:
        """Move the write-ahead log into the file and close the connection."""
        with contextlib.suppress(sqlite3.Error):  # it is durable where it is; the next start moves it
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()

    def _rollback(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            self._stage.forget()
        except sqlite3.Error as error:
            self.broken = f"a rollback failed: {error}"

    def _sweep(self, retention: Retention, limit: int) -> int:
        removed = self.db.execute(
            "DELETE FROM remembered WHERE id IN (SELECT id FROM remembered WHERE until < ? LIMIT ?)",
            (retention.now, limit),
        ).rowcount
        stream = 0
        # A stream in the short index has so many events at least; with less to keep, look at every stream.
        long = f"AND position % {LONG} = 0" if retention.events_keep >= LONG else ""
        sql = f"SELECT stream FROM event WHERE stream > ? {long} ORDER BY stream LIMIT 1"  # noqa: S608
        while removed < limit and (row := self.db.execute(sql, (stream,)).fetchone()):
            stream = row[0]
            removed += self._sweep_stream(stream, retention, limit - removed)
        return removed

    def _sweep_stream(self, stream: int, retention: Retention, limit: int) -> int:
        newest = self.db.execute("SELECT max(position) FROM event WHERE stream = ?", (stream,)).fetchone()[0]
        oldest = self.db.execute(
            "SELECT position, at FROM event WHERE stream = ? AND position <= ? ORDER BY position LIMIT ?",
            (stream, newest - retention.events_keep, limit),
        )
        old = 0
        for position, at in oldest:  # mostly the first one is young: no list
            if at >= retention.events_before:
                break
            old = position
        oldest.close()
        if not old:
            return 0
        self.db.execute("UPDATE stream SET removed = ? WHERE id = ?", (old, stream))
        return self.db.execute("DELETE FROM event WHERE stream = ? AND position <= ?", (stream, old)).rowcount


def _certain(error: Exception) -> Exception:
    """What a unit that certainly was not written is answered with."""
    of_the_unit = (
        sqlite3.ProgrammingError,
        sqlite3.InterfaceError,
        sqlite3.IntegrityError,
        sqlite3.DataError,
    )
    if not isinstance(error, sqlite3.Error) or isinstance(error, of_the_unit):
        return error  # a fault of whoever made it; trying again would not help
    unavailable = Unavailable(str(error))
    unavailable.__cause__ = error
    return unavailable
