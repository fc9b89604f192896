"""The conversation's actor: what is more than decide and fold (wire.md, Life of a call, Retries).

One unit a record: the row, its two deliveries, and (at CALL, PICKUP and END) the conversation's document with its
index rows. The desks of both keys are told after the commit; a desk that is not alive counts from the store.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from broker.actors.actor import NOT_NOW, Actor, Stop, Write
from broker.actors.house import House
from broker.actors.recent import Recent
from broker.clock import Clock
from broker.core import conversation as core
from broker.core.conversation import Accepted, Conversation, Due, Hangup, Later, Rules, Send
from broker.core.machine import Now, mono_of
from broker.store.port import Append, Deliver, Document, Entry, Put, Store, Unit
from broker.wire import envelope as envelopes
from broker.wire.call import Phase, next_phase
from broker.wire.chain import chain_next, row_text
from broker.wire.envelope import Envelope
from broker.wire.ids import ConvId, Pk, Sig
from broker.wire.keyring import Keyring
from broker.wire.refusals import Refusal, refuse


class ConvRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A conversation as stored (kind "conv", id = conv): what is known without reading its log."""

    conv: str
    caller: str
    callee: str
    code_from: str
    code_to: str
    wire: str
    phase: Phase
    opened_at: int
    answered_at: int | None = None
    ended_at: int | None = None
    end: dict[str, Any] | None = None
    dropped: bool = False
    """Retention removed the transcript; the id stays taken for ever."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of a conversation's log as stored; the envelope's text is kept as it was signed."""

    chain: str
    conv: str
    envelope: msgspec.Raw
    n: int
    sig: str
    resubmitted: bool = False


class Ack(msgspec.Struct, frozen=True, omit_defaults=True):
    """An acknowledgement: durable, and visible to every reader."""

    conv: str
    n: int
    chain: str
    accepted_at: int
    """Unix milliseconds."""
    replayed: bool = False


class Dial(msgspec.Struct, frozen=True):
    """A verified CALL for an id that may be new."""

    envelope: Envelope
    sig: Sig


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


def log_name(conv: str) -> str:
    """The log of a conversation."""
    return f"conv:{conv}"


def stream_name(pk: str) -> str:
    """The stream of a key."""
    return f"pk:{pk}"


def pair_name(one: str, other: str) -> str:
    """The index value that two keys share once they have talked."""
    return ":".join(sorted((one, other)))


async def find_replay(store: Store, envelope: Envelope, sig: str) -> Ack | None:
    """The stored acknowledgement where this very envelope (conv, n, sig, canonical text) was accepted before."""
    entries = await store.entries(log_name(envelope.conv), envelope.n - 1, 1)
    if not entries:
        return None
    row = msgspec.json.decode(entries[0].data, type=Row)
    if row.n != envelope.n or row.sig != sig or bytes(row.envelope) != envelope.canonical:
        return None
    return Ack(row.conv, row.n, row.chain, entries[0].at, replayed=True)


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
        nudge: Callable[[int], None],
        mailbox: int,
        commit_timeout_s: float,
    ) -> None:
        super().__init__(
            conv, store=store, mailbox=mailbox, commit_timeout_s=commit_timeout_s, overdue=house.overdue
        )
        self._clock = clock
        self._rules = rules
        self._keyring = keyring
        self._house = house
        self._started = started
        self._recent = recent
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
        mono = self._clock.monotonic()
        if self.leaving and mono - state.last_mono >= self._rules.window_s:
            self._recent.forget(state)
        else:
            self._recent.ended(state, mono)

    def decide(self, command: Any) -> Any:
        """An envelope that is next needs nothing but what is known: the hot path."""
        state = self.state
        if type(command) is not Send or state is None or command.envelope.n != state.n + 1:
            return NOT_NOW
        record = core.decide_send(state, command, self.now(), self._rules)
        if isinstance(record, Refusal):
            return record
        return self._write(state, record, command.envelope.canonical)

    async def handle(self, command: Any) -> Any:
        match command:
            case Send():
                return await self._send(command)
            case Dial():
                return await self._dial(command)
            case Hangup():
                return await self._hang_up(command)
            case Due():
                return await self._due()
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
            if record.code == "conflict" and command.envelope.n > state.n + 1:
                await self._look_ahead(state)
            return record
        return await self._append(state, record, command.envelope.canonical)

    async def _look_ahead(self, state: Conversation) -> None:
        """Who names an n beyond our head may have seen a commit that was in doubt and landed after we read."""
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
            self._closed = True  # it knows of no call, and one in doubt may land: nobody should go by that
        return answer

    async def _hang_up(self, command: Hangup) -> Ack | Refusal | None:
        state = self.state
        if state is None or state.phase is Phase.ENDED:
            return None
        key = self._keyring.get(state.wire)
        body: dict[str, Any] = {"reason": command.reason}
        if command.by is not None:
            body["by"] = command.by
        now = self.now()
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
        return await self._append(state, record, canonical)

    async def _due(self) -> Any:
        state = self.state
        if state is None:
            return None
        verdict = core.decide_due(state, self.now(), self._rules, self._started.mono)
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

    def _write(self, state: Conversation, record: Accepted, canonical: bytes) -> Write:
        """The unit of an accepted envelope, and what follows its commit."""
        chain = record.chain.hex()
        put: Put | None = None
        if record.type in ("CALL", "PICKUP", "END"):
            put = self._document(state, next_phase(state.phase, record.type), record, None)
        text = row_text(state.conv, record.n, record.sig, chain, canonical)
        unit = Unit(
            append=Append(log_name(state.conv), record.n, text, record.at),
            puts=() if put is None else (put,),
            deliver=_deliveries(state, record),
        )
        return Write(unit, partial(self._settle, state, record, chain, put))

    def _settle(
        self, state: Conversation, record: Accepted, chain: str, put: Put | None, refused: Refusal | None
    ) -> Ack | Refusal:
        """After the commit: fold and tell; or, in doubt, have the store asked about it."""
        if refused is not None:
            if refused.code == "in_doubt" and put is not None:
                self._nudge_for(put)  # it may be written all the same
                for party in (state.caller, state.callee):
                    self._house.tell("desk", party, Doubtful(state.conv))
            return refused
        core.fold(state, record, self._rules.envelopes)
        if put is not None:
            state.version += 1
            self._nudge_for(put)
            self._tell_desks(state, record)
        return Ack(state.conv, record.n, chain, record.at)

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
            index.append(("open", state.caller))
            index.append(("open", state.callee) if answered_at is not None else ("ringing", state.callee))
            limit = self._rules.ring_s if phase is Phase.RINGING else self._rules.idle_s
            due = at + round(limit * 1000) if due is None else due
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


def taken(state: Conversation, sender: str) -> Refusal:
    """Step 10: the id exists. Its own caller hears how it stands, anyone else only that it is taken."""
    if sender != state.caller:
        return refuse("conv_exists", "this conv was used before; choose a new random one")
    if state.phase is Phase.ENDED:
        return core.ended(state)
    return core.conflict(state, 0)


async def read_state(
    store: Store, document: Document, now: Now, started: Now, limit: int, seen: Conversation | None = None
) -> Conversation | None:
    """Fold a conversation from its document and the end of its log: at most `limit` counted rows are read back.

    `seen`: what this process knew of it a moment ago. None where retention removed the transcript.
    """
    row = msgspec.json.decode(document.doc, type=ConvRow)
    tail = await _counted_tail(store, row.conv, limit)
    if not tail:
        return None
    last = msgspec.json.decode(tail[0].data, type=Row)
    head = msgspec.json.decode(last.envelope, type=_Head)
    counted = [entry for entry in reversed(tail) if _counts(entry) is not None]
    if seen is None:
        last_mono = mono_of(tail[0].at, now, started.mono)
        spent = deque(mono_of(entry.at, started, started.mono) for entry in counted)
    else:
        last_mono = seen.last_mono if seen.n == last.n else _landed(tail[0].at, now, seen)
        spent = deque(seen.spent)
        spent.extend(_landed(entry.at, now, seen) for entry in counted if entry.n > seen.n)
    while len(spent) > limit:
        spent.popleft()
    return Conversation(
        conv=row.conv,
        caller=Pk(row.caller),
        callee=Pk(row.callee),
        code_from=row.code_from,
        code_to=row.code_to,
        wire=Pk(row.wire),
        phase=row.phase,
        n=last.n,
        sig=Sig(last.sig),
        chain=bytes.fromhex(last.chain),
        last_from=Pk(head.sender),
        last_at=tail[0].at,
        last_mono=last_mono,
        spent=spent,
        end=row.end,
        version=document.version,
        opened_at=row.opened_at,
        answered_at=row.answered_at,
    )


def _landed(at: int, now: Now, seen: Conversation) -> float:
    """When a row was accepted whose commit was in doubt, as far as the clocks tell."""
    return max(seen.last_mono, mono_of(at, now, now.mono))


class _Head(msgspec.Struct, frozen=True):
    sender: str = msgspec.field(name="from")
    type: str


def _counts(entry: Entry) -> Row | None:
    """The row if it spent a token: no END, not resubmitted."""
    row = msgspec.json.decode(entry.data, type=Row)
    if row.resubmitted or msgspec.json.decode(row.envelope, type=_Head).type == "END":
        return None
    return row


async def _counted_tail(store: Store, conv: str, limit: int) -> list[Entry]:
    """The last rows, falling, until `limit` counted ones or the log's start were read."""
    rows: list[Entry] = []
    counted = 0
    while counted < limit:
        page = await store.tail(log_name(conv), rows[-1].n if rows else None, limit + 1)
        rows.extend(page)
        counted += sum(1 for entry in page if _counts(entry) is not None)
        if len(page) <= limit:
            break
    return rows


def _deliveries(state: Conversation, record: Accepted) -> tuple[Deliver, ...]:
    kind = "end" if record.type == "END" else "env"
    called = "ring" if record.type == "CALL" else kind
    return (
        Deliver(stream_name(state.caller), kind, own=record.sender == state.caller),
        Deliver(stream_name(state.callee), called, own=record.sender == state.callee),
    )
