"""Reading what was said: transcripts, a key's conversations, receipts, and the dry run. None of these writes."""

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from broker.actors.conversation import ConvRow, Row, log_name, taken
from broker.core import conversation as core
from broker.core.conversation import Conversation, Send
from broker.core.machine import Now
from broker.store.port import Document
from broker.tools.context import Context, Services
from broker.tools.lookup import (
    ConvParam,
    EnvelopeParam,
    NParam,
    SigParam,
    StatementParam,
    conv_row,
    live,
    missing_conv,
    resolve,
    unknown_desk,
)
from broker.tools.proof import reader
from broker.tools.registry import tool
from broker.wire import canonical as canon
from broker.wire.chain import chain_start, receipt_text
from broker.wire.envelope import Envelope, read_envelope
from broker.wire.ids import Sig
from broker.wire.refusals import Refusal, refuse

AfterN = Annotated[int, Meta(ge=-1, le=2**53 - 1, description="rows after this n; -1 from the start")]
Limit = Annotated[int, Meta(ge=1, le=500, description="at most this many")]
State = Literal["ringing", "open", "ended"]


TranscriptRow = Annotated[
    msgspec.Raw,
    Meta(extra_json_schema={"type": "object"}, description="one row: n, sig, envelope, chain, accepted_at"),
]


class Party(msgspec.Struct, frozen=True):
    """One side of a call: its key, and the code it used."""

    pk: str
    code: str


class Parties(msgspec.Struct, frozen=True):
    """Who dialled, and who was called."""

    caller: Party
    called: Party


class ConvHead(msgspec.Struct, frozen=True):
    """The last envelope: its number, signature and chain value."""

    n: int
    sig: str
    chain: str


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True):
    """A transcript, or a page of it. Each row: n, sig, envelope, chain, accepted_at (Unix milliseconds)."""

    conv: str
    state: str
    parties: Parties
    head: ConvHead
    rows: list[TranscriptRow]
    next: int | None = None
    """Where there is more: the `after` of the next page."""


class ConvSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One conversation of a key. Times are Unix milliseconds."""

    conv: str
    state: str
    parties: Parties
    opened_at: int
    answered_at: int | None = None
    ended_at: int | None = None
    reason: str | None = None


class ConvList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Conversations of a key, newest first; `next` is the `after` of the next page."""

    convs: list[ConvSummary]
    next: int | None = None


class ReceiptResult(msgspec.Struct, frozen=True):
    """The wire's word that it accepted a row, and when; `sig` is over the receipt's canonical text."""

    receipt: Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]
    sig: str


class DueNext(msgspec.Struct, frozen=True):
    """What the next envelope must carry."""

    n: int
    prev_sig: str


class DryRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The bytes to sign, and what would be refused."""

    canonical: str | None = None
    sha256: str | None = None
    refusals: list[dict[str, Any]] = []
    due: DueNext | None = None


@tool(face="wire", title="Read a transcript", read_only=True)
async def read_conv(
    context: Context,
    conv: ConvParam,
    after: AfterN = -1,
    limit: Limit = 100,
    statement: StatementParam | None = None,
    sig: SigParam | None = None,
) -> Transcript | Refusal:
    """Read a conversation's transcript, in order; page on with after = next.

    Where transcripts are for the parties alone, send a follow statement of a party's key.
    """
    row = await readable(context, conv, statement, sig)
    if isinstance(row, Refusal):
        return row
    store = context.services.store
    head = await store.tail(log_name(conv), None, 1)
    entries = await store.entries(log_name(conv), after, limit)
    row = await conv_row(context.services, conv) or row
    if not head:
        return missing_conv(context)
    last = msgspec.json.decode(head[0].data, type=Row)
    more = bool(entries) and entries[-1].n < last.n
    return Transcript(
        conv=conv,
        state=row.phase,
        parties=_parties(row),
        head=ConvHead(last.n, last.sig, last.chain),
        rows=[_shown(entry.data, entry.at) for entry in entries],
        next=entries[-1].n if more else None,
    )


@tool(face="wire", title="List a key's conversations", read_only=True)
async def list_convs(
    context: Context,
    statement: StatementParam | None = None,
    sig: SigParam | None = None,
    state: Annotated[State | None, Meta(description="only those in this state")] = None,
    after: Annotated[int, Meta(ge=0, le=2**53 - 1, description="the `next` of the page before")] = 0,
    limit: Limit = 100,
) -> ConvList | Refusal:
    """List the open and recent conversations of a key, newest first. Needs a follow statement of the key."""
    caller = await reader(context, statement, sig)
    if isinstance(caller, Refusal):
        return caller
    assert caller.pk is not None  # reader() gives a caller with a key
    if state in ("open", "ringing"):
        rows = await _live_rows(context.services, caller.pk)
        live_rows = [row for row in rows if row.phase == state]
        return ConvList([_summary(row) for row in live_rows[:limit]])
    found: list[ConvSummary] = []
    while True:
        page = await context.services.store.find("conv", "party", caller.pk, after, limit, newest=True)
        for document in page:
            row = msgspec.json.decode(document.doc, type=ConvRow)
            after = document.order
            if not row.dropped and state in (None, row.phase):
                found.append(_summary(row))
            if len(found) == limit:
                return ConvList(found, next=after)
        if len(page) < limit:
            return ConvList(found)


@tool(face="wire", title="Ask for a receipt", read_only=True)
async def receipt(
    context: Context,
    conv: ConvParam,
    n: NParam,
    statement: StatementParam | None = None,
    sig: SigParam | None = None,
) -> ReceiptResult | Refusal:
    """Have the wire sign that it accepted envelope n of a conversation, and when. Made on demand."""
    row = await readable(context, conv, statement, sig)
    if isinstance(row, Refusal):
        return row
    entries = await context.services.store.entries(log_name(conv), n - 1, 1)
    if not entries or entries[0].n != n:
        return refuse("not_found", f"the conversation has no envelope {n} yet")
    stored = msgspec.json.decode(entries[0].data, type=Row)
    key = context.services.keyring.get(row.wire)
    text = receipt_text(key.pk, conv, n, stored.sig, stored.chain, entries[0].at)
    return ReceiptResult(msgspec.Raw(text), key.sign(text))


@tool(face="wire", title="Check an envelope without sending it", read_only=True)
async def canonicalize(
    context: Context,
    envelope: EnvelopeParam,
    statement: StatementParam | None = None,
    sig: SigParam | None = None,
) -> DryRun | Refusal:
    """Dry run: the canonical text to sign, its sha256, what would be refused and why, and the n and prev_sig due.

    Writes nothing and checks no signature. Where transcripts are for the parties alone, what depends on the
    conversation needs a follow statement of a party's key.
    """
    text = canon.canonicalize(envelope)
    if isinstance(text, Refusal):
        return DryRun(refusals=[text.body()])
    digest = hashlib.sha256(text).hexdigest()
    read = read_envelope(envelope)
    if isinstance(read, Refusal):
        return DryRun(text.decode(), digest, [read.body()])
    who: str | None = context.caller.pk
    if statement is not None or sig is not None:
        caller = await reader(context, statement, sig)
        if isinstance(caller, Refusal):
            return caller
        who = caller.pk
    refusals, due = await _dry_run(context, read, who)
    return DryRun(text.decode(), digest, [refusal.body() for refusal in refusals], due)


async def _dry_run(
    context: Context, envelope: Envelope, who: str | None
) -> tuple[list[Refusal], DueNext | None]:
    """What would be refused of a well-formed envelope, signature apart, and what is due next."""
    services = context.services
    now = Now(services.clock.now_ms(), services.clock.monotonic())
    skew = core.clock_skew(envelope.ts, now, services.rules)
    skewed = [skew] if skew is not None else []
    actor = await live(services, envelope.conv)
    state = actor.state if actor is not None else None
    told = state is not None and (services.settings.transcripts == "open" or state.party(who or ""))
    if envelope.n == 0:
        due = DueNext(0, chain_start(envelope.conv).hex()) if state is None else None
        if state is not None:
            return [taken(state, envelope.sender if told else ""), *skewed], due
        verdict = core.decide_call(envelope, Sig(""), now, services.rules)
        faults = [verdict] if isinstance(verdict, Refusal) else []
        return [*await _desk_faults(services, envelope), *faults], due
    if state is None or not told:
        hidden = services.settings.transcripts == "parties" and state is not None
        return skewed if hidden or services.settings.transcripts == "parties" else [
            missing_conv(context),
            *skewed,
        ], None
    if not state.party(envelope.sender):
        return [refuse("not_a_party", "from is not a party of the conversation"), *skewed], _due_next(state)
    verdict = core.decide_send(state, Send(envelope, Sig("")), now, services.rules)
    faults = [verdict] if isinstance(verdict, Refusal) else []
    return faults + [fault for fault in skewed if fault not in faults], _due_next(state)


async def _desk_faults(services: Services, envelope: Envelope) -> list[Refusal]:
    faults: list[Refusal] = []
    for name, pk, path in (("code_from", envelope.sender, "body.code_from"), ("code_to", envelope.to, "to")):
        code = envelope.body.get(name)
        row = await resolve(services, code) if isinstance(code, str) else None
        if row is None:
            faults.append(unknown_desk(str(code)))
        elif row.pk != pk:
            faults.append(refuse("bad_envelope", f"{name} resolves to another key", path=path, pk=row.pk))
    if "wire" in envelope.body and envelope.body["wire"] not in services.keyring.opening:
        faults.append(refuse("bad_envelope", "body.wire names another wire", path="body.wire"))
    return faults


def _due_next(state: Conversation) -> DueNext | None:
    return None if state.end is not None else DueNext(state.n + 1, state.sig)


async def readable(
    context: Context, conv: str, statement: bytes | None = None, sig: str | None = None
) -> ConvRow | Refusal:
    """The conversation's document for a caller that may read it; unknown_conv for all others."""
    services = context.services
    who: str | None = context.caller.pk
    if statement is not None or sig is not None:
        caller = await reader(context, statement, sig)
        if isinstance(caller, Refusal):
            return caller
        who = caller.pk
    row = await conv_row(services, conv)
    if row is None or row.dropped:
        return missing_conv(context)
    if services.settings.transcripts == "parties" and who not in (row.caller, row.callee):
        return missing_conv(context)
    return row


async def _live_rows(services: Services, pk: str) -> list[ConvRow]:
    """All conversations of a key that have not ended; few, by the limits."""
    documents: dict[str, Document] = {}
    for name in ("open", "ringing"):
        after = 0
        while True:
            page = await services.store.find("conv", name, pk, after, 200)
            documents.update((document.id, document) for document in page)
            if len(page) < 200:
                break
            after = page[-1].order
    rows = [msgspec.json.decode(document.doc, type=ConvRow) for document in documents.values()]
    return sorted(rows, key=lambda row: row.opened_at, reverse=True)


def _summary(row: ConvRow) -> ConvSummary:
    reason = (row.end or {}).get("reason")
    return ConvSummary(
        conv=row.conv,
        state=row.phase,
        parties=_parties(row),
        opened_at=row.opened_at,
        answered_at=row.answered_at,
        ended_at=row.ended_at,
        reason=reason if isinstance(reason, str) else None,
    )


def _parties(row: ConvRow) -> Parties:
    return Parties(Party(row.caller, row.code_from), Party(row.callee, row.code_to))


def _shown(row: bytes, accepted_at: int) -> msgspec.Raw:
    """A stored row as clients see it, with accepted_at."""
    return msgspec.Raw(b'{"accepted_at":%d,%s' % (accepted_at, row[1:]))
