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

from broker.store import sqlite_file
from broker.store.port import Event, InDoubt, Unavailable, Unit
from broker.store.sqlite_stage import TEXT, Stage, Texts
from broker.store.sqlite_sweep import Sweep, sweep
from broker.store.sqlite_tail import insert

OF_THE_UNIT: Final = (
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
)
"""SQLite's errors that are a fault of whoever made the unit; they come before anything is committed."""

Work = Unit | Sweep
Outcome = Exception | int | None
"""None: written. An exception: raise it. A number: Sweep's."""


class Result(msgspec.Struct):
    """What became of each work, and the deliveries of those written, in order."""

    outcomes: list[Outcome]
    told: list[Event]


class Staged(msgspec.Struct):
    """A batch that is complete but for what makes it durable."""

    works: Sequence[Work]
    outcomes: list[Outcome]
    told: list[Event]
    texts: Texts | None
    """All that is to be written, where one statement can; None: a transaction is open and awaits its COMMIT."""
    pages: int
    """What it takes of the write-ahead log, about. 0: nothing is written (all conflicts), and completing it does not
    reach the disk."""


class Writer:
    """The writing connection. A batch is `stage` then `complete`, or `run`, which is both."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.broken: str | None = None
        """Why nothing is written until the store is opened anew, or None."""
        self.db = db
        self._stage = Stage(db)
        self.tail = self._stage.tail
        """What a reader must look at beside the tables."""
        self.pages = 0
        """Pages that the write-ahead log holds and the file does not, about."""

    def run(self, works: Sequence[Work]) -> Result:
        """Do it all, in order, in one transaction where possible. Never raises for a unit's sake."""
        try:
            staged = self.stage(works)
        except Exception as error:
            return self.run_each(works, error)
        return self.complete(staged)

    def stage(self, works: Sequence[Work]) -> Staged:
        """Check and order all of it, and write it into an open transaction unless one statement can do that
        later; `complete` must be called next.

        Raises what went wrong; everything is then rolled back: call `run_each`.
        """
        if self.broken is not None:
            raise Unavailable(self.broken)
        stage = self._stage
        stage.begin()
        try:
            outcomes: list[Outcome] = [stage.add(work) if isinstance(work, Unit) else None for work in works]
            sweeps = {index: work for index, work in enumerate(works) if isinstance(work, Sweep)}
            texts = None if sweeps else stage.plain()
            if texts is not None:
                return Staged(works, outcomes, stage.told, texts, stage.pages() if texts else 0)
            before = self.db.total_changes
            self.db.execute("BEGIN IMMEDIATE")
            stage.write(all_indexed=bool(sweeps))
            for index, work in sweeps.items():
                outcomes[index] = sweep(self.db, work)
        except BaseException:
            self._rollback()
            raise
        changes = self.db.total_changes - before
        return Staged(works, outcomes, stage.told, None, stage.pages() + changes if changes else 0)

    def complete(self, staged: Staged) -> Result:
        """Make durable what was staged. Never raises for a unit's sake."""
        if staged.texts is not None and not staged.pages:
            return Result(staged.outcomes, [])
        try:
            self.finish(staged.texts)
        except Exception as error:
            self._rollback()
            if _is_certain(error):
                return self.run_each(staged.works, error)
            if _is_of_a_write(error) and sqlite_file.quota_is_used_up(self.db, staged.pages):
                return self.run_each(staged.works, sqlite3.OperationalError("the disk quota is used up"))
            self.broken = f"a commit failed: {error}"
            return Result([InDoubt(self.broken) for _ in staged.works], [])
        self.tail.landed()
        self.pages += staged.pages
        return Result(staged.outcomes, staged.told)

    def finish(self, texts: Texts | None) -> None:
        """Returns when the rows are on disk. A seam of its own for tests that break it."""
        if texts is None:
            self.db.execute("COMMIT")
        else:
            insert(self.db, TEXT, texts)

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

    def checkpoint(self) -> None:
        """Move what is left of the write-ahead log into the file. Between two batches; a Checkpointer has moved most
        of it before, so that this takes no longer than a few commits."""
        self.pages = 0
        with contextlib.suppress(sqlite3.Error):  # a disk that fails is met by the next commit
            self.pages = sqlite_file.checkpoint(self.db)

    def close(self) -> None:
        """Index what is not yet, move the write-ahead log into the file and close the connection."""
        with contextlib.suppress(sqlite3.Error):  # it is durable where it is; the next start moves it
            if self.broken is None and self.tail.behind:
                self.db.execute("BEGIN IMMEDIATE")
                self.tail.flush()
                self.db.execute("COMMIT")
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()

    def _rollback(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            self._stage.forget()
        except sqlite3.Error as error:
            self.broken = f"a rollback failed: {error}"


def _is_certain(error: Exception) -> bool:
    """Whether what failed is certainly not written: FULL comes from a write before the frame that commits, BUSY
    and READONLY before any write, and what is no SQLite error from before the statement ran."""
    name = getattr(error, "sqlite_errorname", "")
    return (
        not isinstance(error, sqlite3.Error)
        or name.startswith(("SQLITE_FULL", "SQLITE_BUSY", "SQLITE_READONLY"))
        or isinstance(error, OF_THE_UNIT)
    )


def _is_of_a_write(error: Exception) -> bool:
    """Whether a frame could not be written, or no room be made for it: this comes before the frame that commits."""
    return getattr(error, "sqlite_errorname", "") in ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")


def _certain(error: Exception) -> Exception:
    """What a unit that certainly was not written is answered with."""
    if not isinstance(error, sqlite3.Error) or isinstance(error, OF_THE_UNIT):
        return error  # a fault of whoever made it; trying again would not help
    unavailable = Unavailable(str(error))
    unavailable.__cause__ = error
    return unavailable
