"""Stores whose commits fail as a plan says: refused, in doubt, and in doubt but landing later."""

from collections.abc import Callable
from typing import Literal

import trio

from broker.store.memory import MemoryStore
from broker.store.port import Conflict, InDoubt, Store, Then, Unavailable, Unit
from broker.store.sqlite import SqliteStore

Way = Literal["unavailable", "doubt", "applied", "late"]
WAYS: tuple[Way, ...] = ("unavailable", "doubt", "applied", "late")
"""Certainly not written · in doubt and not written · in doubt and written · in doubt and written when it lands."""


class Flaky:
    """What a test adds to an adapter: the next commit that `when` is true of goes the way it names."""

    way: Way | None = None
    when: Callable[[Unit], bool] = staticmethod(lambda unit: True)
    _late: list[Unit]

    def fail(self, way: Way | None, when: Callable[[Unit], bool] = lambda unit: True) -> None:
        """Have one commit fail; None: forget the failure that was planned."""
        self.way, self.when = way, when

    def lose(self) -> None:
        """The process ends: what is under way reaches nothing any more."""
        self._late.clear()

    async def land(self) -> bool:
        """Let the oldest unit that is under way reach the log: whether it was still possible."""
        try:
            await super().commit(self._late.pop(0))  # type: ignore[misc]  # the adapter's
        except Conflict:
            return False
        return True

    async def commit(self, unit: Unit) -> None:
        if self.way is None or not self.when(unit):
            await super().commit(unit)  # type: ignore[misc]  # the adapter's
            return
        way, self.way = self.way, None
        if way == "unavailable":
            raise Unavailable("as planned")
        if way == "applied":
            await super().commit(unit)  # type: ignore[misc]  # the adapter's
        if way == "late":
            self._late.append(unit)
        raise InDoubt

    def submit(self, unit: Unit, then: Then) -> None:
        if self.way is None or not self.when(unit):
            super().submit(unit, then)  # type: ignore[misc]  # the adapter's
            return
        way, self.way = self.way, None
        if way == "applied":
            super().submit(unit, lambda error: then(error or InDoubt()))  # type: ignore[misc]  # the adapter's
            return
        if way == "late":
            self._late.append(unit)
        answer = Unavailable("as planned") if way == "unavailable" else InDoubt()
        trio.lowlevel.current_trio_token().run_sync_soon(then, answer)


class FlakyMemory(Flaky, MemoryStore):
    """The reference adapter, failing as planned; its own gate stays."""

    def __init__(self) -> None:
        super().__init__()
        self._late = []


class FlakySqlite(Flaky, SqliteStore):
    """The embedded adapter, failing as planned. Open it with hop="inline" on a virtual clock."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # as the adapter takes them
        self._late = []


def flaky(store: Store) -> Flaky:
    """The same store, known to be one that fails as planned."""
    assert isinstance(store, Flaky)
    return store
