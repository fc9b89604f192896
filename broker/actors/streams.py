"""The hub: all live readers of a store's streams, and polls (wire.md, Streams).

1. Whoever subscribes before it asks for the head misses nothing: the store tells of every committed unit
   before `commit` returns for it (the store's law 4), and a reader goes by positions (reader.py).
2. Nobody is fed by the request that wrote: readers follow what was committed.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import msgspec
import trio

from broker.actors.convwatch import ConvWatches
from broker.actors.reader import OVER, PAGE, Delivery, Ended, Reader, Slow, Topic
from broker.actors.tape import Tape
from broker.actors.turns import Turns
from broker.clock import Clock
from broker.config import Streams
from broker.store.port import Event, Listener, Store
from broker.wire.events import Resume
from broker.wire.refusals import Refusal

__all__ = ["Delivery", "Ended", "Hub", "HubStatistics", "Polled", "Reader", "Resume", "Slow"]

PAGE_BYTES: Final = 262_144
"""What one poll gives at most, one event apart: a reply must not stall the others."""
SCAN: Final = 4096
"""Events that one poll looks at before it answers, so that a filter can't make it read for ever."""
STREAMS: Final = {"pk": "desk", "agent": "agent", "channel": "channel"}
"""What a stream is called by in statistics, by the begin of its name; others are called by that."""


PAGES: Final = 1
"""Pages that catching-up readers read in one turn of the loop: a page of 128 events takes a millisecond."""


class Polled(NamedTuple):
    """What a poll found. `cursor`: the last event looked at, also where a filter passed it over."""

    resume: Resume
    deliveries: list[Delivery]
    cursor: str


class HubStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of the hub: what waits in memory for its readers, and how many were ever too slow."""

    streams: int
    readers: int
    catching_up: int
    pending: int
    pending_bytes: int
    slow: int
    by_kind: dict[str, int]
    """Readers by what their streams are of: desk, agent, channel, and so on."""
    resumed: dict[tuple[str, str], int]
    """Readers that ever began: (true or false: whether without loss; the reason, "" without one) → how many."""


class Hub:
    """Registers itself as the store's listener; makes readers."""

    def __init__(self, store: Store, settings: Streams, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._slow = 0
        self._resumed: Counter[tuple[str, str]] = Counter()
        self._turns = Turns(PAGES)
        self._topics: dict[str, Topic] = {}
        self.convs = ConvWatches()
        """Who is told that a conversation has grown, beside the streams."""
        self.tape = Tape()
        """What operators see of everything that is accepted."""
        self.beside: Listener = lambda _: None
        """Who else hears of all that is committed, in the same way."""
        store.watch(self.committed)

    def committed(self, events: Sequence[Event]) -> None:
        """The store's listener: hand deliveries of committed units to the streams that have readers."""
        topics = self._topics
        batches: dict[str, list[Event]] = {}
        for event in events:
            if event.stream in topics:
                batches.setdefault(event.stream, []).append(event)
        for stream, batch in batches.items():
            topics[stream].hand(batch)
        self.convs.committed(events)
        if self.tape.watches:
            self.tape.committed(events)
        self.beside(events)

    async def read(
        self,
        stream: str,
        after: str | None,
        *,
        code: str | None = None,
        until: int | None = None,
        over: Refusal = OVER,
        held: AbstractContextManager[object] | None = None,
        counted: bool = True,
    ) -> Reader:
        """Subscribe to a stream, going on after the cursor `after` (None: from now; "0": the oldest kept).

        `code`: the desk through which it is followed, for `end`. `until`: Unix seconds at which the right to
        read ends, and `over`, why it does. `held` is entered now and left when the reader closes (presence).
        `counted`: it stands in the statistics as one that began. Enter or close the reader, else it stays
        subscribed. Raises what the store raises. Cancelling subscribes nothing.
        """
        topic = self._topics.get(stream)
        if topic is None:
            topic = Topic(stream, self._store, self._settings, self._clock, self._turns, self._left)
            self._topics[stream] = topic
        reader = Reader(topic, code=code, until=until, over=over)
        try:
            head = await self._store.head(stream)
            topic.learn(head)
            reader.begin(after, head, held)
        except BaseException:
            reader.close()
            raise
        if counted:
            resume = reader.resume
            self._resumed["true" if resume.recovered else "false", resume.reason or ""] += 1
        return reader

    async def poll(
        self,
        stream: str,
        after: str | None,
        limit: int,
        wait_s: float,
        *,
        kinds: Collection[str] | None = None,
        own: bool | None = None,
        code: str | None = None,
        until: int | None = None,
        over: Refusal = OVER,
    ) -> Polled | Refusal:
        """At most `limit` (≥ 1) events after a cursor: at once what waits, else the first within `wait_s`.

        `kinds` and `own` filter; what is passed over moves the cursor all the same, and after 4,096 looked at
        the answer comes even if it is empty. A Refusal when the right to read ended and nothing was found.
        Raises what the store raises. Cancelling changes nothing.
        """
        found: list[Delivery] = []
        seen = size = 0
        page = min(PAGE, limit) if kinds is None and own is None else PAGE
        deadline = trio.current_time() + wait_s
        async with await self.read(stream, after, code=code, until=until, over=over, counted=False) as reader:
            cursor = reader.resume.from_
            try:
                while len(found) < limit and seen < SCAN and size < PAGE_BYTES:
                    batch = await reader.take(page)
                    if not batch:
                        if found or trio.current_time() >= deadline:
                            break
                        with trio.move_on_at(deadline):
                            await reader.wait()
                    for each in batch:
                        wanted = (kinds is None or each.kind in kinds) and (own is None or each.own is own)
                        size += len(each.params) if wanted else 0
                        if found and size > PAGE_BYTES:
                            break
                        seen += 1
                        cursor = each.cursor
                        if wanted:
                            found.append(each)
                            if len(found) == limit:
                                break
            except Ended as error:
                if not found:
                    return error.refusal
            except Slow:
                if not found:  # retention overtook it: begin again, and say so
                    left = max(0.0, deadline - trio.current_time())
                    return await self.poll(
                        stream, cursor, limit, left, kinds=kinds, own=own, code=code, until=until, over=over
                    )
            return Polled(reader.resume, found, cursor)

    def end(self, stream: str | None, refusal: Refusal, *, code: str | None = None) -> int:
        """End the readers of a stream (None: of all), or only those that follow it through desk `code`.

        Returns how many. What was committed before is still handed out.
        """
        if stream is None:
            topics = list(self._topics.values())
            self.tape.end(refusal)
        else:
            topics = [self._topics[stream]] if stream in self._topics else []
        ending = [each for topic in topics for each in topic.readers if code is None or each.code == code]
        for reader in ending:
            reader.end(refusal)
        return len(ending)

    def statistics(self) -> HubStatistics:
        """A frozen moment; its cost grows with the readers."""
        readers = [reader for topic in self._topics.values() for reader in topic.readers]
        by_kind: Counter[str] = Counter(dict.fromkeys(STREAMS.values(), 0))
        for name, topic in self._topics.items():
            kind = name.partition(":")[0]
            by_kind[STREAMS.get(kind, kind)] += len(topic.readers)
        return HubStatistics(
            streams=len(self._topics),
            readers=len(readers),
            catching_up=sum(not reader.live for reader in readers),
            pending=sum(reader.pending[0] for reader in readers),
            pending_bytes=sum(reader.pending[1] for reader in readers),
            slow=self._slow + sum(topic.slow for topic in self._topics.values()),
            by_kind=dict(by_kind),
            resumed=dict(self._resumed),
        )

    def _left(self, topic: Topic) -> None:
        if not topic.readers:
            del self._topics[topic.stream]
            self._slow += topic.slow
