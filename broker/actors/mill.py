"""Who computes ticks now: one at a time, in turn by agent, and never so long that others wait for the loop (decision
0040).

1. A turn is one slice, or one piece of what it takes to read an agent's plan and make a program of it. After it the
   loop is everybody else's for as long as a slice takes, at least.
2. An advance that takes long (an operation) goes on by itself, in parts that its trial commits. So many go on at once;
   the others wait, and agents take turns whatever each of them has begun.
3. What is under way is in the store: a start finds it again.
"""

import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from math import inf
from typing import Any, Final, Generic, TypeVar

import msgspec
import trio

from broker.actors.actor import Crashed
from broker.actors.house import House
from broker.core.pieces import Pieces
from broker.store.port import Store, Unavailable
from broker.store.stored import stored
from broker.wire.refusals import Refusal

log = logging.getLogger("turret.trials")
REST_S: Final = 0.002
"""Seconds between two turns."""
AT_ONCE: Final = 2
"""Operations that go on at once: one computes while another commits."""
RETRY_S: Final = 1.0
"""After a part that could not be written."""
LONGEST_S: Final = 60.0
"""After parts that all fell by a fault: twice as long each time, this at most."""
PAGE: Final = 1_000
T = TypeVar("T")


class Line(Generic[T]):
    """Who waits, by name; names take turns."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def add(self, name: str, one: T) -> None:
        """Wait behind what has the same name."""
        self._lines.setdefault(name, deque()).append(one)

    def remove(self, name: str, one: T) -> None:
        """Wait no more."""
        line = self._lines[name]
        line.remove(one)
        if not line:
            del self._lines[name]

    def next(self) -> tuple[str, T]:
        """The first of the name whose turn it is, which is then behind all others."""
        name, line = next(iter(self._lines.items()))
        del self._lines[name]
        one = line.popleft()
        if line:
            self._lines[name] = line
        return name, one


async def in_turns(
    turn: Callable[[], AbstractAsyncContextManager[None]],
    pieces: Pieces[T],
    heard: Callable[[Any], Awaitable[None]] | None = None,
) -> T:
    """What comes of work in pieces, each in a turn of its own. `heard` is told what each has yielded. Cancelling leaves
    it where it is."""
    while True:
        async with turn():
            try:
                yielded = next(pieces)
            except StopIteration as end:
                made: T = end.value
                return made
        if heard is not None:
            await heard(yielded)


class Go(msgspec.Struct, frozen=True):
    """For a trial: run one more part of its operation, and commit it. Answer: whether there is more; or why not."""


class Mill:
    """Turns for slices, and operations that go on by themselves."""

    def __init__(self, store: Store, house: House) -> None:
        self._store = store
        self._house = house
        self.turns = 0
        """Turns that were taken."""
        self._busy = False
        self._free_at = -inf
        self._turns: Line[trio.Event] = Line()
        self._waiting: Line[str] = Line()
        self._fell: Counter[str] = Counter()
        """How often a trial's actor fell at its operation, one time after the other."""
        self._known: set[str] = set()
        """Trials with an operation that waits here, or goes on."""
        self._idle = trio.lowlevel.ParkingLot()
        self._moved: dict[str, tuple[trio.Event, int]] = {}
        """Who waits for a trial's operation: the event, and how many."""

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._turns)

    @property
    def under_way(self) -> int:
        """How many operations are under way, as far as they are known here."""
        return len(self._known)

    @asynccontextmanager
    async def turn(self, agent_id: str) -> AsyncIterator[None]:
        """The turn of an agent's, for one slice. Cancelling leaves the line."""
        if self._busy:
            event = trio.Event()
            self._turns.add(agent_id, event)
            try:
                await event.wait()
            except trio.Cancelled:
                if event.is_set():  # the turn came in the moment in which the wait was given up
                    self._pass_on()
                else:
                    self._turns.remove(agent_id, event)
                raise
        self._busy = True
        self.turns += 1
        try:
            await trio.sleep(max(0.0, self._free_at - trio.current_time()))
            yield
        finally:
            self._free_at = trio.current_time() + REST_S
            self._pass_on()

    async def work(self, agent_id: str, pieces: Pieces[T]) -> T:
        """What comes of an agent's work, a piece a turn."""
        return await in_turns(partial(self.turn, agent_id), pieces)

    def _pass_on(self) -> None:
        """A turn is over: it is the next one's, or nobody's."""
        if self._turns:
            self._turns.next()[1].set()
        else:
            self._busy = False

    def began(self, agent_id: str, session_id: str) -> None:
        """A trial has an operation under way, which goes on from now on; twice does nothing."""
        if session_id not in self._known:
            self._known.add(session_id)
            self._waiting.add(agent_id, session_id)
            self._idle.unpark()

    def moved(self, session_id: str) -> None:
        """A part of a trial's operation is committed, or it is over."""
        waited = self._moved.get(session_id)
        if waited is not None:
            waited[0].set()
            self._moved[session_id] = (trio.Event(), waited[1])

    @contextmanager
    def watch(self, session_id: str) -> Iterator[Callable[[], trio.Event]]:
        """For as long as the block lasts: what is set when the trial's operation moves next."""
        event, count = self._moved.get(session_id, (trio.Event(), 0))
        self._moved[session_id] = (event, count + 1)
        try:
            yield lambda: self._moved[session_id][0]
        finally:
            event, count = self._moved.pop(session_id)
            if count > 1:
                self._moved[session_id] = (event, count - 1)

    async def run(self) -> None:
        """Have operations go on, for ever; those first that the store knows. Cancelling loses nothing: what a part has
        committed stays, and a start goes on with it."""
        await self._find()
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._work, nursery)

    async def _find(self) -> None:
        """What is under way by the store, at the start: all of it."""
        limit = PAGE
        while True:
            try:
                found = await self._store.due("trial", "running", 1, limit)
            except Unavailable:
                await trio.sleep(RETRY_S)
                continue
            if len(found) == limit:
                limit *= 2
                continue
            for document in found:
                try:
                    row = stored(Mine, document.doc, "trial", document.id)
                except Unavailable:  # the store has named it
                    continue
                self.began(row.agent_id, document.id)
            return

    async def _work(self, nursery: trio.Nursery) -> None:
        while True:
            while not self._waiting:
                await self._idle.park()
            agent_id, session_id = self._waiting.next()
            more = await self._part(session_id)
            if more is None:  # who floods a trial of its own holds up nobody else's
                nursery.start_soon(self._later, agent_id, session_id)
            elif more:
                self._waiting.add(agent_id, session_id)
            else:
                self._known.discard(session_id)

    async def _later(self, agent_id: str, session_id: str) -> None:
        await trio.sleep(min(LONGEST_S, RETRY_S * 2 ** self._fell[session_id]))
        self._waiting.add(agent_id, session_id)
        self._idle.unpark()

    async def _part(self, session_id: str) -> bool | None:
        """Have one more part of an operation done; whether there is more of it. None: not now, since its mailbox is
        full, or it fell."""
        try:
            answer = await self._house.ask("trial", session_id, Go())
        except Crashed:  # the house has logged it
            self._fell[session_id] += 1
            return None
        del self._fell[session_id]
        if isinstance(answer, Refusal):
            log.warning("a trial goes on later: %s", answer.code)
            if answer.code == "overloaded":
                return None
            await trio.sleep(RETRY_S)
            return True
        return bool(answer)


class Mine(msgspec.Struct):
    """Of a trial's document: whose it is."""

    agent_id: str
