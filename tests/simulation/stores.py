"""Stores that the simulation can break, watch, and end as a killed process would.

1. Whoever watches a store's commits (the ledger) hears of them where the broker does, and before it.
2. `ended` is the store after a crash: what was written stays, what was under way was written or not, by chance and
   in order, and the broker that had it gets nothing out of the old one.
"""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from broker.store.memory import MemoryStore
from broker.store.port import Conflict, Event, InDoubt, Listener, Then, Unit
from broker.store.sqlite import SqliteStore
from tests.programs.flaky import Flaky

Witness = Callable[[Sequence[Event]], None]
Begun = Callable[[Unit, bool], None]
"""A unit that is to be written, and whether its commit is going to be in doubt."""


class Watched(Flaky):
    """Tells the ledger what is asked to be written, and what was."""

    witness: Witness
    begun: Begun
    dead = False
    """Whether the process that had it has ended."""

    def watch(self, listener: Listener | None) -> None:
        if listener is None:
            super().watch(None)  # type: ignore[misc]  # the adapter's
            return

        def both(events: Sequence[Event]) -> None:
            self.witness(events)
            listener(events)

        super().watch(both)  # type: ignore[misc]  # the adapter's

    async def commit(self, unit: Unit) -> None:
        if self.dead:
            raise InDoubt
        self._note(unit)
        await super().commit(unit)

    def submit(self, unit: Unit, then: Then) -> None:
        if self.dead:
            trio.lowlevel.current_trio_token().run_sync_soon(then, InDoubt())
            return
        self._note(unit)
        super().submit(unit, then)

    def _note(self, unit: Unit) -> None:
        self.begun(unit, self.way in ("doubt", "applied", "late"))

    def late(self) -> int:
        """How many units are under way, beyond what their broker waits for."""
        return len(self._late)

    def late_convs(self) -> list[str]:
        """The conversations that they belong to."""
        return [unit.append.log.removeprefix("conv:") for unit in self._late if unit.append is not None]


class SimMemory(Watched, MemoryStore):
    """The reference adapter."""

    def __init__(self, secret: bytes, witness: Witness, begun: Begun) -> None:
        super().__init__()
        self._late = []
        self._secret = secret
        self.witness = witness
        self.begun = begun

    async def ended(self) -> "SimMemory":
        """What the next process finds. After `die`, or after its broker has left in order."""
        await trio.lowlevel.checkpoint()
        self.dead = self._closed = True
        self._late = []
        after = SimMemory(self._secret, self.witness, self.begun)
        for name in ("_order", "_logs", "_dropped", "_docs", "_streams", "_remembered"):
            setattr(after, name, getattr(self, name))
        return after

    def die(self, chance: random.Random) -> None:
        """The process ends at this moment. No checkpoint."""
        waiting, self._late = self._late, []
        for unit in waiting:
            if chance.random() < 0.5:
                self._land_now(unit)
        written = chance.randint(0, len(self._queue))
        letters = list(self._queue)
        self._queue.clear()
        for place, letter in enumerate(letters):
            if place < written and not letter.done and isinstance(letter.work, Unit) and self.broken is None:
                self._land_now(letter.work)
        self.dead = self._closed = True
        self._listener = None
        for letter in letters:
            letter.then(InDoubt())

    def _land_now(self, unit: Unit) -> None:
        try:
            self._check(unit)
        except Conflict:
            return
        events = self._apply(unit)
        if events and self._listener is not None:
            self._listener(events)


class SimSqlite(Watched, SqliteStore):
    """The embedded adapter, with no thread."""

    def __init__(self, directory: Path, witness: Witness, begun: Begun) -> None:
        super().__init__(directory, hop="inline")
        self._late = []
        self._place = directory
        self._image: Path | None = None
        self.witness = witness
        self.begun = begun

    async def ended(self) -> "SimSqlite":
        """What the next process finds: the files as they stood. After `die`, or after its broker has left."""
        self.dead = True
        self._late = []
        await self.aclose()
        return SimSqlite(self._image or self._place, self.witness, self.begun)

    def die(self, chance: random.Random) -> None:
        """The process ends at this moment. No checkpoint."""
        self._late = []
        self.dead = True
        self._image = self._place.with_name(f"{self._place.name}x")
        shutil.copytree(self._place, self._image)
        self._listener = None
        letters = list(self._queue)
        self._queue[:] = [(work, lambda _: None) for work, _ in letters]
        for _, then in letters:
            then(InDoubt())


Sim = SimMemory | SimSqlite
