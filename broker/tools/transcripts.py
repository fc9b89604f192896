"""Reading what was said: transcripts, a key's conversations, receipts, and the dry run. None of these writes."""

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from broker.actors.calls import ConvRow, log_name, read_conv_row, read_row, without_rows
from broker.actors.conversation import taken
from broker.core import conversation as core
from broker.core.conversation import Conversation, Send
from broker.core.machine import Now
from broker.store.port import Document, Entry, Store
from broker.tools.access import may_listen
from broker.tools.agree import call_form, desks_agree, suspended
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
)
from broker.tools.proof import reader
from broker.tools.registry import tool
from broker.wire import canonical as canon
from broker.wire.chain import chain_start, receipt_text
from broker.wire.envelope import Envelope, read_envelope
from broker.wire.ids import Pk, Sig
from broker.wire.refusals import Refusal, refuse

AfterN = Annotated[int, Meta(ge=-1, le=2**53 - 1, description="rows after this n; -1 from the start")]
Limit = Annotated[int, Meta(ge=1, le=500, description="at most this many")]
PAGE_BYTES = 262_144
"""What one page of a transcript carries at most, one row apart."""
PAGE_STEP = 32
"""Rows read at once: 256 KiB of the largest."""
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

    Where transcripts are for the parties alone, send a follow statement of a party's key, or its agent's token.
    """
    row = await readable(context, conv, statement, sig)
    if isinstance(row, Refusal):
        return row
    store = context.services.store
    head = await store.tail(log_name(conv), None, 1)
    entries = await _page(store, log_name(conv), after, limit)
    row = await conv_row(context.services, conv) or row
    if not head:
        await without_rows(store, row)
        return missing_conv(context)
    last = read_row(conv, head[0])
    more = bool(entries) and entries[-1].n < last.n
    return Transcript(
        conv=conv,
        state=row.phase,
        parties=_parties(row),
        head=ConvHead(last.n, last.sig, last.chain),
        rows=[_shown(conv, entry) for entry in entries],
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
            row = read_conv_row(document)
            after = document.order
            if state in (None, row.phase):
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
        if not await context.services.store.tail(log_name(conv), None, 1):
            await without_rows(context.services.store, row)
        return refuse("not_found", f"the conversation has no envelope {n} yet")
    stored = read_row(conv, entries[0])
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
    conversation needs a follow statement of a party's key, or its agent's token.
    """
    text = canon.canonicalize(envelope)
    if isinstance(text, Refusal):
        return DryRun(refusals=[text.body()])
    digest = hashlib.sha256(text).hexdigest()
    read = read_envelope(envelope)
    if isinstance(read, Refusal):
        return DryRun(text.decode(), digest, [read.body()])
    who = await _who(context, statement, sig)
    if isinstance(who, Refusal):
        return who
    refusals, due = await _dry_run(context, read, who)
    return DryRun(text.decode(), digest, [refusal.body() for refusal in refusals], due)


async def _dry_run(
    context: Context, envelope: Envelope, who: str | None
) -> tuple[list[Refusal], DueNext | None]:
    """What would be refused of a well-formed envelope, signature apart, and what is due next."""
    services = context.services
    now = Now(services.clock.now_ms(), services.clock.monotonic())
    row = await conv_row(services, envelope.conv)
    told = row is not None and (services.settings.transcripts == "open" or _is_party(context, who, row))
    actor = await live(services, envelope.conv) if told or (row is not None and envelope.n == 0) else None
    state = actor.state if actor is not None else None
    if envelope.n == 0 or envelope.type == "CALL":
        return await _dry_call(services, envelope, now, row, state if told else None)
    skew = core.clock_skew(envelope.ts, now, services.rules)
    faults = [fault for fault in (suspended(services, envelope), skew) if fault is not None]
    if state is None:
        unknown = [] if services.settings.transcripts == "parties" else [missing_conv(context)]
        return unknown + faults, None
    if not core.may_send(state, envelope, now, services.rules):
        return [refuse("not_a_party", "from is not a party of the conversation"), *faults], _due_next(state)
    if core.is_lost(state, envelope, now, services.rules):
        faults = [fault for fault in faults if fault is not skew]
    verdict = core.decide_send(state, Send(envelope, Sig("")), now, services.rules)
    if isinstance(verdict, Refusal) and verdict not in faults:
        faults.insert(0, verdict)
    return faults, _due_next(state)


async def _dry_call(
    services: Services, envelope: Envelope, now: Now, row: ConvRow | None, state: Conversation | None
) -> tuple[list[Refusal], DueNext | None]:
    """The same for a CALL, in the order in which send_call judges."""
    form = call_form(envelope, services.keyring.opening)
    if form is not None:
        return [form], DueNext(0, chain_start(envelope.conv).hex()) if row is None else None
    verdict = core.decide_call(envelope, Sig(""), now, services.rules)
    used = refuse("conv_exists", "this conv was used before; choose a new random one")
    found = [
        await desks_agree(services, envelope),
        suspended(services, envelope),
        None if row is None else taken(state, envelope.sender) if state is not None else used,
        verdict if isinstance(verdict, Refusal) else None,
    ]
    due = DueNext(0, chain_start(envelope.conv).hex()) if row is None else None
    return [fault for fault in found if fault is not None], due


async def _page(store: Store, log: str, after: int, limit: int) -> list[Entry]:
    """At most `limit` rows, and no more than PAGE_BYTES of them (but one): a reply must not stall the others."""
    page: list[Entry] = []
    size = 0
    while len(page) < limit:
        step = min(PAGE_STEP, limit - len(page))
        entries = await store.entries(log, page[-1].n if page else after, step)
        for entry in entries:
            size += len(entry.data)
            if page and size > PAGE_BYTES:
                return page
            page.append(entry)
        if len(entries) < step:
            break
    return page


def _due_next(state: Conversation) -> DueNext | None:
    return None if state.end is not None else DueNext(state.n + 1, state.sig)


async def readable(
    context: Context, conv: str, statement: bytes | None = None, sig: str | None = None
) -> ConvRow | Refusal:
    """The conversation's document for a caller that may read it, or for operators; unknown_conv for all others."""
    services = context.services
    who = await _who(context, statement, sig)
    if isinstance(who, Refusal):
        return who
    row = await conv_row(services, conv)
    if row is None or row.dropped:
        return missing_conv(context)
    if (
        services.settings.transcripts == "parties"
        and not context.caller.operator
        and not _is_party(context, who, row)
    ):
        return missing_conv(context)
    return row


def _is_party(context: Context, who: str | None, row: ConvRow) -> bool:
    """Whether somebody is a party: by the key that it proves, or by the token of the agent whose key a party is."""
    if who in (row.caller, row.callee):
        return True
    agent, holder = context.caller.agent, context.services.standing.holder
    listens = agent is not None and may_listen(context.caller) is None
    return listens and agent in (holder(row.caller), holder(row.callee))


async def _who(context: Context, statement: bytes | None, sig: str | None) -> Pk | Refusal | None:
    """The key that a reader proves, None for nobody; a proof is looked at only where it matters, or was sent."""
    sent = statement is not None or sig is not None
    if not sent and (context.caller.pk is None or context.services.settings.transcripts == "open"):
        return context.caller.pk
    caller = await reader(context, statement, sig)
    return caller if isinstance(caller, Refusal) else caller.pk


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
    rows = [read_conv_row(document) for document in documents.values()]
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


def _shown(conv: str, entry: Entry) -> msgspec.Raw:
    """A stored row as clients see it, with accepted_at."""
    read_row(conv, entry)  # what is no row is not handed out
    return msgspec.Raw(b'{"accepted_at":%d,%s' % (entry.at, entry.data[1:]))
