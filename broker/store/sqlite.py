"""The embedded adapter of the store's port: SQLite in WAL mode, one writer with group commit.

1. Nothing is acknowledged before COMMIT has returned with synchronous=FULL.
2. What waits while a commit runs is committed together by the next; one callback wakes all of it.
3. Reads have a connection of their own and run on the loop: a row costs a few µs, a hop to a thread 55 to 150.

Rows are staged on the loop and only COMMIT goes to the thread: each statement there would have to win the
interpreter back from a busy loop. A virtual clock takes a task that waits for a thread for an idle one and jumps;
tests on it pass hop="inline".
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar

import outcome
import trio

from broker.histogram import Histogram
from broker.store import sqlite_file
from broker.store.complaints import Complaints
from broker.store.port import (
    Document,
    Entry,
    Event,
    Head,
    InDoubt,
    Listener,
    Remembered,
    Retention,
    StoreStatistics,
    Then,
    Unavailable,
    Unit,
)
from broker.store.sqlite_checkpoint import PAGES, Checkpointer
from broker.store.sqlite_hand import Hand
from broker.store.sqlite_reader import Reader
from broker.store.sqlite_search import Searcher
from broker.store.sqlite_sweep import Sweep
from broker.store.sqlite_writer import Outcome, Result, Work, Writer
from broker.tick import tick_end

BATCH: Final = 256
"""Units committed together at most: staging them takes the loop 3 ms, and more together gains little."""
UNITS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COMMIT_S: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
CHECKPOINT_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
"""The edges of what `statistics` tells."""
CLOSE_S: Final = 30.0
"""Seconds that closing waits for the writer; a disk that takes longer is wedged."""

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)


_Letter = tuple[Work, Callable[[Any], object]]
"""A work, and who is told what became of it, on the loop."""


class _Waiter:
    """Who is told is a task, which then goes on; nobody once it was cancelled."""

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

    def __call__(self, answer: Outcome) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task, _captured(answer))

    def abort(self, _: object) -> trio.lowlevel.Abort:
        self._task = None  # the unit goes its way
        return trio.lowlevel.Abort.SUCCEEDED


class SqliteStore:
    """A store in one directory. See broker.store.port.Store for the contract."""

    def __init__(
        self,
        directory: Path,
        *,
        hop: Literal["thread", "inline"] = "thread",
    ) -> None:
        """Open the store in `directory`, making both where there is none (modes 0600 and 0700).

        Takes milliseconds however much is stored. Raises InUse, NotAStore, SchemaTooNew, OSError, sqlite3.Error;
        nothing stays open then.
        """
        self._directory = directory
        with ExitStack() as undo:
            self._lock = sqlite_file.lock(directory)
            undo.callback(os.close, self._lock)
            path = sqlite_file.prepare(directory)
            writing = undo.enter_context(closing(sqlite_file.connect(path)))
            reading = undo.enter_context(closing(sqlite_file.connect(path, writer=False)))
            self.writer = Writer(writing)
            self._reader = Reader(reading, self.writer.tail, judge=True)
            self._searcher = Searcher(
                undo.enter_context(closing(sqlite_file.connect(path, writer=False))), hop
            )
            moving = undo.enter_context(closing(sqlite_file.connect(path))) if hop == "thread" else None
            undo.pop_all()
        self._hand = Hand("store") if hop == "thread" else None
        self._checkpointer = Checkpointer(moving) if moving is not None else None
        self._rest = False
        """Whether the writer is to move the rest of a checkpoint before the next batch."""
        self._queue: list[_Letter] = []
        self._pumping = False
        """Whether a batch is under way or about to be; the writer is then not ours."""
        self._drained = trio.Event()
        self._closed = False
        self._listener: Listener | None = None
        self._complaints = Complaints(log)
        self._units, self._commits = Histogram(UNITS), Histogram(COMMIT_S)
        self._checkpoints = Histogram(CHECKPOINT_S)
        self._began = self._moving = 0.0
        """When the batch, and the checkpoint, that are under way began."""

    @classmethod
    async def open(cls, directory: Path, *, hop: Literal["thread", "inline"] = "thread") -> "SqliteStore":
        """The same as a call of the class, and a checkpoint."""
        await trio.lowlevel.checkpoint()
        return cls(directory, hop=hop)

    @property
    def broken(self) -> str | None:
        """See the port."""
        return self.writer.broken

    # ── writing ──

    async def commit(self, unit: Unit) -> None:
        await self._wait_for(unit)

    async def sweep(self, retention: Retention, limit: int = 1000) -> int:
        return await self._wait_for(Sweep(retention, limit)) or 0

    def submit(self, unit: Unit, then: Then) -> None:
        if self._closed:
            trio.lowlevel.current_trio_token().run_sync_soon(then, Unavailable("the store is closed"))
        else:
            self._put((unit, then))

    async def _wait_for(self, work: Work) -> int | None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            await trio.lowlevel.cancel_shielded_checkpoint()
            raise Unavailable("the store is closed")
        waiter = _Waiter()
        self._put((work, waiter))
        answer: int | None = await trio.lowlevel.wait_task_rescheduled(waiter.abort)
        return answer

    def _put(self, letter: _Letter) -> None:
        self._queue.append(letter)
        if not self._pumping:
            # Not at once: what other tasks of this tick commit goes into the same batch.
            self._pumping = True
            tick_end().add(self._pump, vital=True)

    def _pump(self) -> None:
        batch = self._queue[:BATCH]
        del self._queue[:BATCH]
        self._began = time.perf_counter()
        job, at_once = self._prepare([work for work, _ in batch])
        if self._hand is None or at_once:
            # Not here: what follows may wake tasks, and where a tick ends the loop has settled how long it sleeps.
            trio.lowlevel.current_trio_token().run_sync_soon(self._do, batch, job)
        else:
            self._hand.give(job, partial(self._finish, batch))

    def _do(self, batch: list[_Letter], job: Callable[[], Result]) -> None:
        self._finish(batch, job())

    def _prepare(self, works: list[Work]) -> tuple[Callable[[], Result], bool]:
        """What is left to do for these works, and whether it does not wait for the disk."""
        if self._hand is None or any(map(_is_heavy, works)):
            return partial(self.writer.run, works), False
        try:
            staged = self.writer.stage(works)
        except Exception as error:
            return partial(self.writer.run_each, works, error), False
        return partial(self.writer.complete, staged), not staged.pages

    def _finish(self, batch: list[_Letter], result: Result) -> None:
        self._commits.add(time.perf_counter() - self._began)
        self._units.add(len(batch))
        if result.told and self._listener is not None:
            try:
                self._listener(result.told)
            except Exception:
                # What is written is written; an exception here would end the whole run (Trio, run_sync_soon).
                log.exception("the listener failed")
        for (_, then), answer in zip(batch, result.outcomes, strict=True):
            if isinstance(answer, Unavailable | InDoubt):
                self._complain(answer)
            try:
                then(answer)
            except Exception:
                log.exception("what was to follow a commit failed")
        self._go_on()

    def _complain(self, failed: Unavailable | InDoubt) -> None:
        if self.broken is not None:
            self._complaints.say(f"nothing is written until the store is opened anew: {self.broken}")
        else:
            self._complaints.say(f"a commit was refused: {failed}")

    def _go_on(self) -> None:
        """What follows a batch, or ends a pause: the rest of a checkpoint, the next batch, or nothing."""
        if self.writer.pages >= PAGES:
            self._checkpoint()
        if self._rest and self._hand is not None:
            self._rest = False
            self._hand.give(self.writer.checkpoint, self._moved)
        elif not self._queue:
            self._pumping = False
            if self._closed:
                self._drained.set()
        else:
            self._pump()

    def _checkpoint(self) -> None:
        if self._checkpointer is None:
            self._moving = time.perf_counter()
            self.writer.checkpoint()
            self._checkpoints.add(time.perf_counter() - self._moving)
        elif not self._checkpointer.busy and not self._closed:
            self._moving = time.perf_counter()
            self._checkpointer.start(self._move_rest)

    def _move_rest(self) -> None:
        self._rest = True
        if not self._pumping and not self._closed:
            self._pumping = True
            self._go_on()

    def _moved(self, _: object) -> None:
        assert self._checkpointer is not None
        self._checkpointer.busy = False
        self._checkpoints.add(time.perf_counter() - self._moving)
        self._go_on()

    def watch(self, listener: Listener | None) -> None:
        if listener is not None and self._listener is not None:
            raise RuntimeError("a store has one listener")
        self._listener = listener

    # ── reading ──

    async def _read(self, query: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await trio.lowlevel.checkpoint()
        if self._closed:
            raise Unavailable("the store is closed")
        try:
            return query(*args, **kwargs)
        except sqlite3.Error as error:
            self._complaints.say(f"can't read: {error}")
            raise Unavailable(f"can't read: {error}") from error

    async def entries(self, log: str, after: int = -1, limit: int = 100) -> list[Entry]:
        return await self._read(self._reader.entries, log, after, limit)

    async def tail(self, log: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        return await self._read(self._reader.tail, log, before, limit)

    async def get(self, kind: str, id: str) -> Document | None:
        return await self._read(self._reader.get, kind, id)

    async def find(
        self, kind: str, name: str, value: str, after: int = 0, limit: int = 100, *, newest: bool = False
    ) -> list[Document]:
        return await self._read(self._reader.find, kind, name, value, after, limit, newest)

    async def search(
        self,
        kind: str,
        text: str | None,
        marks: Sequence[tuple[str, str]] = (),
        after: int = 0,
        limit: int = 100,
    ) -> list[Document]:
        await trio.lowlevel.checkpoint()
        try:
            return await self._searcher.search(kind, text, marks, after, limit)
        except sqlite3.Error as error:
            self._complaints.say(f"can't search: {error}")
            raise Unavailable(f"can't search: {error}") from error

    async def due(self, kind: str, name: str, upto: int, limit: int = 100) -> list[Document]:
        return await self._read(self._reader.due, kind, name, upto, limit)

    async def recall(self, scope: str, key: str) -> Remembered | None:
        return await self._read(self._reader.recall, scope, key)

    async def head(self, stream: str) -> Head:
        return await self._read(self._reader.head, stream)

    async def events(self, stream: str, after: int, limit: int = 100) -> list[Event]:
        return await self._read(self._reader.events, stream, after, limit)

    def free_bytes(self) -> int:
        space = os.statvfs(self._directory)
        return space.f_bavail * space.f_frsize

    def statistics(self) -> StoreStatistics:
        file = self._directory / sqlite_file.FILE
        return StoreStatistics(
            units=self._units,
            commits=self._commits,
            checkpoints=self._checkpoints,
            file_bytes=sqlite_file.size_of(file),
            log_bytes=sqlite_file.size_of(file.with_name(f"{file.name}-wal")),
        )

    # ── the end ──

    async def aclose(self) -> None:
        """Finish what was given to `commit`, move the write-ahead log into the file, close, let the lock go.

        Cancelling does not hurry it; a writer that takes longer than CLOSE_S is left alone with the lock.
        """
        if not self._closed:
            self._closed = True
            with trio.move_on_after(CLOSE_S, shield=True):
                if self._pumping:
                    await self._drained.wait()
                await self._close()
        await trio.lowlevel.checkpoint()

    async def _close(self) -> None:
        self._reader.close()
        await self._searcher.close()
        if self._hand is None or self._checkpointer is None:
            self.writer.close()
        else:
            moved, closed = trio.Event(), trio.Event()
            self._checkpointer.close(moved.set)
            await moved.wait()
            self._hand.give(self.writer.close, lambda _: closed.set())
            self._hand.stop()
            await closed.wait()
        os.close(self._lock)


def _is_heavy(work: Work) -> bool:
    """Whether staging it may touch many rows, so that the loop should not wait for it."""
    return isinstance(work, Sweep) or work.drop is not None


def _captured(answer: Outcome) -> outcome.Outcome[Any]:
    return outcome.Error(answer) if isinstance(answer, Exception) else outcome.Value(answer)
