"""The dealer's side of the wire: a desk that dials and answers.

    async with connect("http://127.0.0.1:8080", "alfa.key") as desk:
        await desk.open("ALFA")
        async with desk.dial("BRAV") as call:
            await call.send("RFQ", {"instrument": "EURUSD", "qty": "5000000"})
            quote = await call.receive()

1. Everything runs in the block of `connect`: leaving it closes the connection and ends every task.
2. A refusal is raised as Refused where it was asked for; a wire that lies ends the block with WireFault.
3. A break of the connection is nobody's business: it comes back by cursor, and repeats are dropped.
"""

import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec
import trio

from broker.wire.ids import Pk
from broker.wire.refusals import refuse
from gateways.client.arena import OpensSession, nobody
from gateways.client.call import Call
from gateways.client.errors import CallEnded, Refused, WireFault
from gateways.client.link import Link, settle
from gateways.client.signer import join_params

_REMEMBERED: Final = 4096
"""Conversations that are over and whose repeats are still known as such."""


Watcher = Callable[[str, bytes], None]
"""Sees each event as (kind, the event's JSON text); a plain call that must not block."""


class Event(msgspec.Struct):
    """A ring, env or end as it comes on the stream (wire.md, Streams)."""

    cursor: str
    conv: str
    n: int
    sig: str
    envelope: msgspec.Raw
    chain: str
    accepted_at: int
    own: bool = False


class Ring:
    """An inbound call that waits for an answer."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.conv = call.conv
        self.caller = call.peer
        """The caller's pk."""
        self.body = call.transcript.rows[0].envelope.body
        """The CALL's body: code_from, code_to, and what the caller added."""
        self.code_from = str(self.body.get("code_from", ""))

    @property
    def ended(self) -> bool:
        """Whether the caller has hung up, or nobody answered in time."""
        return self._call.ended is not None

    @asynccontextmanager
    async def answer(self, body: dict[str, Any] | None = None) -> AsyncIterator[Call]:
        """Pick up; leaving the block hangs up.

        The end of the call ends the block, also when it comes while picking up: CallEnded of this very call
        does not leave it, so that a loop over rings goes on. What became of it stands in `call.ended`.
        """
        call = self._call
        try:
            with suppress(CallEnded):
                await call.send("PICKUP", body)
            yield call
        except CallEnded as over:
            if over.envelope is not call.ended:
                raise
        finally:
            await call.hang_up()

    async def decline(self, reason: str = "declined") -> None:
        """Hang up without picking up."""
        await self._call.end(reason)


class Desk:
    """A key's place on the wire. Made by `connect`."""

    def __init__(self, link: Link, nursery: trio.Nursery, watcher: Watcher | None = None) -> None:
        self.pk: Pk = link.signer.pk
        self.wire: Pk = link.signer.wire
        self.code: str | None = None
        """The desk's code, once `open` has been answered."""
        self.arena: OpensSession = nobody
        """A session of the arena, as `Agent.arena`: for the desk of an agent (`Agent.dealer`). Else Refused
        (agent_required)."""
        self.link = link
        self._nursery = nursery
        self._calls: dict[str, Call] = {}
        self._over: OrderedDict[str, None] = OrderedDict()
        self._rings: OrderedDict[str, Ring] = OrderedDict()
        self._bell = trio.lowlevel.ParkingLot()
        self._searched = False
        self._watcher = watcher

    @property
    def cursor(self) -> str | None:
        """The last event seen; `connect(after=…)` goes on from it in another process."""
        return self.link.cursor

    def now_ms(self) -> int:
        """The wire's clock, Unix milliseconds: what `valid_until_ms` in a body is measured by."""
        return self.link.signer.clock.now_ms()

    async def ask(self, tool: str, **params: Any) -> dict[str, Any]:
        """Any tool of the wire, asked until it answers. Raises Refused."""
        return read_object(await settle(self.link, tool, join_params(params)))

    async def act(self, tool: str, **members: Any) -> dict[str, Any]:
        """A tool that takes a statement of the same name, signed for the pinned wire. Raises Refused."""
        return read_object(await settle(self.link, tool, self.link.signer.statement(tool, **members)))

    async def open(self, code: str, recovery_pk: str | None = None) -> dict[str, Any]:
        """Open the desk, or find it open: {code, pk, opened_at}. Raises Refused (code_taken, …)."""
        found = await self.act("open_desk", code=code, recovery_pk=recovery_pk)
        self.code = code
        return found

    async def close(self) -> dict[str, Any]:
        """Close the desk for good; its code stays reserved. Raises Refused."""
        found = await self.act("close_desk", code=self._own_code())
        self.code = None
        return found

    async def resolve(self, code: str) -> Pk:
        """The pk that a code stands for now. Raises Refused (unknown_desk)."""
        return Pk(str((await self.ask("resolve_code", code=code))["pk"]))

    async def presence(self, codes: Sequence[str] | None = None) -> dict[str, Any]:
        """Which desks are online now."""
        return await self.ask("presence", **({} if codes is None else {"codes": list(codes)}))

    @asynccontextmanager
    async def dial(self, code: str, body: dict[str, Any] | None = None) -> AsyncIterator[Call]:
        """Call a desk and wait for its PICKUP; leaving the block hangs up.

        Raises Refused (unknown_desk, desk_busy, …), and CallEnded when nobody picks up or the call ends while
        the block waits for it. `body`: members beside code_from, code_to and wire.
        """
        code_from = self._own_code()
        call = Call(self.link, secrets.token_hex(8), await self.resolve(code), code)
        self._calls[call.conv] = call
        try:
            await call.place({**(body or {}), "code_from": code_from, "code_to": code, "wire": self.wire})
            await call.wait_picked_up()
            yield call
        finally:
            await call.hang_up()
            self._retire(call)

    def rings(self) -> "Rings":
        """Inbound calls as they come, for ever: `async for ring in desk.rings()`. See `next_ring`."""
        return Rings(self)

    async def next_ring(self) -> Ring:
        """The next inbound call that waits for an answer; one that ended before anybody looked is left out.

        Rings that came before this connection and are still unanswered are found first. Several tasks may wait:
        each ring goes to one of them. Cancelling loses nothing.
        """
        if not self._searched:
            self._searched = True
            self._nursery.start_soon(self._find_rings)
        await trio.lowlevel.checkpoint()
        while not self._rings:
            await self._bell.park()
        return self._rings.popitem(last=False)[1]  # no checkpoint since it was seen: several tasks may wait

    async def join(self, conv: str) -> Call:
        """An open conversation of this key, read and checked from its start: for a dealer that was restarted.

        Raises Refused (unknown_conv, not_a_party). Events of it arrive from now on.
        """
        if (known := self._calls.get(conv)) is not None:
            return known
        call = Call(self.link, conv, self.pk)  # the peer is known with the first row
        await call.resync()
        if not call.transcript.rows:
            raise Refused(refuse("unknown_conv", "the conversation has no rows"))
        first = call.transcript.rows[0].envelope
        if self.pk not in (first.sender, first.to):
            raise Refused(refuse("not_a_party", "this key is not a party"))
        call.peer = Pk(first.to if first.sender == self.pk else first.sender)
        if call.ended is None:
            self._calls[conv] = call
            self._mend(call)  # for what came between the reading and now
        return call

    def event(self, kind: str, params: bytes) -> None:
        """Deliver (link.py): one event of the stream."""
        if kind in ("ring", "env", "end"):
            try:
                event = msgspec.json.decode(params, type=Event)
            except (msgspec.MsgspecError, RecursionError):
                raise WireFault(f"the wire's event {kind} can't be read") from None
            self._row(kind, event)
        if self._watcher is not None:
            self._watcher(kind, params)

    def gap(self, reason: str) -> None:
        """Deliver (link.py): events are missing, so open calls are read again and rings are looked for."""
        for call in self._calls.values():
            self._mend(call)
        if self._searched:
            self._nursery.start_soon(self._find_rings)

    def _row(self, kind: str, event: Event) -> None:
        call = self._calls.get(event.conv)
        if call is None:
            if kind == "ring" and event.conv not in self._over:
                self._ring(event)
            return  # else: over, or a conversation that another process of this key holds
        if event.n > call.transcript.next_n:
            self._mend(call)
            return
        call.hear(bytes(event.envelope), event.sig, event.chain, event.accepted_at)
        picked_up_elsewhere = event.n > 0 and event.conv in self._rings
        if call.ended is not None or picked_up_elsewhere:
            self._retire(call)

    def _ring(self, event: Event) -> None:
        call = Call(self.link, event.conv, self.pk)
        call.hear(bytes(event.envelope), event.sig, event.chain, event.accepted_at)
        self._take_ring(call)

    def _take_ring(self, call: Call) -> None:
        first = call.transcript.rows[0].envelope
        if first.to != self.pk:
            raise WireFault(f"conversation {call.conv}: a ring for another key")
        if first.body_wire not in (None, self.wire):
            raise WireFault(f"conversation {call.conv}: a CALL that was made on another wire")
        call.peer = Pk(first.sender)
        self._calls[call.conv] = call
        self._rings[call.conv] = Ring(call)
        self._bell.unpark()

    async def _find_rings(self) -> None:
        """Unanswered calls that the stream did not bring: before this connection, or in a gap."""
        try:
            found = await self.ask("list_convs", state="ringing", **self.link.proof())
            for each in found["convs"]:
                conv, called = str(each["conv"]), each["parties"]["called"]["pk"]
                if called != self.pk or conv in self._calls or conv in self._over:
                    continue
                call = Call(self.link, conv, self.pk)
                with suppress(Refused):  # gone since it was listed
                    await call.resync()
                if conv not in self._calls and conv not in self._over and call.transcript.next_n == 1:
                    self._take_ring(call)
        except Refused:
            return  # a wire that does not list them: rings come by the stream alone
        except (KeyError, TypeError):
            raise WireFault("the answer to list_convs can't be read") from None

    def _mend(self, call: Call) -> None:
        if call.want():
            self._nursery.start_soon(self._mend_call, call)

    async def _mend_call(self, call: Call) -> None:
        try:
            await call.mend()
        except Refused as no:
            call.lose(no)  # the wire doesn't know it any more (a restored store, retention)
            self._retire(call)
        if call.ended is not None:
            self._retire(call)

    def _retire(self, call: Call) -> None:
        """The call is over, or another process of this key has it: forget it, but know its repeats."""
        self._rings.pop(call.conv, None)
        if self._calls.pop(call.conv, None) is not None:
            self._over[call.conv] = None
            if len(self._over) > _REMEMBERED:
                self._over.popitem(last=False)

    def _own_code(self) -> str:
        if self.code is None:
            raise Refused(refuse("unknown_desk", "open a desk before dialling"))
        return self.code


class Rings:
    """An iterator that can be left at any time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def __aiter__(self) -> "Rings":
        return self

    async def __anext__(self) -> Ring:
        return await self._desk.next_ring()


def read_object(answer: bytes) -> dict[str, Any]:
    """A tool's result. Raises WireFault for what is no JSON object."""
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("the answer can't be read") from None
