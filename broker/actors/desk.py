"""The desk's actor: a key's places in memory, its row in the store (wire.md, Keys, Limits, Signed statements).

1. What a statement changes is one unit with the answer it remembers, so that the identical statement gets the
   stored answer.
2. A desk may move to this key without a word to this actor: while it knows of none it looks at the store. Any other
   change under it shows as a conflict, and it is read again.
3. Places are told after each commit. The store settles what was never told: a call in doubt, and who is the oldest.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from broker.actors.actor import NOT_NOW, Actor, Stop
from broker.actors.calls import ConvRow, Holder, pair_name, read_conv_row, streams_of
from broker.actors.conversation import Dialled, Doubtful, Finished, Rung
from broker.actors.deskcommands import (
    CancelMove,
    Close,
    MayOpen,
    Move,
    Open,
    Release,
    ReservePlace,
    ReserveRing,
    SetScreen,
    Suspend,
    Used,
)
from broker.actors.notes import by_itself
from broker.actors.once import Once
from broker.clock import Clock
from broker.config import Desks
from broker.core import desk as core
from broker.core.audit import BROKER, AuditEvent
from broker.core.conversation import Due
from broker.core.desk import Capacity, CodeRow, DeskRow, Moving, Place, Places, Ring, Screen
from broker.store.port import Deliver, Document, Put, Store, Unit
from broker.store.stored import stored
from broker.wire.call import Phase
from broker.wire.ids import Pk
from broker.wire.refusals import Refusal, refuse

PAGE = 200
DOUBT_S = 60.0
"""How long a commit in doubt may take to land; far beyond any commit_timeout_s."""


class Desk(msgspec.Struct):
    """A desk's state: the places of its key, and its row if the key holds a code."""

    places: Places
    row: DeskRow | None = None
    version: int = 0


class DeskActor(Actor[Desk]):
    """One key."""

    def __init__(
        self,
        pk: str,
        *,
        store: Store,
        clock: Clock,
        capacity: Capacity,
        settings: Desks,
        nudge: Callable[[int], None],
        changed: Callable[[str, str | None, str | None], None],
        mailbox: int,
        commit_timeout_s: float,
        holder: Holder = lambda _: None,
    ) -> None:
        super().__init__(pk, store=store, mailbox=mailbox, commit_timeout_s=commit_timeout_s)
        self._clock = clock
        self._capacity = capacity
        self._settings = settings
        self._nudge = nudge
        self._changed = changed
        self._holder = holder

    async def load(self) -> Desk:
        places = Places(Pk(self.key))
        for document in await self._calls("open"):
            core.dialled(places, document.id)
        for document in await self._calls("ringing"):
            await self._ring_again(places, read_conv_row(document))
        row, version = await self._read_row()
        return Desk(places, row, version)

    def decide(self, command: Any) -> Any:
        """Places, where all is known that they depend on: a call is dialled without a turn of this actor's task."""
        desk = self.state
        assert desk is not None  # load() always gives one
        places = desk.places
        if isinstance(command, Release | Rung | Finished | Doubtful):
            return self._told(places, command)
        if desk.row is None or places.doubtful:
            return NOT_NOW
        mono, capacity = self._clock.monotonic(), self._capacity
        match command:
            case ReservePlace(conv, token) if len(places.taken()) < capacity.conversations:
                return core.reserve_place(places, conv, token, mono, capacity)
            case ReserveRing(conv, token, ring):
                return core.reserve_ring(places, conv, token, ring, desk.row.screen, mono, capacity)
        return NOT_NOW

    async def handle(self, command: Any) -> Any:
        desk = self.state
        assert desk is not None
        if desk.row is None:
            desk.row, desk.version = await self._read_row()
        match command:
            case ReservePlace():
                return await self._reserve_place(desk.places, command)
            case ReserveRing():
                return await self._reserve_ring(desk, command)
            case Dialled(conv):
                core.dialled(desk.places, conv)
                return await self._touch(desk)
            case Used():
                return await self._touch(desk)
            case MayOpen(code):
                judged = await self._judge(desk, code, self._clock.now_ms())
                return judged if isinstance(judged, Refusal) else None
            case Open():
                return await self._open(desk, command)
            case Move():
                return await self._move(desk, command)
            case CancelMove():
                return await self._cancel_move(desk, command)
            case Close():
                return await self._close(desk, command)
            case SetScreen():
                return await self._screen(desk, command)
            case Suspend():
                return await self._suspend(desk, command)
            case Due():
                return await self._due(desk)
        raise TypeError(type(command))

    def _told(self, places: Places, command: Release | Rung | Finished | Doubtful) -> None:
        match command:
            case Release(token):
                core.release(places, token)
            case Rung(conv, sender):
                core.rung(places, conv, Ring(sender, None, True))
            case Finished(conv):
                core.finished(places, conv)
            case Doubtful(conv):
                places.doubtful[conv] = self._clock.monotonic() + DOUBT_S

    async def _reserve_place(self, places: Places, command: ReservePlace) -> Place | Refusal:
        await self._settle(places)
        if len(places.taken()) >= self._capacity.conversations:
            # One may have to go: the oldest in the order of the commits, which is the store's to say.
            places.open.clear()
            for document in await self._calls("open"):
                core.dialled(places, document.id)
        mono = self._clock.monotonic()
        return core.reserve_place(places, command.conv, command.token, mono, self._capacity)

    async def _reserve_ring(self, desk: Desk, command: ReserveRing) -> Refusal | None:
        await self._settle(desk.places)
        screen = desk.row.screen if desk.row is not None else Screen()
        mono = self._clock.monotonic()
        return core.reserve_ring(
            desk.places, command.conv, command.token, command.ring, screen, mono, self._capacity
        )

    async def _settle(self, places: Places) -> None:
        """Look up calls with a commit in doubt: nobody told whether it has landed."""
        for conv, until in list(places.doubtful.items()):
            document = await self.store.get("conv", conv)
            row = read_conv_row(document) if document is not None else None
            if row is not None and row.phase is Phase.ENDED:
                core.finished(places, conv)
            elif row is not None and (self.key == row.caller or row.answered_at is not None):
                core.dialled(places, conv)
            elif row is not None:
                await self._ring_again(places, row)
            if until <= self._clock.monotonic():
                del places.doubtful[conv]

    async def _ring_again(self, places: Places, row: ConvRow) -> None:
        """A ring as the store knows it: from whom, and whether they have talked; its address is forgotten."""
        known = bool(await self.store.find("conv", "pair", pair_name(row.caller, row.callee), limit=1))
        core.rung(places, row.conv, Ring(row.caller, None, known))

    async def _open(self, desk: Desk, command: Open) -> dict[str, Any] | Refusal:
        now = self._clock.now_ms()
        code, old = command.code, desk.row
        holder = await self._judge(desk, code, now)
        if isinstance(holder, Refusal):
            return holder
        row = DeskRow(
            code=code,
            pk=self.key,
            opened_at=now,
            used_at=now,
            recovery_pk=command.recovery_pk,
            suspended=old is not None and old.suspended,
        )
        put_code = Put("code", code, holder.version if holder else 0, msgspec.json.encode(CodeRow(self.key)))
        puts = (put_code, *await self._lapsed_code(old, code))
        answer = await self._write(desk, row, puts, command.once, core.row_result(row))
        if not isinstance(answer, Refusal):
            self._changed(code, None, self.key)
        return answer

    async def _judge(self, desk: Desk, code: str, now: int) -> Document | Refusal | None:
        """The code's document where this key may open it: code_reserved, code_taken, desk_exists."""
        if code in self._settings.reserved:
            return refuse("code_reserved", f"{code} is reserved; choose another code", code_asked=code)
        holder = await self.store.get("code", code)
        lapse = self._settings.lapse_days
        if holder is not None:
            refused = await self._code_free(code, holder, now)
            if refused is not None:
                return refused
        if desk.row is not None and not core.lapsed(desk.row, now, lapse):
            return refuse("desk_exists", f"this key holds {desk.row.code}; close or move that desk first")
        return holder

    async def _lapsed_code(self, old: DeskRow | None, code: str) -> tuple[Put, ...]:
        """The code that a key lost by not using it is closed from then on: it stays reserved."""
        document = await self.store.get("code", old.code) if old is not None and old.code != code else None
        if old is None or document is None or stored(CodeRow, document.doc, "code", old.code).pk != old.pk:
            return ()
        closed = CodeRow(old.pk, closed_at=old.used_at + self._settings.lapse_days * core.DAY_MS)
        return (Put("code", old.code, document.version, msgspec.json.encode(closed)),)

    async def _code_free(self, code: str, holder: Document, now: int) -> Refusal | None:
        held = stored(CodeRow, holder.doc, "code", code)
        lapse = self._settings.lapse_days
        document = await self.store.get("desk", held.pk)
        row = stored(DeskRow, document.doc, "desk", held.pk) if document else None
        if row is not None and row.code != code:
            row = None
        if held.closed_at is None and row is not None and not core.lapsed(row, now, lapse):
            return refuse("code_taken", f"another key holds {code}; choose another code")
        until = core.reserved_until(held, row, lapse)
        if now < until:
            return refuse("code_reserved", f"{code} was given up and stays reserved", until=until)
        return None

    async def _move(self, desk: Desk, command: Move) -> dict[str, Any] | Refusal:
        row = desk.row
        if row is None or row.code != command.code:
            return refuse("unknown_desk", "this key does not hold that code any more")
        if await self._vacant(command.new_pk) is None:
            return refuse("desk_exists", "the new key already holds a desk")
        if not command.by_recovery:
            return await self._hand_over(desk, row, command.new_pk, command.once)
        if row.moving is not None:
            waiting = {"new_pk": row.moving.new_pk, "effective_at": row.moving.effective_at}
            return refuse("conflict", "a recovery key's move waits already; cancel it first", moving=waiting)
        at = self._clock.now_ms() + round(self._settings.recovery_h * 3_600_000)
        event = {"code": row.code, "new_pk": command.new_pk, "effective_at": at}
        moving = msgspec.structs.replace(row, moving=Moving(command.new_pk, at))
        answer = {"code": row.code, "effective_at": at}
        answered = await self._write(desk, moving, (), command.once, answer, ("moving", event))
        self._nudge(at)
        return answered

    async def _vacant(self, pk: str) -> tuple[int, DeskRow | None] | None:
        """Where a key holds no desk (or has lost it by not using it): the version of its row, and that row."""
        document = await self.store.get("desk", pk)
        if document is None:
            return 0, None
        row = stored(DeskRow, document.doc, "desk", pk)
        lapsed = core.lapsed(row, self._clock.now_ms(), self._settings.lapse_days)
        return (document.version, row) if lapsed else None

    async def _hand_over(
        self, desk: Desk, row: DeskRow, new_pk: str, once: Once | None
    ) -> dict[str, Any] | Refusal:
        """The desk goes to a new key: one unit for both rows, the code and the event on the old key's stream."""
        now = self._clock.now_ms()
        vacant = await self._vacant(new_pk)
        if vacant is None:  # it opened one this moment
            raise Stop
        version, old = vacant
        code = await self.store.get("code", row.code)
        suspended = row.suspended or (old is not None and old.suspended)
        moved = msgspec.structs.replace(row, pk=new_pk, used_at=now, moving=None, suspended=suspended)
        puts = (
            Put("code", row.code, code.version if code else 0, msgspec.json.encode(CodeRow(new_pk))),
            Put("desk", new_pk, version, msgspec.json.encode(moved), _index_of(moved)),
            *await self._lapsed_code(old, row.code),
        )
        event = {"code": row.code, "pk": new_pk, "moved_at": now}
        answer = await self._write(desk, None, puts, once, core.row_result(moved), ("desk_moved", event))
        if not isinstance(answer, Refusal):
            self._changed(row.code, row.pk, new_pk)
        return answer

    async def _cancel_move(self, desk: Desk, command: CancelMove) -> dict[str, Any] | Refusal:
        row = desk.row
        if row is None or row.code != command.code:
            return refuse("unknown_desk", "this key does not hold that code any more")
        if row.moving is None:
            return refuse("not_found", "no move of this desk is waiting")
        return await self._stay(desk, row, row.moving, command.once)

    async def _stay(
        self, desk: Desk, row: DeskRow, moving: Moving, once: Once | None
    ) -> dict[str, Any] | Refusal:
        """The recovery key's move is off; whoever was told of it is told."""
        stays = msgspec.structs.replace(row, moving=None)
        event = {"code": row.code, "new_pk": moving.new_pk, "cancelled": True}
        return await self._write(desk, stays, (), once, core.row_result(stays), ("moving", event))

    async def _close(self, desk: Desk, command: Close) -> dict[str, Any] | Refusal:
        row = desk.row
        if row is None or row.code != command.code:
            return refuse("unknown_desk", "this key does not hold that code any more")
        if row.suspended:
            return refuse("suspended", "the operators suspended this desk; closing it would shed that")
        now = self._clock.now_ms()
        code = await self.store.get("code", row.code)
        closed = msgspec.json.encode(CodeRow(self.key, closed_at=now))
        put = Put("code", row.code, code.version if code else 0, closed)
        event = {"code": row.code, "closed_at": now}
        answer = await self._write(
            desk, None, (put,), command.once, core.row_result(row), ("desk_closed", event)
        )
        if not isinstance(answer, Refusal):
            self._changed(row.code, row.pk, None)
        return answer

    async def _screen(self, desk: Desk, command: SetScreen) -> dict[str, Any] | Refusal:
        row = desk.row
        if row is None or row.code != command.code:
            return refuse("unknown_desk", "this key does not hold that code any more")
        screened = msgspec.structs.replace(row, screen=command.screen)
        return await self._write(desk, screened, (), command.once, core.row_result(screened))

    async def _suspend(self, desk: Desk, command: Suspend) -> dict[str, Any] | Refusal:
        if desk.row is None:
            return refuse("unknown_desk", "this key holds no desk")
        if desk.row.suspended is command.on:
            if command.once is not None:
                command.once.nothing_to_tell()
            return core.row_result(desk.row)
        row = msgspec.structs.replace(desk.row, suspended=command.on)
        return await self._write(desk, row, (), command.once, core.row_result(row))

    async def _due(self, desk: Desk) -> Any:
        """A recovery key's move whose time has come. One to a key that meanwhile holds a desk is dropped, and so is
        that of a desk which lapsed before (the wire was down for months): its code may be another's.
        """
        row, now = desk.row, self._clock.now_ms()
        if row is None or row.moving is None or row.moving.effective_at > now:
            return None
        over = core.lapsed(row, now, self._settings.lapse_days)
        if over or await self._vacant(row.moving.new_pk) is None:
            return await self._stay(desk, row, row.moving, None)
        return await self._hand_over(desk, row, row.moving.new_pk, None)

    def _noted(
        self, desk: Desk, once: Once | None, event: tuple[str, dict[str, Any]] | None
    ) -> tuple[Put, ...]:
        """What the audit is told of: what a tool asks it to, and how a recovery key's move came to its end."""
        row = desk.row
        if once is not None:
            if once.note is not None and event is not None:
                once.note.tell(about=event[1]["code"], key=self.key, **event[1])
            return once.notes(row.code if row is not None else self.key)
        if row is None or row.moving is None or event is None:
            return ()
        told = AuditEvent(
            self._clock.now_ms(), BROKER, "recovery_move", row.code, {"key": self.key, **event[1]}
        )
        return (by_itself(f"due:{self.key}:{row.moving.effective_at}", told),)

    async def _touch(self, desk: Desk) -> None:
        """Note that the desk is in use, at most once a day: what is unused lapses."""
        now = self._clock.now_ms()
        row = desk.row
        if row is not None and now - row.used_at >= core.DAY_MS and not self.gone:
            if core.lapsed(row, now, self._settings.lapse_days):
                return  # what has lapsed is not revived: somebody else may hold the code
            await self._write(desk, msgspec.structs.replace(row, used_at=now), (), None, {})

    async def _write(
        self,
        desk: Desk,
        row: DeskRow | None,
        puts: tuple[Put, ...],
        once: Once | None,
        answer: dict[str, Any],
        event: tuple[str, dict[str, Any]] | None = None,
    ) -> dict[str, Any] | Refusal:
        """Commit the desk's new row (None: it holds no code any more) with all that belongs to it."""
        doc = msgspec.json.encode(row) if row is not None else None
        index = _index_of(row) if row is not None else ()
        unit = Unit(
            puts=(Put("desk", self.key, desk.version, doc, index), *puts, *self._noted(desk, once, event)),
            deliver=self._events(event) if event is not None else (),
            remember=once.remember(answer) if once is not None else None,
        )
        refused = await self.commit(unit)
        if refused is not None:
            return refused
        desk.row = row
        desk.version = desk.version + 1 if row is not None else 0
        return answer

    def _events(self, event: tuple[str, dict[str, Any]]) -> tuple[Deliver, ...]:
        """A desk's own event on its key's streams; kept from now on as long as any other."""
        kind, members = event
        data, at = msgspec.json.encode(members), self._clock.now_ms()
        return tuple(Deliver(stream, kind, data=data, at=at) for stream in streams_of(self.key, self._holder))

    async def _read_row(self) -> tuple[DeskRow | None, int]:
        document = await self.store.get("desk", self.key)
        if document is None:
            return None, 0
        return stored(DeskRow, document.doc, "desk", self.key), document.version

    async def _calls(self, name: str) -> list[Document]:
        """The calls of this key that stand under `name` in the index, in the order in which they came there."""
        found: list[Document] = []
        after = 0
        while True:
            page = await self.store.find("conv", name, self.key, after, PAGE)
            found.extend(page)
            if len(page) < PAGE:
                return found
            after = page[-1].order


def _index_of(row: DeskRow) -> tuple[tuple[str, str | int], ...]:
    """What a desk is found by: all are; when a recovery key's move is due, and that it is suspended."""
    index: list[tuple[str, str | int]] = [("all", "1")]
    if row.moving is not None:
        index.append(("due", row.moving.effective_at))
    if row.suspended:
        index.append(("suspended", 1))
    return tuple(index)
