"""The worker that sends pushes (network.md, Webhooks): what was committed on their streams, and what failed earlier and
is due again.

1. A push with nothing to do is an entry in memory. One that has something to do is a task, which sends one event after
   the other; AT_ONCE attempts are under way at most, SHARE of them for one agent.
2. The place is written at most once in GROUP_S while events are taken, and where the push rests, fails or ends. After a
   restart those since the last place are sent again, under the same ids: none is lost.
3. Who may not speak is sent nothing: an attempt under way is broken off, and goes on when the agent may speak again.
4. At the start each live push is looked at once, beside all else: whether its stream has grown past its place, and
   whether something failed. Nothing waits for that, and nothing is written.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
import trio
from msgspec.structs import replace

from broker.actors.backlog import read_backlog
from broker.actors.guard import CAP, Times
from broker.actors.house import House
from broker.actors.push import KIND, Came, RemovePush, read_push
from broker.actors.safe import Headers
from broker.actors.standing import Standing
from broker.clock import Clock
from broker.core.push import (
    LONGEST_DELAY_S,
    Form,
    FormName,
    Occurrence,
    Outcome,
    PushRow,
    after,
    live_secrets,
    skipped,
)
from broker.store.port import Event, Store, Unavailable
from broker.store.stored import stored
from broker.wire.refusals import Refusal

log = logging.getLogger("turret.pushes")
AT_ONCE: Final = 64
"""Attempts under way."""
SHARE: Final = 4
"""Of these for one agent: one that has many pushes, to receivers that never answer, holds up itself alone."""
A_MINUTE: Final = 600
"""Attempts for one agent in a minute, whatever its pushes: its events come to others as fast as it likes."""
FOUND: Final = 100
"""Pushes that are looked at together, at the start."""
GROUP_S: Final = 1.0
BEGINS: Final = 10
"""Times in a minute that one push begins anew by hand: each is an attempt at once, at an address that others own."""
PING_S: Final = 10.0
"""Seconds between two pings of one push."""
PING_WAIT_S: Final = 20.0
"""Seconds for which one waits for a place and its answer."""
RETRY_S: Final = 5.0
"""Seconds after which a store that gave or took nothing is asked again, and a push that met a fault goes on."""


class Courier(Protocol):
    """The way out, given to open_broker; a gateway fills it in. Without one nothing is sent."""

    async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        """POST once, within a bounded time. Raises nothing for what a receiver or a URL does; cancelling closes the
        connection, and the receiver may have acted."""
        ...


class PushStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of the worker."""

    pushes: int
    """Those that are not disabled."""
    waiting: int
    """Of these, such as have something to send now or later."""
    delivered: int
    failed: int
    """Attempts that came to nothing."""
    disabled: int
    """Pushes that were ended."""


class Who(NamedTuple):
    """An agent as Standing judges it."""

    agent: str | None
    pk: str | None = None
    owner: str | None = None
    grant: str | None = None
    kid: str | None = None
    issued: int = 0


class _Live:
    """A push that is not disabled."""

    __slots__ = ("agent_id", "more", "push_id", "running", "scope", "stream", "turn")

    def __init__(self, row: PushRow) -> None:
        self.push_id, self.stream, self.agent_id, self.turn = row.push_id, row.stream, row.agent_id, row.turn
        self.more = False
        """Whether there may be something that its task has not looked at."""
        self.running = False
        self.scope = trio.CancelScope()

    def break_off(self) -> None:
        """What is under way counts no more; its task begins again."""
        self.more = True
        self.scope.cancel()


class Pusher:
    """All pushes of one broker. `run` it in the broker's nursery."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        house: House,
        standing: Standing,
        forms: Mapping[FormName, Form],
        opened: Callable[[str], str | None],
        fill: Callable[[str, Headers], Awaitable[Headers | Outcome]],
        chance: Callable[[], float],
        courier: Courier | None = None,
    ) -> None:
        """`opened`: a secret as it is, of one that was sealed; None where that can't be read any more. `fill`: headers
        with the agent's secrets that they name (broker.actors.safe). `chance`: 0 to 1, for the delays."""
        self._store = store
        self._clock = clock
        self._house = house
        self._standing = standing
        self._forms = forms
        self._opened = opened
        self._fill = fill
        self._courier = courier
        self._chance = chance
        self._live: dict[str, _Live] = {}
        self._streams: dict[str, dict[str, _Live]] = {}
        self._agents: dict[str, dict[str, _Live]] = {}
        self._ready: dict[_Live, None] = {}
        self._wake = trio.Event()
        self._pings = Times(1, PING_S, CAP)
        self._begins = Times(BEGINS, 60.0, CAP)
        self._sent = Times(A_MINUTE, 60.0, CAP)
        self._places = trio.CapacityLimiter(AT_ONCE)
        self._shares: dict[str, trio.CapacityLimiter] = {}
        self._delivered = self._failed = self._disabled = 0

    async def run(self) -> None:
        """Send, for ever. Cancelling breaks attempts off; what was not written down is sent again after a restart."""
        if self._courier is None:
            await trio.sleep_forever()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._find)
            while True:
                self._wake = trio.Event()
                for live in self._ready:
                    nursery.start_soon(self._serve, live)
                self._ready = {}
                await self._wake.wait()

    def committed(self, events: Sequence[Event]) -> None:
        """For the store's listener: streams have grown."""
        streams = self._streams
        if streams:
            for event in events:
                if event.stream in streams:
                    for live in streams[event.stream].values():
                        self._rouse(live)

    def told(self, push_id: str, row: PushRow | None) -> None:
        """A commit has made this of a push (None: it is gone), or it was read."""
        live = self._live.get(push_id)
        if row is None or row.disabled is not None:
            if live is not None:
                self._forget(live)
                if row is None:
                    live.scope.cancel()
        elif live is None:
            self._rouse(self._learn(row))
        elif live.turn != row.turn:
            live.turn = row.turn
            live.break_off()
            self._rouse(live)

    def stands(self, agent_id: str) -> None:
        """Something has changed of an agent: it may speak again, or is gone."""
        for live in self._agents.get(agent_id, {}).values():
            self._rouse(live)

    def may_ping(self, push_id: str) -> Refusal | None:
        """Before a ping: None, and it counts; or rate_limited."""
        return self._pings.spend(self._clock.monotonic(), "a push is tested once in 10 s", push_id)

    def may_begin(self, push_id: str) -> Refusal | None:
        """Before a push is sent at once by hand, whatever its schedule says: None, and it counts; or rate_limited."""
        return self._begins.spend(
            self._clock.monotonic(), "a push is changed or sent again ten times a minute", push_id
        )

    async def ping(self, row: PushRow, occurrence: Occurrence) -> Outcome | None:
        """Send one event of no stream, once, outside the order, within PING_WAIT_S. None: nothing is sent from here.
        Cancelling breaks it off."""
        if self._courier is None:
            return None
        with trio.move_on_after(PING_WAIT_S):
            return await self._attempt(row, occurrence)
        return Outcome(None, "no_answer")

    def statistics(self) -> PushStatistics:
        """A frozen moment; its cost grows with the pushes."""
        return PushStatistics(
            pushes=len(self._live),
            waiting=sum(live.running for live in self._live.values()),
            delivered=self._delivered,
            failed=self._failed,
            disabled=self._disabled,
        )

    def _learn(self, row: PushRow) -> _Live:
        live = self._live[row.push_id] = _Live(row)
        for places, name in ((self._streams, live.stream), (self._agents, live.agent_id)):
            places.setdefault(name, {})[live.push_id] = live
        return live

    def _forget(self, live: _Live) -> None:
        del self._live[live.push_id]
        for places, name in ((self._streams, live.stream), (self._agents, live.agent_id)):
            del places[name][live.push_id]
            if not places[name]:
                del places[name]
        if live.agent_id not in self._agents:
            self._shares.pop(live.agent_id, None)

    def _rouse(self, live: _Live) -> None:
        live.more = True
        if not live.running:
            live.running = True
            self._ready[live] = None  # its task is started by `run`: here it would be part of who told us
            self._wake.set()

    async def _find(self) -> None:
        """Look at each live push once."""
        place = 0
        while True:
            try:
                documents = await self._store.find(KIND, "live", "1", place, FOUND)
                for document in documents:
                    try:
                        row = stored(PushRow, document.doc, KIND, document.id)
                    except Unavailable:  # it is named in the log; the others are sent
                        continue
                    newest = (await self._store.head(row.stream)).newest
                    live = self._live.get(row.push_id) or self._learn(row)
                    if row.failing is not None or newest > row.position:
                        self._rouse(live)
            except Unavailable:
                await trio.sleep(RETRY_S)
                continue
            if len(documents) < FOUND:
                return
            place = documents[-1].order

    async def _serve(self, live: _Live) -> None:
        """Send what there is, until there is nothing more. Contained: a fault ends no other push."""
        try:
            while live.more and self._live.get(live.push_id) is live:
                live.more = False
                with trio.CancelScope() as live.scope:
                    await self._work(live)
        except Exception as error:
            if not isinstance(error, Unavailable):
                log.exception("a push met a fault; it goes on in %g s", RETRY_S)
            await trio.sleep(RETRY_S)
            live.more = True
        finally:
            live.running = False
            if live.more and self._live.get(live.push_id) is live:
                self._rouse(live)

    async def _work(self, live: _Live) -> None:
        row, who = await read_push(self._store, live.push_id), Who(live.agent_id)
        if row is None:
            return self.told(live.push_id, None)
        if row.disabled is not None:
            return None
        refused = await self._standing.judge(who)
        if refused is not None:
            if refused.code != "suspended":  # the agent is gone
                await self._house.ask(KIND, row.push_id, RemovePush(None))
            return None
        with self._standing.hold(who, lambda _: live.break_off()):
            return await self._send(row)

    async def _send(self, row: PushRow) -> None:
        """Send one event after the other, until there is none, or the push is over."""
        written, since = row, trio.current_time()
        while True:
            await self._wait(row)
            page = await read_backlog(self._store, row)
            if not page.events:
                row = row if page.upto == row.position else skipped(row, page.upto)
                break
            for position, occurrence in page.events:
                outcome = await self._attempt(row, occurrence)
                row = self._after(row, position, page.head.epoch, outcome)
                if row.failing or row.disabled:
                    break
                if trio.current_time() - since >= GROUP_S:
                    await self._write(row)
                    written, since = row, trio.current_time()
            if row.failing or row.disabled:
                await self._write(row)
                written, since = row, trio.current_time()
            if row.disabled:
                self._disabled += 1
                return
        if row != written:
            await self._write(row)

    def _after(self, row: PushRow, position: int, epoch: str, outcome: Outcome | None) -> PushRow:
        row = replace(row, epoch=epoch)
        if outcome is None:
            return skipped(row, position)
        self._delivered += outcome.taken
        self._failed += not outcome.taken
        return after(row, position, outcome, self._clock.now_ms(), self._chance())

    async def _wait(self, row: PushRow) -> None:
        """Wait until the event that failed is due; not for ever, where it was written by a wall clock that was
        ahead."""
        if row.failing is not None:
            left_s = (row.failing.next_at - self._clock.now_ms()) / 1000
            await trio.sleep(max(0.0, min(left_s, LONGEST_DELAY_S)))

    async def _attempt(self, row: PushRow, occurrence: Occurrence) -> Outcome | None:
        """One attempt; None where the form sends no such event."""
        assert self._courier is not None
        await self._paced(row.agent_id)
        share = self._shares.setdefault(row.agent_id, trio.CapacityLimiter(SHARE))
        async with share, self._places:
            now = self._clock.now_ms()
            secrets = tuple(
                secret for each in live_secrets(row, now) if (secret := self._opened(each.sealed)) is not None
            )
            if row.secrets and not secrets:
                return Outcome(None, "no_secret")
            request = self._forms[row.form](row, occurrence, secrets, now)
            if request is None:
                return None
            added = await self._fill(row.agent_id, row.headers) if row.headers else ()
            if isinstance(added, Outcome):
                return added
            return await self._courier.send(row.url, (*request.headers, *added), request.body)

    async def _paced(self, agent_id: str) -> None:
        """Wait until one more may be sent for this agent, and count it. Cancelling counts nothing."""
        while left_ms := self._sent.wait_ms(agent_id, self._clock.monotonic()):  # noqa: ASYNC110  # until a known time
            await trio.sleep(left_ms / 1000)
        self._sent.add(agent_id, self._clock.monotonic())

    async def _write(self, row: PushRow) -> None:
        """Have it written how far the push came. A store that takes nothing is waited for."""
        came = Came(row)
        while True:
            if not isinstance(await self._house.ask(KIND, row.push_id, came), Refusal):
                return
            await trio.sleep(RETRY_S)
