"""What the model may do with the key: open a desk, dial, answer, say, hang up, wait.

1. Nothing is signed but through `_permit`: the rails first, then the user where the settings ask for it.
2. Every wait is bounded. When a bound ends what was being said, its outcome is kept as not known, and the next
   `say` settles it before anything else is signed.
3. A dial that is cancelled is hung up: nobody was told its id.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import trio

from broker.wire.refusals import Refusal, refuse
from gateways.agent.answers import Fault, Said, call_words
from gateways.agent.approval import Approvals, Deed
from gateways.agent.calls import Held, own_row
from gateways.agent.line import Line
from gateways.agent.rails import Blocked
from gateways.client.call import Call
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded, DealerError
from gateways.client.transcript import Row
from gateways.mcp.results import plain
from gateways.mcp.surface import Ask, Needs

ANSWER_S: Final = 20.0
"""Seconds that the wire may take for one thing; its client asks again meanwhile."""
WIRE_TYPES: Final = {"CALL": "dial", "PICKUP": "answer", "END": "hang_up"}
"""Types that have a tool of their own."""
_SLOW: Final = f"the wire did not answer in {ANSWER_S:g} s"

Answer = Said | Refusal | Blocked | Fault | Needs


class Verbs:
    """The tools that change something, over one line. Raises DealerError besides what it answers."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._board = line.board
        self._approvals = Approvals()

    async def open_desk(self, code: str) -> Answer:
        """Open the desk, or find it open."""
        if (blocked := self._line.rails.check_code(code)) is not None:
            return blocked
        found = await self._line.desk()
        if not isinstance(found, tuple):
            return found
        with self._line.within(ANSWER_S):
            await found[0].open(code)
            self._line.unopened = None
            return Said(f"Desk {code} is open: it stands for your key.", {"code": code, "pk": self._line.own})
        return self._line.ended or refuse("unavailable", f"{_SLOW}; opening a desk again does no harm")

    async def dial(self, ask: Ask, code: str, body: dict[str, Any], wait_ms: int) -> Answer:
        """Call a desk and wait for its PICKUP; after `wait_ms` the call goes on ringing."""
        found = await self._line.desk()
        if not isinstance(found, tuple):
            return found
        desk, nursery = found
        if desk.code is None:
            return refuse("unknown_desk", "this agent has opened no desk to dial from")
        placed: Call | Answer = refuse("unavailable", f"{_SLOW}; the call was given up")
        with self._line.within(ANSWER_S):
            placed = await self._place(ask, desk, desk.code, code, body)
        if not isinstance(placed, Call):
            return self._line.ended or placed
        return await self._wait_picked_up(
            self._board.hold(nursery, Held(placed, self._line.own, seen=1)), wait_ms
        )

    async def _place(self, ask: Ask, desk: Desk, own: str, code: str, body: dict[str, Any]) -> Call | Answer:
        """Sign and send the CALL, to the very key that the rails have seen."""
        pk = await desk.resolve(code)
        whole = {**body, "code_from": own, "code_to": code, "wire": desk.wire}
        if (stop := self._permit(ask, Deed("CALL", _text(whole), pk, code), whole, ())) is not None:
            return stop
        call = Call(desk.link, secrets.token_hex(8), pk, code)
        try:
            await call.place(whole)
            return await desk.join(call.conv)  # from here the desk brings its events
        except BaseException:
            await call.hang_up()  # bounded; nothing to do where the CALL was not accepted
            raise

    async def _wait_picked_up(self, held: Held, wait_ms: int) -> Answer:
        try:
            with self._line.within(wait_ms / 1000):
                await held.call.wait_picked_up()
                held.seen = max(held.seen, 2)
        except CallEnded:
            held.seen = held.call.transcript.next_n
            self._board.forget(held)
            raise
        except trio.Cancelled:
            await held.call.hang_up()
            raise
        if self._line.ended is not None:
            return self._line.ended
        state = held.state()
        ringing = " Nobody has picked up yet: use wait." if state["state"] == "ringing" else ""
        return Said(call_words(state) + ringing, state)

    async def answer(self, ask: Ask, conv: str | None, body: dict[str, Any], wait_ms: int) -> Answer:
        """Pick up a ring: the one named, else the oldest; waits for one."""
        found = await self._line.desk()
        if not isinstance(found, tuple):
            return found
        held = self._board.find_ring(conv) if conv is not None else None
        if held is None and conv is not None:
            return refuse("unknown_conv", "no ring with this id waits for an answer")
        if held is None:
            with self._line.within(wait_ms / 1000):
                held = await self._board.wait_ring()
        if self._line.ended is not None:
            return self._line.ended
        if held is None or held.ring is None:
            return Said("Nobody is calling. Use answer or wait again.", {"ring": None})
        said = await self._say(ask, held, "PICKUP", body)
        if not isinstance(said, Row):
            return said
        self._board.drop_ring(held.call.conv)
        state = self._board.hold(found[1], held).state()
        return Said(call_words(state), {**state, "call_body": held.ring.body}, untrusted=True)

    async def say(self, ask: Ask, conv: str, type: str, body: dict[str, Any]) -> Answer:
        """Sign an envelope and wait until the wire has it for good."""
        if (tool := WIRE_TYPES.get(type)) is not None:
            return refuse("bad_request", f"{type} is said by the tool {tool}", path="type")
        held = await self._find(conv)
        if not isinstance(held, Held):
            return held
        said = await self._say(ask, held, type, body)
        if not isinstance(said, Row):
            return said
        state = held.state()
        text = f"{plain(type)} is recorded as n = {said.envelope.n}. {call_words(state)}"
        return Said(text, {**state, **own_row(said)})

    async def _say(self, ask: Ask, held: Held, type: str, body: dict[str, Any]) -> Row | Answer:
        call = held.call
        async with held.lock:
            if (settled := await self._settle(held, type, body)) is not None:
                return settled
            if call.ended is not None:
                raise CallEnded(call.ended)
            if not call.my_turn:
                return refuse("out_of_turn", "the other party is to speak")
            last = call.transcript.rows[-1].envelope
            deed = Deed(
                type,
                _text(body),
                call.peer,
                held.code,
                call.conv,
                call.transcript.next_n,
                (last.type, _text(last.body)),
            )
            if (stop := self._permit(ask, deed, body, held.said())) is not None:
                return stop
            row: Row | None = None
            held.unsettled = (type, body)
            try:
                with self._line.within(ANSWER_S):
                    row = await call.send(type, body)
            except DealerError:
                held.unsettled = None  # refused, or the call is over: that is an outcome
                raise
            if row is None:
                return self._late()
            held.unsettled = None
            return row

    async def _settle(self, held: Held, type: str, body: dict[str, Any]) -> Row | Answer | None:
        """What became of the last thing that was cut short; None where it was not recorded, or was none.

        The same thing said again gets the row that stands; anything else must see first what stands now.
        """
        if held.unsettled is None:
            return None
        with self._line.within(ANSWER_S) as patience:
            row = await held.call.settle()
        if patience.cancelled_caught:
            return self._late()
        said, held.unsettled = held.unsettled, None
        if row is None or said == (type, body):
            return row
        return refuse("conflict", f"{said[0]} was recorded after all, as n = {row.envelope.n}")

    async def hang_up(self, conv: str, reason: str | None) -> Answer:
        """End a call, or decline a ring."""
        held = self._board.find_ring(conv) or await self._find(conv)
        if not isinstance(held, Held):
            return held
        declines = held.ring is not None and held.call.transcript.next_n == 1
        with self._line.within(ANSWER_S):
            await held.call.end(reason or ("declined" if declines else None))
            self._board.drop_ring(conv)
            self._board.forget(held)
            state = held.state()
            return Said(call_words(state), state)
        return self._late()

    async def wait(self, conv: str | None, wait_ms: int) -> Answer:
        """The next events of a call, or of all calls and rings; at once where there are any."""
        found = await (self._line.desk() if conv is None else self._find(conv))
        if not isinstance(found, tuple | Held):
            return found
        only = found if isinstance(found, Held) else None
        with self._line.within(wait_ms / 1000):
            await self._board.wait_news(only)
        if self._line.ended is not None:
            return self._line.ended
        states = [only.state()] if only is not None else self._board.states()
        events = self._board.take(only)  # no checkpoint from here to the answer: what is taken is told
        words = f"{len(events)} event(s)." if events else "Nothing new."
        return Said(
            " ".join([words, *map(call_words, states)]), {"events": events, "calls": states}, untrusted=True
        )

    async def _find(self, conv: str) -> Held | Refusal | Fault:
        """A call that is held, or another one of this key (it was open when the agent began). Raises Refused."""
        if (held := self._board.calls.get(conv)) is not None:
            return held
        found = await self._line.desk()
        if not isinstance(found, tuple):
            return found
        if self._board.find_ring(conv) is not None:
            return refuse("out_of_turn", "this call is ringing: answer it or hang up")
        with self._line.within(ANSWER_S):
            held = Held(await found[0].join(conv), self._line.own)
            return held if held.call.ended is not None else self._board.hold(found[1], held)
        return self._line.ended or refuse("unavailable", _SLOW)

    def _late(self) -> Refusal | Fault:
        return self._line.ended or refuse("in_doubt", _SLOW)

    def _permit(
        self, ask: Ask, deed: Deed, body: Mapping[str, Any], said: Sequence[Mapping[str, Any]]
    ) -> Needs | Blocked | None:
        """None: it may be signed. The rails speak first, so that nobody is asked for what is not allowed."""
        rails = self._line.rails
        blocked = rails.check_party(deed.pk, deed.code) or rails.check_envelope(deed.type, body, said)
        if blocked is not None:
            return blocked
        return self._approvals.judge(ask, deed) if deed.type in rails.ask_before else None


def _text(body: Mapping[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
