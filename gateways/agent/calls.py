"""The calls that the agent holds and the rings that wait, and what of them the model has not seen yet.

1. News is handed out once and in order; it is gone only when it is in an answer.
2. A call is forgotten when its END has been handed out. What is held is hung up when the agent ends, bounded.
3. What other parties wrote is carried as it is, in members of its own; no word of it goes into ours.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import trio

from broker.wire.ids import CODE
from gateways.client.call import Call
from gateways.client.dealer import Ring
from gateways.client.errors import DealerError
from gateways.client.transcript import Row

MOST_NEWS: Final = 50
"""Events in one answer; what is left comes with the next."""
MOST_RINGS: Final = 64
"""Rings kept for the model: as many as the wire lets wait for a desk."""
MOST_CALLS: Final = 256
"""Calls kept; beyond it those that have ended go, the oldest first, shown or not: `read` still has them."""


class Held:
    """One call, and how far it was shown."""

    def __init__(self, call: Call, own: str, seen: int = 0, ring: Ring | None = None) -> None:
        self.call = call
        self.own = own
        self.seen = seen
        """Rows below this n have been shown, or are our own."""
        self.ring = ring
        """The ring that it began as, for an inbound call."""
        self.lock = trio.Lock()
        """Held while something is said."""
        self.unsettled: tuple[str, dict[str, Any]] | None = None
        """What was being said when its time was over: its outcome is not known."""

    @property
    def code(self) -> str:
        """The counterparty's desk, as the CALL names it; empty where it is none."""
        body = self.call.transcript.rows[0].envelope.body
        code = body.get(
            "code_to" if self.call.transcript.rows[0].envelope.sender == self.own else "code_from"
        )
        return code if isinstance(code, str) and CODE.fullmatch(code) else ""

    def state(self) -> dict[str, Any]:
        """Where the call stands: {call, with, pk, state, n, your_turn}. Holds nothing that others wrote."""
        call = self.call
        ended = call.ended is not None
        picked_up = call.transcript.next_n > 1
        return {
            "call": call.conv,
            "with": self.code,
            "pk": call.peer,
            "state": "ended" if ended else ("open" if picked_up else "ringing"),
            "n": call.transcript.next_n - 1,
            "your_turn": not ended and call.my_turn,
        }

    def said(self) -> list[dict[str, Any]]:
        """The bodies so far, the oldest first."""
        return [row.envelope.body for row in self.call.transcript.rows]

    def take(self, most: int) -> Iterator[dict[str, Any]]:
        """What the model has not seen of it, and what now counts as seen."""
        rows = self.call.transcript.rows
        while self.seen < len(rows) and most > 0:
            row = rows[self.seen]
            self.seen += 1
            if row.envelope.sender != self.own:
                most -= 1
                yield event(row, self.call.peer)

    @property
    def news(self) -> bool:
        """Whether `take` would give anything."""
        return any(row.envelope.sender != self.own for row in self.call.transcript.rows[self.seen :])


def event(row: Row, peer: str) -> dict[str, Any]:
    """A row of the other party or the wire as an event for the model. Its body is the other's own words."""
    envelope = row.envelope
    kind = {"CALL": "called", "PICKUP": "picked_up", "END": "ended"}.get(envelope.type, "envelope")
    found: dict[str, Any] = {
        "event": kind,
        "call": envelope.conv,
        "n": envelope.n,
        "from": "counterparty" if envelope.sender == peer else "wire",
        "type": envelope.type,
        "body": envelope.body,
        "accepted_at": row.accepted_at,
    }
    return {**found, "late": True} if row.late else found


class Board:
    """All calls and rings of one agent. `own`: its pk. Methods that are no coroutines never block."""

    def __init__(self, own: str) -> None:
        self.own = own
        self.calls: OrderedDict[str, Held] = OrderedDict()
        self._rings: OrderedDict[str, Held] = OrderedDict()
        self._told: set[str] = set()
        """Rings that were handed out as news."""
        self._news = trio.lowlevel.ParkingLot()

    def hold(self, nursery: trio.Nursery, held: Held) -> Held:
        """Keep a call and watch for its news until it has ended; the one that is kept already comes back."""
        conv = held.call.conv
        if (known := self.calls.get(conv)) is not None:
            return known
        self.calls[conv] = held
        if len(self.calls) > MOST_CALLS:
            over = next((each for each in self.calls.values() if each.call.ended is not None), None)
            if over is not None:
                del self.calls[over.call.conv]
        with suppress(RuntimeError):  # the connection ended a moment ago: there will be no news
            nursery.start_soon(self._watch, held.call)
        return held

    async def _watch(self, call: Call) -> None:
        while call.ended is None:
            await call.wait_row(call.transcript.next_n)
            self.wake()

    def wake(self) -> None:
        """Something may be new."""
        self._news.unpark_all()

    def add_ring(self, ring: Ring, call: Call) -> None:
        """A ring that the model may answer."""
        self._rings[ring.conv] = Held(call, self.own, seen=2, ring=ring)
        if len(self._rings) > MOST_RINGS:
            self.drop_ring(next(iter(self._rings)))
        self.wake()

    def rings(self) -> list[Ring]:
        """Those that still wait for an answer, the oldest first."""
        for conv in [conv for conv, held in self._rings.items() if _over(held)]:
            self.drop_ring(conv)
        return [held.ring for held in self._rings.values() if held.ring is not None]

    def find_ring(self, conv: str) -> Held | None:
        """A ring that still waits, as the call that it would become."""
        held = self._rings.get(conv)
        return None if held is None or _over(held) else held

    def drop_ring(self, conv: str) -> None:
        """It was answered, declined, or is over."""
        self._rings.pop(conv, None)
        self._told.discard(conv)

    def take(self, only: Held | None = None) -> list[dict[str, Any]]:
        """The news of one call, or of all and of the rings, at most MOST_NEWS; what it gives counts as seen."""
        found: list[dict[str, Any]] = []
        if only is None:
            for ring in self.rings():
                if ring.conv not in self._told and len(found) < MOST_NEWS:
                    self._told.add(ring.conv)
                    found.append(ring_event(ring))
        for held in [only] if only is not None else list(self.calls.values()):
            found += held.take(MOST_NEWS - len(found))
            self.forget(held)
        return found

    def forget(self, held: Held) -> None:
        """Let go of a call that has ended and has nothing new to tell."""
        if held.call.ended is not None and not held.news:
            self.calls.pop(held.call.conv, None)

    async def wait_news(self, only: Held | None = None) -> None:
        """Return when `take` would give something, or when the one call has ended. Cancelling loses nothing."""
        await trio.lowlevel.checkpoint()
        while not self._has_news(only):
            await self._news.park()

    def _has_news(self, only: Held | None) -> bool:
        if only is not None:
            return only.news or only.call.ended is not None
        waiting = any(ring.conv not in self._told for ring in self.rings())
        return waiting or any(held.news for held in self.calls.values())

    async def wait_ring(self) -> Held:
        """The oldest ring that waits for an answer. Cancelling loses nothing."""
        await trio.lowlevel.checkpoint()
        while not (rings := self.rings()):
            await self._news.park()
        return self._rings[rings[0].conv]

    def states(self) -> list[dict[str, Any]]:
        """Where each held call stands."""
        return [held.state() for held in self.calls.values()]

    async def hang_up(self) -> None:
        """Hang up all that is open, side by side: HANG_UP_S seconds at most, also when cancelled (Call.hang_up).

        A ring whose PICKUP was cut short may be an open call; the others are left to ring.
        """
        held = [*self.calls.values(), *(ring for ring in self._rings.values() if ring.unsettled is not None)]
        self.calls.clear()
        self._rings.clear()
        self._told.clear()
        async with trio.open_nursery() as nursery:
            for each in held:
                nursery.start_soon(_hang_up, each.call)


def _over(ring: Held) -> bool:
    """Whether a ring is nothing to answer any more: it has ended, or another process of this key has it."""
    answered = ring.call.transcript.next_n > 1 and ring.unsettled is None
    return answered or ring.call.ended is not None


async def _hang_up(call: Call) -> None:
    with suppress(DealerError):  # nobody is left who could be told
        await call.hang_up()


def ring_event(ring: Ring) -> dict[str, Any]:
    """A ring as an event for the model."""
    code = ring.code_from if CODE.fullmatch(ring.code_from) else ""
    return {"event": "ring", "call": ring.conv, "with": code, "pk": ring.caller, "body": ring.body}


async def decline(ring: Ring, seconds: float) -> None:
    """Hang up a ring that nobody is going to answer; gives up after a time."""
    with trio.move_on_after(seconds), suppress(DealerError):
        await ring.decline()


def own_row(row: Row) -> dict[str, Any]:
    """What was said by us, for the answer of `say`: its place and its proof."""
    found: dict[str, Any] = {
        "n": row.envelope.n,
        "type": row.envelope.type,
        "sig": row.sig,
        "chain": row.chain,
        "accepted_at": row.accepted_at,
    }
    return {**found, "late": True} if row.late else found
