"""One reader of a stream: catches up from the store, then goes on live (wire.md, Streams).

1. The position is the truth, what the store tells is a hint: a reader takes only what follows its position
   without a gap, and reads the store wherever a hint does not.
2. Taking is atomic: no checkpoint from moving the position to handing the events over. So a cancelled
   receive() loses nothing.
3. Many that come back at once read a few pages in each turn of the loop, in their order; who is live does not wait.
4. Only what is committed after it has caught up counts against its bounded queue.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

import msgspec
import trio

from broker.actors.calls import Row
from broker.actors.turns import Turns
from broker.clock import Clock
from broker.config import Streams
from broker.parking import Parked
from broker.store.port import Event, Head, Store
from broker.store.stored import stored
from broker.wire.events import ROW_KINDS, Resume, resume_at, splice, stream_tag
from broker.wire.refusals import Refusal, refuse

PAGE: Final = 128
"""Events that a reader holds at most while it catches up, and that one receive() gives."""
NEAR: Final = 16
"""Who is no further behind reads without waiting for a turn: a poll costs less than a page."""
LOOK_S: Final = 30.0
"""Seconds after which a waiting reader with an `until` looks at the wall clock again: it may have stepped."""
OVER: Final = refuse("bad_statement", "the statement's until has passed", path="until")
"""Why a reader ends at its `until`, where nothing else was said."""


class Delivery(msgspec.Struct):
    """One event for one stream. `params` is the JSON text of its object, made once for all live readers."""

    kind: str
    cursor: str
    params: bytes
    own: bool
    position: int
    made: tuple[Any, bytes] | None = None
    """What a door has made of it, and how: kept so that the next reader's door need not make it again."""


class _Object(msgspec.Struct, frozen=True, gc=False):
    """Any JSON object: what the text of an event must be that is no row's."""


class Slow(Exception):
    """The reader fell behind its bounded queue, or retention overtook it. It resumes by cursor."""


class Ended(Exception):
    """The right to read ended (desk moved or closed, the statement's until, shutdown); see `refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


Push = Callable[[Sequence[Delivery]], bool]
"""Takes events on the spot, all of them (True) or none. It neither waits nor raises."""


class Topic:
    """A stream that has readers now, and what they share."""

    def __init__(
        self,
        stream: str,
        store: Store,
        settings: Streams,
        clock: Clock,
        turns: Turns,
        left: Callable[["Topic"], None],
    ) -> None:
        self.stream = stream
        self.store = store
        self.settings = settings
        self.clock = clock
        self.turns = turns
        self.readers: dict[Reader, None] = {}
        self.newest = 0
        """The highest position that the store told of, or showed."""
        self.slow = 0
        """How many of its readers were too slow."""
        self._left = left
        self._prefix = ""

    def learn(self, head: Head) -> None:
        """Take in where the stream stands."""
        self._prefix = f"{stream_tag(self.stream)}.{head.epoch}."
        self.newest = max(self.newest, head.newest)

    def delivery(self, event: Event) -> Delivery:
        """Make the text of an event."""
        kind, own, position = event.kind, event.own, event.position
        cursor = f"{self._prefix}{position}"
        params = splice(event.data, cursor, own, event.at if kind in ROW_KINDS else None)
        return Delivery(kind, cursor, params, own, position)

    def hand(self, events: Sequence[Event]) -> None:
        """Hand committed events to the readers that are live; the others will find them in the store."""
        self.newest = max(self.newest, events[-1].position)
        live = [reader for reader in self.readers if reader.live]
        if not live:
            return
        batch = [self.delivery(event) for event in events]
        for reader in live:
            if not reader.pushed(batch):
                reader.hand(batch, _size(batch))

    def leave(self, reader: "Reader") -> None:
        """For a reader that closes."""
        del self.readers[reader]
        self._left(self)


class Reader:
    """One reader of one stream, from `Hub.read`. An async context manager; leaving it unsubscribes.

    `resume` is what to tell the client first. One task at a time may wait in `receive`.
    """

    def __init__(
        self, topic: Topic, *, code: str | None = None, until: int | None = None, over: Refusal = OVER
    ) -> None:
        clock = topic.clock
        self.resume: Resume
        self.code = code
        self.live = False
        """Whether it has caught up, so that committed events are handed to it."""
        self._topic = topic
        self._over = over
        self._until_ms = None if until is None else until * 1000
        self._deadline = 0.0 if until is None else clock.monotonic() + until - clock.now_ms() / 1000
        self._held: AbstractContextManager[object] | None = None
        self._position = 0  # the last one handed out
        self._pending: list[Delivery] = []  # live and next in line: begins at position + 1
        self._bytes = 0
        self._parked = Parked()
        self._receiving = False
        self._push: Push | None = None
        self._slow = False
        self._closed = False
        self._end: Refusal | None = None
        self._stop = 0  # the last position that is handed out once `_end` is set
        topic.readers[self] = None

    def begin(self, after: str | None, head: Head, held: AbstractContextManager[object] | None) -> None:
        """For the hub: settle where reading starts. The subscription came before `head` was asked for."""
        self.resume, self._position = resume_at(
            self._topic.stream, after, head.epoch, head.oldest, head.newest
        )
        self._stop = max(self._stop, head.newest)
        self.live = self._position >= self._topic.newest
        if held is not None:
            held.__enter__()
            self._held = held

    async def receive(self) -> list[Delivery]:
        """The next events, 1 to 128, in order, each once; waits for the first.

        Raises Slow (close the connection: 4008), Ended after the last event that was committed before the
        end, ClosedResourceError, and what the store raises when it can't be read. Cancelling loses nothing:
        the next call gives the same events.
        """
        if self._receiving:
            raise trio.BusyResourceError("another task waits for this reader")
        self._receiving = True
        try:
            while not (taken := await self.take()):
                await self.wait()
            return taken
        finally:
            self._receiving = False

    def push_to(self, push: Push) -> None:
        """While `receive` waits for the next events, offer them to `push` where they are committed.

        What it takes is handed out: `receive` goes on waiting. So order and position stay one.
        """
        self._push = push

    async def take(self, most: int = PAGE) -> list[Delivery]:
        """What is there now, at most `most`; [] when all has been read. Raises and cancels as `receive`."""
        self._check()
        if not self.live:
            return await self._take_stored(most)
        if not self._pending:
            return []
        await trio.lowlevel.checkpoint_if_cancelled()
        taken = self._take_pending(most)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return taken

    async def wait(self) -> None:
        """After an empty `take`, with no checkpoint between: wait until another is worth while."""
        if self._until_ms is None:
            await self._parked.park()
        else:
            with trio.move_on_after(min(self._left_s(self._until_ms), LOOK_S)):
                await self._parked.park()

    def end(self, refusal: Refusal, *, at_once: bool = False) -> None:
        """Make `receive` raise Ended once it has given what was committed until now; `at_once`: nothing more is
        given. The first end stands."""
        if self._end is None:
            self._end = refusal
            self._stop = self._position if at_once else max(self._stop, self._topic.newest)
            self._parked.wake()

    def hand(self, batch: Sequence[Delivery], size: int) -> None:
        """For the topic: take what follows our last one; ignore what we have; on a gap go to the store."""
        if not self.live:
            return
        tail = self._position + len(self._pending)
        if batch[0].position != tail + 1 or self._end is not None:
            batch = [each for each in batch if tail < each.position and not self._past_end(each.position)]
            if not batch:
                return
            size = _size(batch)
        gap = batch[0].position != tail + 1 or batch[-1].position != tail + len(batch)
        bound = self._topic.settings
        full = len(self._pending) + len(batch) > bound.queue_events or self._bytes + size > bound.queue_bytes
        if gap or (full and not self._pending):
            self._fall_back()  # one batch beyond the bound says nothing about a reader that was up to date
        elif full:
            self._give_up()
        else:
            self._pending += batch
            self._bytes += size
        self._parked.wake()

    def pushed(self, batch: Sequence[Delivery]) -> bool:
        """For the topic: whether the events went out on the spot. Only those that are next, while `receive` waits
        for them and the right to read has no end."""
        if (
            self._push is None
            or self._parked.task is None
            or not self._receiving
            or self._pending
            or self._until_ms is not None
            or self._end is not None
            or batch[0].position != self._position + 1
            or batch[-1].position != self._position + len(batch)
            or not self._push(batch)
        ):
            return False
        self._position = batch[-1].position
        return True

    def close(self) -> None:
        """Unsubscribe. A waiting `receive` raises ClosedResourceError. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._fall_back()
        self._topic.leave(self)
        self._parked.wake()
        if self._held is not None:
            self._held.__exit__(None, None, None)

    @property
    def position(self) -> int:
        """The position of the last event handed out; before the first one, that after which reading begins."""
        return self._position

    @property
    def pending(self) -> tuple[int, int]:
        """Live events that wait in memory: how many, and their bytes."""
        return len(self._pending), self._bytes

    async def __aenter__(self) -> "Reader":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this reader was closed")
        if self._slow:
            raise Slow
        if self._until_ms is not None and self._left_s(self._until_ms) <= 0:
            self.end(self._over)
        if self._end is not None and self._position >= self._stop:
            raise Ended(self._end)

    def _left_s(self, until_ms: int) -> float:
        """Seconds until `until`, by whichever clock says less: a wall set back must not prolong a right."""
        clock = self._topic.clock
        return max(0.0, min((until_ms - clock.now_ms()) / 1000, self._deadline - clock.monotonic()))

    async def _take_stored(self, most: int) -> list[Delivery]:
        topic = self._topic
        while True:
            events, reached = await self._read_page(most)
            self._check()
            for each in events:
                kind = Row if each.kind in ROW_KINDS else _Object
                stored(kind, each.data, "stream", f"{topic.stream} at {each.position}")
            taken = [topic.delivery(each) for each in events if not self._past_end(each.position)]
            self._position = reached
            self.live = reached >= topic.newest
            if taken or self.live:
                return taken

    async def _read_page(self, most: int) -> tuple[list[Event], int]:
        """Stored events after our position, and the position up to which there are no others."""
        store, stream, start = self._topic.store, self._topic.stream, self._position
        if self._topic.newest - start > NEAR:
            await self._topic.turns.wait()
        known = self._topic.newest
        events = await store.events(stream, start, most)
        reached = events[-1].position if events else start
        if reached - start == len(events) and (len(events) == most or reached >= known):
            return events, reached
        # A hole. Either a conversation's transcript was dropped and its events with it: go on behind them.
        # Or retention trimmed the stream past us: then the reader must hear of it, by resuming.
        newest = (await store.head(stream)).newest
        events = await store.events(stream, start, most)
        if (await store.head(stream)).oldest > start + 1:
            self._give_up()
            raise Slow
        reached = events[-1].position if events else start
        return events, reached if len(events) == most else max(reached, newest)

    def _take_pending(self, most: int) -> list[Delivery]:
        if len(self._pending) <= most:
            taken, self._pending, self._bytes = self._pending, [], 0
        else:
            taken = self._pending[:most]
            del self._pending[:most]
            self._bytes -= _size(taken)
        self._position = taken[-1].position
        return taken

    def _past_end(self, position: int) -> bool:
        return self._end is not None and position > self._stop

    def _fall_back(self) -> None:
        self.live = False
        self._pending = []
        self._bytes = 0

    def _give_up(self) -> None:
        self._fall_back()
        self._slow = True
        self._topic.slow += 1


def _size(batch: Sequence[Delivery]) -> int:
    return sum(len(each.params) for each in batch)
