"""One conversation as a dealer holds it: say, hear, hang up.

1. For one n only one envelope is ever signed until the wire has answered for it (wire.md, Retries): a send
   that was cut short is settled with its own bytes before anything else is said.
2. What is heard has been checked by the transcript; what was said counts when its own signature is seen, in
   an acknowledgement or on the stream, whichever comes first.
3. One task at a time says something; any number may wait to hear.
4. A wire that was restored from a backup lacks the end of a call: it is sent again, both parties' envelopes and
   the wire's END, as they were (wire.md, Retries). Where the wire goes on with another envelope the call is lost.
"""

from collections import deque
from typing import Any, Final

import msgspec
import trio

from broker.wire.envelope import Envelope, build
from broker.wire.ids import Pk, Sig
from broker.wire.refusals import refuse
from gateways.client.errors import CallEnded, Refused, WireFault
from gateways.client.link import Link, settle
from gateways.client.signer import join_params
from gateways.client.transcript import Row, Transcript

HANG_UP_S: Final = 2.0
"""Seconds that leaving a call may take to hang it up, also when cancelled."""
_MOVED: Final = frozenset({"conflict", "conv_ended"})


class _Ack(msgspec.Struct):
    conv: str
    n: int
    chain: str
    accepted_at: int


class _StoredRow(msgspec.Struct):
    sig: str
    envelope: msgspec.Raw
    chain: str | None = None
    accepted_at: int | None = None


class _Head(msgspec.Struct):
    n: int
    sig: str


class _Page(msgspec.Struct):
    rows: list[_StoredRow]
    next: int | None = None
    head: _Head | None = None


class _Pending:
    """An envelope that is signed and whose outcome is not known."""

    def __init__(self, method: str, n: int, sig: Sig, raw: bytes, params: bytes) -> None:
        self.method, self.n, self.sig, self.raw, self.params = method, n, sig, raw, params
        self.scope: trio.CancelScope | None = None


class Call:
    """A conversation with `peer`. Made by `Desk.dial`, `Ring.answer` and `Desk.join`."""

    def __init__(self, link: Link, conv: str, peer: Pk, to_code: str = "") -> None:
        self.conv = conv
        self.peer = peer
        self.transcript = Transcript(conv, (link.signer.wire,))
        self._link = link
        self._to_code = to_code
        self._inbox: deque[Row] = deque()
        self._heard = trio.lowlevel.ParkingLot()
        self._lock = trio.Lock()
        self._pending: _Pending | None = None
        self._stale = False
        self._mending = False
        self._lost: Refused | None = None

    @property
    def ended(self) -> Envelope | None:
        """The END, once there is one: by either party, or by the wire."""
        return self.transcript.end

    @property
    def my_turn(self) -> bool:
        """Whether the next envelope, END aside, is ours."""
        return bool(self.transcript.rows) and self.transcript.speaks_next() == self._link.signer.pk

    async def send(self, type: str, body: dict[str, Any] | None = None) -> Row:
        """Say something, and wait until the wire has it for good.

        Raises CallEnded when the call is over, Refused for a final refusal (out_of_turn is judged here,
        nothing is sent), WireFault. It waits as long as the wire is away: bound it with a cancel scope. After
        cancelling, the outcome is unknown; the next `send` or `end` settles it first.
        """
        async with self._lock:
            await self._settle_earlier()
            self._check_open()
            if not self.my_turn:
                raise Refused(refuse("out_of_turn", "the other party is to speak"))
            return await self._say(type, body or {})

    async def receive(self) -> Envelope:
        """The next envelope of the other party. Raises CallEnded at the END. Cancelling loses nothing."""
        return (await self.receive_row()).envelope

    async def receive_row(self) -> Row:
        """Like `receive`, with the signature, chain and times of the row."""
        await trio.lowlevel.checkpoint()
        while not self._inbox:
            self._check_open()
            await self._heard.park()
        return self._inbox.popleft()  # no checkpoint since it was seen: several tasks may wait

    def __aiter__(self) -> "Call":
        """The other party's envelopes until the call ends; the END itself is `ended`."""
        return self

    async def __anext__(self) -> Envelope:
        try:
            return await self.receive()
        except CallEnded:
            raise StopAsyncIteration from None

    async def wait_picked_up(self) -> Envelope:
        """The PICKUP. Raises CallEnded when the ring ends without one (no_answer, declined, …)."""
        answer = (await self.wait_row(1)).envelope
        if answer.type == "END":
            raise CallEnded(answer)
        return answer

    async def wait_turn(self) -> None:
        """Wait until the next envelope is ours. Raises CallEnded. Cancelling is safe."""
        while not self.my_turn or self.ended is not None:
            self._check_open()
            await self._heard.park()

    async def wait_row(self, n: int) -> Row:
        """Row n, also one's own, once it is here. Cancelling is safe."""
        while self.transcript.next_n <= n:
            self._check_found()
            await self._heard.park()
        return self.transcript.rows[n]

    async def wait_ended(self) -> Envelope:
        """The END, when it comes. Cancelling is safe."""
        while (end := self.ended) is None:
            self._check_found()
            await self._heard.park()
        return end

    async def end(self, reason: str | None = None, body: dict[str, Any] | None = None) -> None:
        """Hang up, in turn or out of it. Nothing to do where it has ended. Cancelling: as for `send`."""
        body = {**(body or {}), **({} if reason is None else {"reason": reason})}
        async with self._lock:
            await self._settle_earlier()
            while self.ended is None:
                n = self.transcript.next_n
                try:
                    await self._say("END", body)
                except CallEnded:
                    return
                except Refused as no:
                    if no.code != "conflict" or self.transcript.next_n == n:
                        raise

    async def hang_up(self) -> None:
        """Leave the call: END if it is still open, in at most HANG_UP_S seconds, shielded from cancelling."""
        if self.ended is not None or self._lost or (self._pending is None and not self.transcript.rows):
            return
        with trio.move_on_after(HANG_UP_S, shield=True):
            try:
                await self.end("hung_up")
            except Refused:
                return  # nothing that a party who leaves can do about it: the wire will end it as idle

    async def place(self, body: dict[str, Any]) -> Row:
        """Send the CALL. Raises Refused. For `Desk.dial`."""
        async with self._lock:
            return await self._say("CALL", body)

    def hear(self, raw: bytes, sig: str, chain: str | None, accepted_at: int | None) -> Row | None:
        """Take a row from the stream or from read_conv. None for a repeat. Raises WireFault."""
        try:
            row = self.transcript.admit(raw, sig, chain, accepted_at)
        except LookupError as gap:
            raise WireFault(f"conversation {self.conv}: {gap}") from None
        if row is None:
            return None
        if row.envelope.sender == self.peer and row.envelope.type not in ("CALL", "PICKUP", "END"):
            self._inbox.append(row)
        self._heard.unpark_all()
        pending = self._pending
        if pending is not None and pending.n <= row.envelope.n and pending.scope is not None:
            pending.scope.cancel()
        return row

    def want(self) -> bool:
        """Note that rows may be missing here. Whether a new task must run `mend`."""
        self._stale = True
        begin, self._mending = not self._mending, True
        return begin

    async def mend(self) -> None:
        """Read what is missing, until nothing new comes and nobody has asked again."""
        try:
            before = -1
            while before < self.transcript.next_n or self._stale:
                before, self._stale = self.transcript.next_n, False
                await self.resync()
        finally:
            self._mending = False

    async def resync(self) -> bool:
        """Read the rows after our head from the wire, or send it those that it has lost; whether it had.

        Raises Refused, WireFault. Cancelling is safe.
        """
        while True:
            ours = self.transcript.next_n - 1
            page = await self._read(ours)
            if page.head is not None and page.head.n < ours:
                await self._bring_back(page.head)
                return True
            for row in page.rows:
                self.hear(bytes(row.envelope), row.sig, row.chain, row.accepted_at)
            if page.next is None or not page.rows:
                return False

    async def _read(self, after: int) -> _Page:
        params: dict[str, Any] = {"conv": self.conv, **self._link.proof()}
        if after >= 0:
            params["after"] = after
        answer = await settle(self._link, "read_conv", join_params(params))
        try:
            return msgspec.json.decode(answer, type=_Page)
        except (msgspec.MsgspecError, RecursionError):
            raise WireFault("the answer to read_conv can't be read") from None

    async def _bring_back(self, head: _Head) -> None:
        """Send the rows after the wire's head again. Raises Refused where it does not take them any more."""
        if not self.transcript.holds(head.n, head.sig):
            raise Refused(refuse("conflict", f"the wire was restored, and goes on otherwise at n = {head.n}"))
        for row in self.transcript.rows[head.n + 1 :]:
            envelope = row.envelope
            params = {"conv": self.conv, "n": envelope.n, "from_pk": envelope.sender, "sig": row.sig}
            raw = msgspec.Raw(envelope.canonical)
            await settle(self._link, "send_env", join_params({**params, "envelope": raw}))

    def lose(self, why: Refused) -> None:
        """The wire does not have this call any more: whoever waits here, or says something, hears why."""
        self._lost = why
        self._heard.unpark_all()

    def _check_found(self) -> None:
        if self._lost is not None:
            raise Refused(self._lost.refusal)

    def _check_open(self) -> None:
        if (end := self.ended) is not None:
            raise CallEnded(end)
        self._check_found()

    async def settle(self) -> Row | None:
        """Find out what became of a send that was cancelled: its row, or None where it was not accepted.

        `send` and `end` do it by themselves. Nothing to do where no send was cut short.
        """
        async with self._lock:
            return await self._settle_earlier()

    async def _settle_earlier(self) -> Row | None:
        """Before another envelope is signed the outcome of the last must be known."""
        if self._pending is None:
            return None
        try:
            return await self._settle(self._pending)
        except (Refused, CallEnded):
            return None  # and now it is certain

    async def _say(self, type: str, body: dict[str, Any]) -> Row:
        try:
            return await self._settle(self._sign(type, body))
        except Refused as no:
            wire_ts = no.refusal.detail.get("wire_ts")
            if no.code != "clock_skew" or not isinstance(wire_ts, int):
                raise
            # Certainly not accepted (a replay is answered before the clock is asked): sign another.
            self._link.signer.clock.correct(wire_ts * 1000 + 500)
        return await self._settle(self._sign(type, body))

    def _sign(self, type: str, body: dict[str, Any]) -> _Pending:
        signer, transcript = self._link.signer, self.transcript
        n = transcript.next_n
        try:
            raw = build(
                conv=self.conv,
                n=n,
                type=type,
                sender=signer.pk,
                to=self.peer,
                ts=signer.clock.now_s(),
                prev_sig=transcript.prev_sig,
                body=body,
            )
        except ValueError as fault:
            raise Refused(refuse("bad_envelope", str(fault), path="body")) from None
        sig = signer.key.sign(raw)
        params: dict[str, Any] = {"to_code": self._to_code} if n == 0 else {"conv": self.conv, "n": n}
        params |= {"from_pk": signer.pk, "sig": sig, "envelope": msgspec.Raw(raw)}
        self._pending = _Pending("send_call" if n == 0 else "send_env", n, sig, raw, join_params(params))
        return self._pending

    async def _settle(self, pending: _Pending) -> Row:
        """The outcome of a signed envelope, however long it takes."""
        refused: Refused | None = None
        try:
            with trio.CancelScope() as pending.scope:
                answer = await settle(self._link, pending.method, pending.params)
                self._acknowledge(pending, answer)
        except Refused as no:
            refused = no
            if no.code in _MOVED and await self.resync():
                return await self._settle(pending)  # it was refused by a wire that had lost what is before it
        self._pending = None
        if self.transcript.holds(pending.n, pending.sig):
            return self.transcript.rows[pending.n]
        self._check_open()
        raise refused or Refused(refuse("conflict", f"another envelope stands at n = {pending.n}"))

    def _acknowledge(self, pending: _Pending, answer: bytes) -> None:
        try:
            ack = msgspec.json.decode(answer, type=_Ack)
        except (msgspec.MsgspecError, RecursionError):
            raise WireFault("the acknowledgement can't be read") from None
        if ack.conv != self.conv or ack.n != pending.n:
            raise WireFault(f"the wire acknowledges n = {ack.n} of {ack.conv}, not what was sent")
        row = self.hear(pending.raw, pending.sig, ack.chain, ack.accepted_at)
        row = row or self.transcript.rows[pending.n]
        if row.chain != ack.chain:
            raise WireFault(f"conversation {self.conv}, n = {ack.n}: the wire says chain {ack.chain}")
