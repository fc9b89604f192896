"""The auditor: gives notes their place in the audit log's chain, one after the other (network.md, Audit).

1. There is one, so that the chain can't fork. Rows, the notes that they were, and the signed head are one unit.
2. The head is written beside the store after the commit. A crash between the two leaves the file behind, by rows that
   follow from it; that is mended at the next start.
3. It never writes over what tells of a damage: when the store is not as the heads say that it was left, the next row is
   an alarm with what was found. An older store that came by `turret restore` says so itself: a row too, and no alarm.
"""

import hashlib
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from broker.actors.actor import Actor
from broker.actors.calls import read_restored
from broker.actors.headkeeper import HeadKeeper
from broker.actors.notes import WAITING, WAITS
from broker.clock import Clock
from broker.core import audit as core
from broker.core.audit import AuditEvent
from broker.store.complaints import Complaints
from broker.store.port import Document, Put, Unavailable, Unit
from broker.wire.auditlog import (
    NOTHING,
    RESTORED,
    AuditHead,
    head_text,
    nothing,
    read_head,
    read_row,
    seal,
)
from broker.wire.keyring import Keyring
from broker.wire.refusals import Refusal

log = logging.getLogger("turret.audit")
ROW: Final = "audit"
"""The kind of rows; their ids are their numbers, with zeros before them."""
HEAD: Final = "audit-head"
"""The kind, and the id, of the head's document."""
KEY: Final = "log"
"""The auditor's own key in the house."""
BATCH: Final = 64
"""Notes that become rows in one unit: each is signed, some 5 ms together."""
MOST: Final = 1024
"""Notes that one letter has done."""
FAR: Final = 2**62
LONGEST: Final = 18
"""Digits of a row's number."""


class Drain(msgspec.Struct, frozen=True):
    """Have what waits become rows. Answer: how many did, or a Refusal."""


class Look(msgspec.Struct, frozen=True):
    """How the log stands. Answer: Looked."""


class Looked(msgspec.Struct, frozen=True):
    """The heads at one moment between two units. `known`: the last one that this process has made or read."""

    head: bytes | None
    beside: bytes | None
    apart: bool
    known: AuditHead | None


class Log(msgspec.Struct):
    """The state: the head, its document's version; what is to be written first; whether the file is behind."""

    head: AuditHead | None = None
    version: int = 0
    first: list[tuple[str, AuditEvent]] = []
    behind: bool = False
    beyond: dict[int, int] = {}
    """Rows that stand where none should: number → version."""


class _Found(msgspec.Struct, frozen=True):
    """The heads as they were found: the text in the store, and the head if it is signed; the same of that beside it.
    And the times of a restore that no row tells of yet."""

    text: bytes | None
    kept: AuditHead | None
    beside: bytes | None
    near: AuditHead | None
    restore: tuple[int, int] | None


class Witness:
    """The last head that this process knows of, whatever became of the actor."""

    def __init__(self) -> None:
        self.head: AuditHead | None = None


def row_id(n: int) -> str:
    """The document id of row `n`: their order is that of the numbers."""
    return f"{n:012d}"


def number_of(id: str) -> int | None:
    """The number of the row with this id; None: it is no row's."""
    text = str(id)  # in a damaged file it may be anything
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST else 0
    return number if number and row_id(number) == id else None


class AuditorActor(Actor[Log]):
    """The one auditor."""

    def __init__(
        self,
        key: str,
        *,
        clock: Clock,
        keyring: Keyring,
        keeper: HeadKeeper | None,
        witness: Witness,
        new_id: Callable[[str], str],
        **parts: Any,
    ) -> None:
        parts.pop("nudge", None)
        super().__init__(key, **parts)
        self._clock = clock
        self._keyring = keyring
        self._wires = frozenset(row["pk"] for row in keyring.listing())
        self._keeper = keeper
        self._witness = witness
        self._new_id = new_id
        self._complaints = Complaints(log)

    async def load(self) -> Log:
        document = await self.store.get(HEAD, KEY)
        beside = None if self._keeper is None else await self._read_beside(self._keeper)
        found = _Found(
            None if document is None else document.doc,
            self._signed(None if document is None else document.doc),
            beside,
            self._signed(beside),
            await self._untold(),
        )
        base = max(filter(None, self._bases(found)), key=lambda head: head.count, default=None)
        head = await self._forward(base or await self._last())
        state = Log(head, 0 if document is None else document.version)
        state.beyond = await self._beyond(0 if head is None else head.count)
        state.behind = self._keeper is not None and (found.near is None or head not in (None, found.near))
        for event in await self._judge(found, state):
            state.first.append((self._new_id("au_"), event))
        self._witness.head = self._witness.head or head
        return state

    def _bases(self, found: "_Found") -> tuple[AuditHead | None, ...]:
        """From which heads the log may go on: the last one that is known, so that what is gone stays missing; after a
        restore that of the store alone."""
        return (found.kept,) if found.restore is not None else (found.kept, found.near, self._witness.head)

    async def handle(self, command: Any) -> Any:
        match command:
            case Drain():
                return await self._drain()
            case Look():
                return await self._look()
        raise TypeError(type(command))

    async def _look(self) -> Looked:
        try:
            document = await self.store.get(HEAD, KEY)
            kept = None if document is None else document.doc
        except Unavailable:  # it is there, and damaged: no head that is signed
            kept = b""
        beside = None if self._keeper is None else await self._read_beside(self._keeper)
        return Looked(kept, beside, self._keeper is not None, self._witness.head)

    async def _drain(self) -> int | Refusal:
        state, done = self.state, 0
        assert state is not None  # load() always gives one
        if state.behind:  # also before the first row: where there is none beside, somebody has taken it
            await self._keep(state)
        while done < MOST:
            notes = await self.store.due(WAITING, WAITS, FAR, BATCH)
            events = [*state.first, *((note.id, self._event(note)) for note in notes)]
            if not events:
                break
            refused = await self._write(state, events, notes)
            if refused is not None:
                return refused
            state.first = []
            done += len(events)
            await self._keep(state)
            if len(notes) < BATCH:
                break
        return done

    async def _write(
        self, state: Log, events: list[tuple[str, AuditEvent]], notes: list[Document]
    ) -> Refusal | None:
        """One unit: the rows, the notes that they were, the head."""
        head, now, puts = state.head, self._clock.now_ms(), list[Put]()
        for note_id, event in events:
            n, last = (1, NOTHING) if head is None else (head.count + 1, head.hash)
            members = core.members_of(n, note_id, event)
            text, head = seal(self._keyring.current, last, members, now)
            puts.append(Put(ROW, row_id(n), state.beyond.get(n, 0), text, core.index_of(members)))
        assert head is not None  # there is an event
        puts += [Put(WAITING, note.id, note.version, None) for note in notes]
        puts.append(Put(HEAD, KEY, state.version, head_text(head)))
        refused = await self.commit(Unit(puts=tuple(puts)))
        if refused is None:
            state.head, state.version, state.behind = head, state.version + 1, True
            self._witness.head = head
        return refused

    async def _keep(self, state: Log) -> None:
        """Write the head beside the store. Where that fails the log goes on: the file is behind, and says no wrong."""
        if self._keeper is None:
            state.behind = False
            return
        head = state.head or nothing(self._keyring.current, self._clock.now_ms())
        try:
            await self._keeper.write(head_text(head) + b"\n")
        except OSError as error:
            self._complaints.say(
                f"the audit's head can't be written beside the store: {error.strerror or error}"
            )
        else:
            state.behind = False

    def _event(self, note: Document) -> AuditEvent:
        try:
            return msgspec.json.decode(note.doc, type=AuditEvent)
        except (msgspec.MsgspecError, UnicodeError):
            return core.unreadable(note.doc, self._clock.now_ms())

    async def _judge(self, found: "_Found", state: Log) -> list[AuditEvent]:
        """What must be said of how the log was found, before anything is written over."""
        now, head, events = self._clock.now_ms(), state.head, list[AuditEvent]()
        kept, near, known = found.kept, found.near, self._witness.head
        last = 0 if kept is None else kept.count
        former = near if near is not None and near.count > last else None
        if found.restore is not None:
            events.append(core.restored(*found.restore, former, now))
        elif known is not None and (
            known.count > last or await self._hash_at(known.count) not in (None, known.hash)
        ):
            events.append(_alarm("the log was changed under the broker", now, known))
        elif kept is not None and former is not None:
            events.append(_alarm("an older store was put back, or its tail cut off", now, former))
        elif kept is not None and head is not None and last < head.count:
            events.append(_alarm("the head in the store was older than its rows", now, kept))
        if head is not None and kept is None and head.count > 0:
            events.append(_alarm("the head in the store was missing or not signed", now, found.text))
        if self._keeper is not None and head is not None and near is None:
            events.append(_alarm("the head beside the store was missing or not signed", now, found.beside))
        elif near is not None and await self._hash_at(near.count) not in (None, near.hash):
            events.append(_alarm("the head beside the store was of another chain", now, near))
        if state.beyond:
            numbers = sorted(state.beyond)
            events.append(core.alarm("rows without a seal stood beyond the head", now, rows=numbers))
        for event in events:
            log.warning("the audit log: %s", event.detail.get("what", "the store was made of a backup"))
        return events

    async def _untold(self) -> tuple[int, int] | None:
        """The times of a restore that no row tells of yet."""
        restore = await read_restored(self.store)
        if restore is None:
            return None
        told = await self.store.find(ROW, "kind", RESTORED, limit=1, newest=True)
        found = read_row(told[0].doc) if told else None
        if found is not None and found[0].get("detail", {}).get("restored_at") == restore.restored_at:
            return None
        return restore.backup_at, restore.restored_at

    async def _forward(self, head: AuditHead | None) -> AuditHead | None:
        """The last of the sealed rows that follow a head."""
        while True:
            n = 1 if head is None else head.count + 1
            found = await self._row(n)
            if found is None or found.count != n or not found.is_signed(self._wires):
                return head
            head = found

    async def _beyond(self, count: int) -> dict[int, int]:
        found = {}
        for n in range(count + 1, count + BATCH + 2):
            document = await self.store.get(ROW, row_id(n))
            if document is not None:
                found[n] = document.version
        return found

    async def _last(self) -> AuditHead | None:
        """The head that the last sealed row makes, where no head is good."""
        for document in await self.store.find(ROW, "all", "1", limit=BATCH, newest=True):
            found = read_row(document.doc)
            if found is not None and document.id == row_id(found[1].count) and self._is_good(found[1]):
                return found[1]
        return None

    async def _row(self, n: int) -> AuditHead | None:
        """The head that row `n` makes; None where it is missing or can't be read."""
        try:
            document = await self.store.get(ROW, row_id(n))
        except Unavailable:
            return None
        found = None if document is None else read_row(document.doc)
        return None if found is None else found[1]

    async def _hash_at(self, n: int) -> str | None:
        found = await self._row(n)
        return None if found is None else found.hash

    def _signed(self, text: bytes | None) -> AuditHead | None:
        head = None if text is None else read_head(text)
        return head if head is not None and self._is_good(head) else None

    def _is_good(self, head: AuditHead) -> bool:
        return head.is_signed(self._wires)

    async def _read_beside(self, keeper: HeadKeeper) -> bytes | None:
        try:
            return await keeper.read()
        except OSError as error:
            self._complaints.say(
                f"the audit's head beside the store can't be read: {error.strerror or error}"
            )
            return None


def _alarm(what: str, now: int, found: AuditHead | bytes | None) -> AuditEvent:
    if isinstance(found, AuditHead):
        return core.alarm(what, now, former=msgspec.to_builtins(found))
    if found is None:
        return core.alarm(what, now)
    return core.alarm(what, now, sha256=hashlib.sha256(found).hexdigest())
