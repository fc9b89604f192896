"""A call as the store has it: names, rows, and its state read back from them (wire.md, Retries, Limits)."""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from broker.core.conversation import Conversation, Restored
from broker.core.machine import Now, mono_of
from broker.store.port import Document, Entry, Store
from broker.store.stored import UNREADABLE, damaged, stored
from broker.wire.call import Phase
from broker.wire.envelope import Envelope
from broker.wire.ids import Pk, Sig


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


def log_name(conv: str) -> str:
    """The log of a conversation."""
    return f"conv:{conv}"


def stream_name(pk: str) -> str:
    """The stream of a key."""
    return f"pk:{pk}"


def agent_stream(agent_id: str) -> str:
    """The stream of an agent."""
    return f"agent:{agent_id}"


Holder = Callable[[str], str | None]
"""The agent whose key a pk is now, if it is one's."""


def streams_of(pk: str, holder: Holder) -> tuple[str, ...]:
    """Where a key's events go: its own stream, and that of the agent whose key it is."""
    agent_id = holder(pk)
    return (stream_name(pk),) if agent_id is None else (stream_name(pk), agent_stream(agent_id))


def pair_name(one: str, other: str) -> str:
    """The index value that two keys share once they have talked."""
    return ":".join(sorted((one, other)))


async def read_restored(store: Store) -> Restored | None:
    """When this store was last restored from a backup, and of when that was; None: never."""
    document = await store.get("wire", "restored")
    return None if document is None else stored(Restored, document.doc, "wire", document.id)


def read_conv_row(document: Document) -> ConvRow:
    """A conversation's document. Raises Unavailable, which names it, where it is damaged."""
    return stored(ConvRow, document.doc, "conv", document.id)


def read_row(conv: str, entry: Entry) -> Row:
    """A row of a conversation's log. Raises Unavailable, which names it, where it is damaged."""
    return stored(Row, entry.data, "conv", conv)


async def find_replay(store: Store, envelope: Envelope, sig: str) -> Ack | None:
    """The stored acknowledgement where this very envelope (conv, n, sig, canonical text) was accepted before."""
    entries = await store.entries(log_name(envelope.conv), envelope.n - 1, 1)
    if not entries:
        return None
    row = read_row(envelope.conv, entries[0])
    if row.n != envelope.n or row.sig != sig or bytes(row.envelope) != envelope.canonical:
        return None
    return Ack(row.conv, row.n, row.chain, entries[0].at, replayed=True)


async def read_state(
    store: Store, document: Document, now: Now, started: Now, limit: int, seen: Conversation | None = None
) -> Conversation | None:
    """Fold a conversation from its document and the end of its log: at most `limit` counted rows are read back.

    `seen`: what this process knew of it a moment ago. None where retention removed the transcript. Raises Unavailable,
    which names the conversation, for rows that are damaged, or gone though nothing removed them.
    """
    try:
        return await _fold(store, document, now, started, limit, seen)
    except UNREADABLE as error:
        raise damaged("conv", document.id, error) from error


async def without_rows(store: Store, row: ConvRow) -> None:
    """For whoever finds a conversation's log empty: retention removed it, maybe just now, or Unavailable is raised."""
    if not row.dropped:
        document = await store.get("conv", row.conv)
        if document is None or not read_conv_row(document).dropped:
            raise damaged("conv", row.conv, "its log is empty")


async def _fold(
    store: Store, document: Document, now: Now, started: Now, limit: int, seen: Conversation | None
) -> Conversation | None:
    row = read_conv_row(document)
    tail = await _counted_tail(store, document.id, limit)
    if not tail:
        await without_rows(store, row)
        return None
    last = read_row(document.id, tail[0])
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
        resubmitted=last.resubmitted,
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
