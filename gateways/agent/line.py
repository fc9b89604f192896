"""The agent's way to the wire: connected in the background, with the desk for whoever needs it.

1. The MCP side is served at once; a tool that needs the wire waits a little for it and else says unavailable.
2. A broken connection is the client's business; a first one that fails is tried again here. A wire that lies
   (WireFault), or that refuses this key, ends the dealing, and every tool says so from then on.
3. Rings from those who may not be dealt with are declined and not shown.
"""

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final
from weakref import WeakSet

import trio

from broker.wire.ids import Pk
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal, refuse
from gateways.agent.answers import Fault, from_error
from gateways.agent.calls import Board, decline
from gateways.agent.rails import Rails
from gateways.client.clockwork import Backoff
from gateways.client.connect import connect
from gateways.client.dealer import Desk, Ring
from gateways.client.errors import DealerError, Disconnected, Refused

log = logging.getLogger(__name__)

CONNECTED_S: Final = 10.0
"""Seconds that a tool waits for the first connection."""
DECLINE_S: Final = 5.0
_ID: Final = re.compile(r"\b[0-9a-f]{16}\b")
"""A conversation's id, which stands in no log: where transcripts are open, whoever has it may read."""

Connect = Callable[[], AbstractAsyncContextManager[Desk]]


class Line:
    """The connection, its desk, and the calls on it. `own`: the key's pk."""

    def __init__(self, dial_up: Connect, own: Pk, rails: Rails, backoff: Backoff | None = None) -> None:
        self.own: Final = own
        self.board: Final = Board(own)
        self.rails: Final = rails
        self.ended: Refusal | Fault | None = None
        """Why there is no more dealing."""
        self.unopened: Refusal | None = None
        """Why the desk of the settings could not be opened at the start."""
        self._dial_up = dial_up
        self._backoff = backoff or Backoff()
        self._desk: Desk | None = None
        self._nursery: trio.Nursery | None = None
        self._changed = trio.Event()
        self._tried = trio.Event()
        self._bounds: WeakSet[trio.CancelScope] = WeakSet()
        self._lost = "not connected yet"

    @property
    def present(self) -> Desk | None:
        """The desk, once there was a connection; a break that is being mended doesn't take it away."""
        return self._desk

    async def run(self) -> None:
        """Keep the line until cancelled; leaving hangs up what is open, in bounded time."""
        while self.ended is None:
            try:
                await self._connection()
            except Disconnected as lost:
                self._lost = str(lost)
                self._tried.set()
                log.warning("no connection yet: %s", lost)
                await trio.sleep(self._backoff.next_s(lost.retry_after_s))
            except DealerError as fault:
                self.ended = from_error(fault)
                log.error("no more dealing: %s", _ID.sub("(its id)", str(fault)))
                for scope in self._bounds:
                    scope.cancel()
        self._tell()

    async def _connection(self) -> None:
        async with self._dial_up() as desk, trio.open_nursery() as nursery:
            try:
                await self._open(desk)
                self._desk, self._nursery = desk, nursery
                self._tell()
                log.info("connected, key %s, wire %s", desk.pk, desk.wire)
                async for ring in desk.rings():
                    await self._take(desk, nursery, ring)
            finally:
                self._desk = self._nursery = None
                await self.board.hang_up()

    async def _take(self, desk: Desk, nursery: trio.Nursery, ring: Ring) -> None:
        if self.rails.check_party(ring.caller, ring.code_from) is not None:
            log.info("a ring from a counterparty that is not allowed was declined")
            nursery.start_soon(decline, ring, DECLINE_S)
            return
        with suppress(Refused):  # it was over before anybody looked
            self.board.add_ring(ring, await desk.join(ring.conv))

    async def _open(self, desk: Desk) -> None:
        if self.rails.code is None:
            return
        try:
            await desk.open(self.rails.code)
            self.unopened = None
        except Refused as no:
            self.unopened = no.refusal
            log.warning("the desk %s was not opened: %s", self.rails.code, no)

    def within(self, seconds: float) -> trio.CancelScope:
        """A bound on what is asked of the wire, as trio.move_on_after; it is over at once when the dealing ends."""
        scope = trio.move_on_after(seconds)
        self._bounds.add(scope)
        return scope

    def _tell(self) -> None:
        self._tried.set()
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def tried(self) -> None:
        """Wait until the first attempt to connect has succeeded or failed, CONNECTED_S at most."""
        with trio.move_on_after(CONNECTED_S):
            await self._tried.wait()

    async def desk(self) -> tuple[Desk, trio.Nursery] | Refusal | Fault:
        """The desk, and the nursery that lasts as long as its connection. Cancelling is safe."""
        with trio.move_on_after(CONNECTED_S):
            while self.ended is None:
                if self._desk is not None and self._nursery is not None:
                    return self._desk, self._nursery
                await self._changed.wait()
        return self.ended or refuse("unavailable", f"the wire can't be reached: {self._lost}")


def line_to(url: str, key: SigningKey, wire: str | None, rails: Rails) -> Line:
    """A line to the broker at a URL, with a key. Raises nothing: a bad address shows when it is used."""

    @asynccontextmanager
    async def dial_up() -> AsyncIterator[Desk]:
        async with connect(url, key, wire) as desk:
            yield desk

    return Line(dial_up, key.pk, rails)
