"""Which desks are online now (wire.md, Keys, desks, codes: presence). In memory; nothing is stored.

1. A key is online while one of its streams is open, for `linger_s` after the last one closed, and for
   `poll_s` after a poll; at the very end of that time it is offline.
2. `online` goes by the clock alone and is right at any moment. `run` is what tells watchers that time passed.
3. One timer for all keys, and at most one place in its heap for each.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from heapq import heappop, heappush
from types import TracebackType

import msgspec
import trio

from broker.clock import Clock
from broker.config import Presence as Settings


class PresenceStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment: keys that are online or were a moment ago, and those who watch."""

    desks: int
    watches: int


class _Desk:
    """A key that is online: its open streams, and until when it is online without one."""

    __slots__ = ("open", "queued", "until")

    def __init__(self) -> None:
        self.open = 0
        self.until = 0.0
        self.queued = False


class Presence:
    """Counts streams and polls of keys, and tells watchers of changes."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._desks: dict[str, _Desk] = {}
        self._ends: list[tuple[float, str]] = []
        self._earlier = trio.Event()
        self._watching: dict[str, dict[tuple[Watch, str], None]] = {}  # key → who watches it, by which label
        self._labels: dict[str, dict[Watch, None]] = {}

    async def run(self) -> None:
        """Tell watchers when a desk's time is over. One task, for as long as the broker lives; cancel it."""
        while True:
            self._expire()
            self._earlier = trio.Event()
            if self._ends:
                with trio.move_on_after(max(0.0, self._ends[0][0] - self._clock.monotonic())):
                    await self._earlier.wait()
            else:
                await self._earlier.wait()

    @contextmanager
    def attach(self, pk: str) -> Iterator[None]:
        """A stream of this key is open, for as long as the block lasts."""
        desk = self._touch(pk)
        desk.open += 1
        try:
            yield
        finally:
            desk.open -= 1
            if desk.open == 0:
                self._prolong(pk, desk, self._settings.linger_s)

    def polled(self, pk: str) -> None:
        """This key has just polled."""
        self._prolong(pk, self._touch(pk), self._settings.poll_s)

    def online(self, pk: str) -> bool:
        """Whether a key is online now."""
        desk = self._desks.get(pk)
        return desk is not None and (desk.open > 0 or desk.until > self._clock.monotonic())

    def present(self) -> list[str]:
        """The keys that are online now."""
        return [pk for pk in self._desks if self.online(pk)]

    def watch(self, pks: Mapping[str, str | None]) -> "Watch":
        """Watch keys under labels (desk codes). None: the label names nobody now. The caller counts to 64.

        Enter the watch as an async context manager, or close it.
        """
        watch = Watch(self, pks, self._settings.coalesce_s, self._clock)
        for label, pk in pks.items():
            self._labels.setdefault(label, {})[watch] = None
            self._join(watch, label, pk)
        return watch

    def rebind(self, label: str, pk: str | None) -> None:
        """From now on a label names another key (a desk moved), or nobody (it closed), for all who watch."""
        for watch in self._labels.get(label, ()):
            self._part(watch, label, watch.pks[label])
            watch.pks[label] = pk
            self._join(watch, label, pk)
            watch.changed(label)

    def unwatch(self, watch: "Watch") -> None:
        """For a watch that closes."""
        for label, pk in watch.pks.items():
            self._part(watch, label, pk)
            watches = self._labels[label]
            del watches[watch]
            if not watches:
                del self._labels[label]

    def statistics(self) -> PresenceStatistics:
        """A frozen moment."""
        watches = {watch for each in self._labels.values() for watch in each}
        return PresenceStatistics(desks=len(self._desks), watches=len(watches))

    def _join(self, watch: "Watch", label: str, pk: str | None) -> None:
        if pk is not None:
            self._watching.setdefault(pk, {})[watch, label] = None

    def _part(self, watch: "Watch", label: str, pk: str | None) -> None:
        if pk is not None:
            watchers = self._watching[pk]
            del watchers[watch, label]
            if not watchers:
                del self._watching[pk]

    def _touch(self, pk: str) -> _Desk:
        """The record of a key that is online from now on."""
        desk = self._desks.get(pk)
        if desk is None:
            desk = self._desks[pk] = _Desk()
            self._tell(pk)
        elif not self.online(pk):
            self._tell(pk)
        return desk

    def _prolong(self, pk: str, desk: _Desk, seconds: float) -> None:
        desk.until = max(desk.until, self._clock.monotonic() + seconds)
        if not desk.queued:
            desk.queued = True
            heappush(self._ends, (desk.until, pk))
            if self._ends[0][1] == pk:
                self._earlier.set()

    def _expire(self) -> None:
        now = self._clock.monotonic()
        while self._ends and self._ends[0][0] <= now:
            _, pk = heappop(self._ends)
            desk = self._desks[pk]
            desk.queued = False
            if desk.open > 0:
                continue  # queued again when its last stream closes
            if desk.until > now:
                desk.queued = True
                heappush(self._ends, (desk.until, pk))
                continue
            del self._desks[pk]
            self._tell(pk)

    def _tell(self, pk: str) -> None:
        for watch, label in self._watching.get(pk, ()):
            watch.changed(label)


class Watch:
    """A snapshot of labels, then changes. An async context manager; leaving it ends the watch."""

    def __init__(
        self, presence: Presence, pks: Mapping[str, str | None], coalesce_s: float, clock: Clock
    ) -> None:
        self.pks = dict(pks)
        self.snapshot = {label: self._now(presence, pk) for label, pk in pks.items()}
        """Which labels were online when the watch began."""
        self._presence = presence
        self._coalesce_s = coalesce_s
        self._clock = clock
        self._told = dict(self.snapshot)
        self._answered = clock.monotonic()
        self._dirty: set[str] = set()
        self._news = trio.Event()
        self._closed = False

    async def receive(self) -> dict[str, bool]:
        """Changes since the last answer (first: since the snapshot), never empty, at most one a second.

        What changed back in between is no change. Raises ClosedResourceError once closed. Cancelling loses
        nothing: the next answer holds the same changes.
        """
        while True:
            await self._news.wait()
            if not self._closed:
                await trio.sleep(max(0.0, self._answered + self._coalesce_s - self._clock.monotonic()))
            if self._closed:
                raise trio.ClosedResourceError("this watch was closed")
            changes = {
                label: now for label in self._dirty if (now := self._online(label)) != self._told[label]
            }
            self._dirty.clear()
            self._news = trio.Event()
            if changes:
                self._told.update(changes)
                self._answered = self._clock.monotonic()
                return changes

    def changed(self, label: str) -> None:
        """For presence: look at this label again."""
        self._dirty.add(label)
        self._news.set()

    def close(self) -> None:
        """End the watch. A waiting `receive` raises ClosedResourceError within a second."""
        if not self._closed:
            self._closed = True
            self._news.set()
            self._presence.unwatch(self)

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _online(self, label: str) -> bool:
        return self._now(self._presence, self.pks[label])

    @staticmethod
    def _now(presence: Presence, pk: str | None) -> bool:
        return pk is not None and presence.online(pk)
