"""The conversation's actor: what is more than decide and fold (wire.md, Life of a call, Retries).

One unit a record: the row, its two deliveries, and (at CALL, PICKUP and END) the conversation's document with its
index rows. The desks of both keys are told after the commit; a desk that is not alive counts from the store.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from broker.actors.actor import NOT_NOW, Actor, Stop, Write
from broker.actors.calls import (
    Ack,
    ConvRow,
    Holder,
    find_replay,
    log_name,
    pair_name,
    read_state,
    streams_of,
)
from broker.actors.house import House
from broker.actors.once import Once
from broker.actors.recent import Recent
from broker.clock import Clock
from broker.core import conversation as core
from broker.core.conversation import Accepted, Conversation, Due, Hangup, Later, Rules, Send
from broker.core.machine import Now
from broker.store.port import Append, Deliver, Put, Store, Unit
from broker.wire import envelope as envelopes
from broker.wire.call import Phase, next_phase
from broker.wire.chain import chain_next, row_text
from broker.wire.envelope import Envelope
from broker.wire.ids import ConvId, Pk, Sig
from broker.wire.keyring import Keyring
from broker.wire.refusals import Refusal, refuse

STEP_S = 1.0
"""A wall clock that is off by more than this since the last envelope has stepped: the log alone would mislead."""


class Tally(msgspec.Struct):
    """What all conversations of a broker count together."""

    accepted: int = 0
    """Envelopes of parties that were written since the start."""


class Dial(msgspec.Struct, frozen=True):
    """A verified CALL for an id that may be new."""

    envelope: Envelope
    sig: Sig


class EndCall(msgspec.Struct, frozen=True):
    """Operators end the call; `note` is for both parties. Answer: Over, also of one that had ended; unknown_conv."""

    note: str = ""
    once: Once | None = None


class Over(msgspec.Struct, frozen=True):
    """How a call ended: the number of its END, the END's reason if it has one, and when (Unix milliseconds)."""

    conv: str
    n: int
    reason: str | None
    ended_at: int


class Known(msgspec.Struct, frozen=True):
    """Answered (with nothing) when all that came before it is: what was being written then is known."""


class Dialled(msgspec.Struct, frozen=True):
    """Told to the desk of a key that dialled or picked up."""

    conv: str


class Rung(msgspec.Struct, frozen=True):
    """Told to the desk called."""

    conv: str
    sender: Pk


class Finished(msgspec.Struct, frozen=True):
    """Told to both desks after an END."""

    conv: str


class Doubtful(msgspec.Struct, frozen=True):
    """Told to both desks when a commit is in doubt: how the call stands is the store's to say."""

    conv: str


class ConversationActor(Actor[Conversation]):
    """One call."""

    def __init__(
        self,
        conv: str,
        *,
        store: Store,
        clock: Clock,
        rules: Rules,
        keyring: Keyring,
        house: House,
        started: Now,
        recent: Recent,
        tally: Tally,
        nudge: Callable[[int], None],
        mailbox: int,
        commit_timeout_s: float,
        holder: Holder = lambda _: None,
    ) -> None:
        super().__init__(
            conv, store=store, mailbox=mailbox, commit_timeout_s=commit_timeout_s, overdue=house.overdue
        )
        self.log = log_name(conv)
        self._clock = clock
        self._holder = holder
        self._deliver: dict[tuple[str, str | None, str | None], tuple[Deliver, ...]] = {}
        """By sender and whose keys the parties are: where the parties' own types are delivered."""
        self._rules = rules
        self._keyring = keyring
        self._house = house
        self._started = started
        self._recent = recent
        self._tally = tally
        self._nudge = nudge

    def now(self) -> Now:
        """Both clocks, read at once."""
        return Now(self._clock.now_ms(), self._clock.monotonic())

    async def load(self) -> Conversation | None:
        document = await self.store.get("conv", self.key)
        if document is None:
            return None
        seen = self._recent.get(self.key)
        state = await read_state(self.store, document, self.now(), self._started, self._rules.envelopes, seen)
        if state is not None:
            self._recent.keep(state)
        return state

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            if self.state is not None:
                self._left(self.state)

    def _left(self, state: Conversation) -> None:
        now = self.now()
        since = now.mono - state.last_mono
        stepped = abs((now.wall_ms - state.last_at) / 1000 - since) >= STEP_S
        if self.leaving and since >= self._rules.window_s and not stepped:
            self._recent.forget(state)
        else:
            self._recent.ended(state, now.mono)

    def decide(self, command: Any) -> Any:
        """An envelope that is next needs nothing but what is known: the hot path."""
        state = self.state
        if type(command) is not Send or state is None or command.envelope.n != state.n + 1:
            return NOT_NOW
        record = core.decide_send(state, command, self.now(), self._rules)
        if isinstance(record, Refusal):
            return NOT_NOW if record.code == "clock_skew" else record
        if record.type in ("PICKUP", "END"):
            return self._write(state, record, command.envelope.canonical)
        return _Row(self, state, record, command.envelope.canonical, None)

    async def handle(self, command: Any) -> Any:
        match command:
            case Send():
                return await self._send(command)
            case Dial():
                return await self._dial(command)
            case Hangup():
                return await self._hang_up(command)
            case Due():
                return await self._due(command)
            case EndCall():
                return await self._end(command)
            case Known():
                return None
        raise TypeError(type(command))

    async def _send(self, command: Send) -> Ack | Refusal:
        state = self.state
        if state is None:
            return refuse("unknown_conv", "no conversation has this id")
        if command.envelope.n <= state.n:
            replay = await find_replay(self.store, command.envelope, command.sig)
            if replay is not None:
                return replay
        record = core.decide_send(state, command, self.now(), self._rules)
        if isinstance(record, Refusal):
            beyond = record.code == "conflict" and command.envelope.n > state.n + 1
            if beyond or record.code == "clock_skew":
                await self._look_ahead(state)
            return record
        return await self._append(state, record, command.envelope.canonical)

    async def _look_ahead(self, state: Conversation) -> None:
        """A commit that was in doubt may have landed after we read: who names an n beyond our head may have seen it,
        and who repeats it when its time is over is to get its acknowledgement."""
        if await self.store.entries(log_name(state.conv), state.n, 1):
            raise Stop

    async def _dial(self, command: Dial) -> Ack | Refusal:
        envelope = command.envelope
        if self.state is not None:
            replay = await find_replay(self.store, envelope, command.sig)
            return replay or taken(self.state, envelope.sender)
        record = core.decide_call(envelope, command.sig, self.now(), self._rules)
        if isinstance(record, Refusal):
            return record
        state = Conversation(
            conv=envelope.conv,
            caller=Pk(envelope.sender),
            callee=Pk(envelope.to),
            code_from=envelope.body["code_from"],
            code_to=envelope.body["code_to"],
            wire=self._keyring.pk,
            phase=Phase.NEW,
            n=-1,
            sig=Sig(""),
            chain=b"",
            last_from=Pk(envelope.sender),
            last_at=record.at,
            last_mono=record.mono,
            spent=deque(),
            opened_at=record.at,
        )
        answer = await self._append(state, record, envelope.canonical)
        self._recent.keep(state)
        if isinstance(answer, Ack):
            self.state = state
        else:
            self._recent.ended(state, record.mono)
            self.gone = True  # it knows of no call, and one in doubt may land: nobody should go by that
        return answer

    async def _hang_up(self, command: Hangup) -> Ack | Refusal | None:
        state = self.state
        if state is None or state.phase is Phase.ENDED:
            return None
        body: dict[str, Any] = {"reason": command.reason}
        if command.by is not None:
            body["by"] = command.by
        record, canonical = self._farewell(state, body)
        return await self._append(state, record, canonical)

    async def _end(self, command: EndCall) -> Over | Refusal:
        state = self.state
        if state is None:
            return refuse("unknown_conv", "no conversation has this id")
        if state.phase is not Phase.ENDED:
            body = {"reason": "operator", **({"note": command.note} if command.note else {})}
            write = self._write(state, *self._farewell(state, body))
            notes = command.once.notes(state.conv) if command.once is not None else ()
            unit = msgspec.structs.replace(write.unit, puts=(*write.unit.puts, *notes))
            answer = write.settle(await self.commit(unit))
            if isinstance(answer, Refusal):
                return answer
        elif command.once is not None:
            command.once.nothing_to_tell()
        reason = (state.end or {}).get("reason")
        return Over(state.conv, state.n, reason if isinstance(reason, str) else None, state.last_at)

    def _farewell(self, state: Conversation, body: dict[str, Any]) -> tuple[Accepted, bytes]:
        """The wire's END: its record, and the text that the wire has signed."""
        key, now = self._keyring.get(state.wire), self.now()
        canonical = envelopes.build(
            conv=ConvId(state.conv),
            n=state.n + 1,
            type="END",
            sender=key.pk,
            to=state.other(),
            ts=now.wall_ms // 1000,
            prev_sig=state.sig,
            body=body,
        )
        sig = key.sign(canonical)
        record = Accepted(
            n=state.n + 1,
            type="END",
            sender=key.pk,
            sig=sig,
            chain=chain_next(state.chain, sig),
            at=max(now.wall_ms, state.last_at),
            mono=now.mono,
            counted=False,
            body=body,
        )
        return record, canonical

    async def _due(self, due: Due) -> Any:
        state = self.state
        if state is None:
            return None
        verdict = core.decide_due(state, self.now(), self._rules, self._started.mono, due)
        if isinstance(verdict, Hangup):
            return await self._hang_up(verdict)
        if isinstance(verdict, Later):
            put = self._document(state, state.phase, None, verdict.due)
            refused = await self.commit(Unit(puts=(put,)))
            if refused is None:
                state.version += 1
                self._nudge(verdict.due)
            return refused
        return None

    async def _append(self, state: Conversation, record: Accepted, canonical: bytes) -> Ack | Refusal:
        write = self._write(state, record, canonical)
        answer: Ack | Refusal = write.settle(await self.commit(write.unit))
        return answer

    def _write(self, state: Conversation, record: Accepted, canonical: bytes) -> "_Row":
        """The unit of an accepted envelope, and what follows its commit."""
        put: Put | None = None
        if record.type in ("CALL", "PICKUP", "END"):
            put = self._document(state, next_phase(state.phase, record.type), record, None)
        return _Row(self, state, record, canonical, put)

    def deliveries(self, state: Conversation, record: Accepted) -> tuple[Deliver, ...]:
        """Both parties' streams; made once for each sender of what goes to both alike."""
        if record.type in ("CALL", "END"):
            return _deliveries(state, record, self._holder)
        key = (record.sender, self._holder(state.caller), self._holder(state.callee))
        made = self._deliver.get(key)
        if made is None:
            made = self._deliver[key] = _deliveries(state, record, self._holder)
        return made

    def folded(self, state: Conversation, record: Accepted, put: Put | None) -> None:
        """After the commit of a record: fold it, and tell the desks."""
        core.fold(state, record, self._rules.envelopes)
        if record.sender != state.wire:
            self._tally.accepted += 1
        if put is not None:
            state.version += 1
            self._nudge_for(put)
            self._tell_desks(state, record)

    def doubted(self, state: Conversation, put: Put) -> None:
        """A commit that changes how the call stands is in doubt: it may be written all the same."""
        self._nudge_for(put)
        for party in (state.caller, state.callee):
            self._house.tell("desk", party, Doubtful(state.conv))

    def _nudge_for(self, put: Put) -> None:
        """After the commit: the timers read the store when they wake."""
        for name, value in put.index:
            if name == "due" and isinstance(value, int):
                self._nudge(value)

    def _document(self, state: Conversation, phase: Phase, record: Accepted | None, due: int | None) -> Put:
        kind = record.type if record is not None else None
        at = record.at if record is not None else 0
        answered_at = at if kind == "PICKUP" else state.answered_at
        row = ConvRow(
            conv=state.conv,
            caller=state.caller,
            callee=state.callee,
            code_from=state.code_from,
            code_to=state.code_to,
            wire=state.wire,
            phase=phase,
            opened_at=state.opened_at,
            answered_at=answered_at,
            ended_at=at if kind == "END" else None,
            end=record.body if record is not None and kind == "END" else None,
        )
        index: list[tuple[str, str | int]] = [("party", state.caller), ("party", state.callee)]
        if answered_at is not None:
            index.append(("pair", pair_name(state.caller, state.callee)))
        if phase is Phase.ENDED:
            index.append(("ended", at))
        else:
            index += [("live", "1"), ("open", state.caller)]
            index.append(("open", state.callee) if answered_at is not None else ("ringing", state.callee))
            limit = self._rules.ring_s if phase is Phase.RINGING else self._rules.idle_s
            if due is None:  # by the wall clock of now: `at` lies ahead of it after a step back
                due = self._clock.now_ms() + round(limit * 1000)
            index.append(("due", due))
        return Put("conv", state.conv, state.version, msgspec.json.encode(row), tuple(index))

    def _tell_desks(self, state: Conversation, record: Accepted) -> None:
        if record.type == "CALL":
            self._house.tell("desk", state.caller, Dialled(state.conv))
            self._house.tell("desk", state.callee, Rung(state.conv, state.caller))
        elif record.type == "PICKUP":
            self._house.tell("desk", state.callee, Dialled(state.conv))
        elif record.type == "END":
            self._house.tell("desk", state.caller, Finished(state.conv))
            self._house.tell("desk", state.callee, Finished(state.conv))


class _Row(Write):
    """The row of an accepted envelope: what is committed, and what is done and answered then."""

    __slots__ = ("_actor", "_chain", "_put", "_record", "_state")

    def __init__(
        self,
        actor: ConversationActor,
        state: Conversation,
        record: Accepted,
        canonical: bytes,
        put: Put | None,
    ) -> None:
        self.began = record.mono
        self._actor = actor
        self._state = state
        self._record = record
        self._chain = record.chain.hex()
        self._put = put
        text = row_text(
            state.conv, record.n, record.sig, self._chain, canonical, resubmitted=record.resubmitted
        )
        self.unit = Unit(
            append=Append(actor.log, record.n, text, record.at),
            puts=() if put is None else (put,),
            deliver=actor.deliveries(state, record),
        )

    def settle(self, refused: Refusal | None) -> Ack | Refusal:
        if refused is None:
            self._actor.folded(self._state, self._record, self._put)
            return Ack(self._state.conv, self._record.n, self._chain, self._record.at)
        if refused.code == "in_doubt" and self._put is not None:
            self._actor.doubted(self._state, self._put)
        return refused


def taken(state: Conversation, sender: str) -> Refusal:
    """Step 10: the id exists. Its own caller hears how it stands, anyone else only that it is taken."""
    if sender != state.caller:
        return refuse("conv_exists", "this conv was used before; choose a new random one")
    if state.phase is Phase.ENDED:
        return core.ended(state)
    return core.conflict(state, 0)


def _deliveries(state: Conversation, record: Accepted, holder: Holder) -> tuple[Deliver, ...]:
    kind = "end" if record.type == "END" else "env"
    called = "ring" if record.type == "CALL" else kind
    return tuple(
        Deliver(stream, kind, own=record.sender == party)
        for party, kind in ((state.caller, kind), (state.callee, called))
        for stream in streams_of(party, holder)
    )
