"""The actors of the sign-in: a consent, the clients that registered, and assertions that serve once.

1. A consent's end is told to Standing right after its commit: tokens that came of it are over at once.
2. Clients register anonymously, so there is a bound to them: what no owner ever consented to goes first, after a day
   or when the room is needed, and what nobody has used for 90 days goes too.
3. A client assertion is remembered in a commit of its own, so that it serves once, also across a restart.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from broker.actors.actor import Actor
from broker.actors.notes import by_itself
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.actors.standing import Facts
from broker.clock import Clock
from broker.core import grant as core
from broker.core.audit import BROKER, AuditEvent
from broker.core.client import ClientRow
from broker.core.conversation import Due
from broker.core.grant import Fresh, GrantRow, Shown, Stolen
from broker.store.port import Document, Put, Remember, Store, Unit
from broker.store.stored import every, read_row, stored
from broker.wire.refusals import Refusal, refuse, refuse_oauth

CLIENTS: Final = 10_000
"""Clients that may be registered at once."""
UNUSED_MS: Final = 86_400_000
"""A client that no owner has consented to for so long after it registered goes."""
LAPSE_MS: Final = 90 * 86_400_000
"""So does one that nobody has used for so long; longer than any consent lives unused."""
SWEPT: Final = 20
"""Clients that go with one that comes."""
TOUCH_MS: Final = 86_400_000
"""How exactly it is known when a client was used."""


class Make(msgspec.Struct, frozen=True):
    """An owner has consented. Answer: None or Refusal."""

    row: GrantRow
    once: Once | None = None


class Redeem(msgspec.Struct, frozen=True):
    """A code comes back. Answer: GrantRow or Refusal."""

    shown: Shown
    fresh: Fresh


class Refresh(msgspec.Struct, frozen=True):
    """A refresh token comes back. Answer: GrantRow or Refusal."""

    shown: Shown
    fresh: str


class End(msgspec.Struct, frozen=True):
    """The consent ends: by its owner, or by its client. Answer: None or Refusal (not_found)."""

    owner_id: str | None = None
    client_id: str | None = None
    once: Once | None = None


class GrantActor(RecordActor[GrantRow]):
    """One consent."""

    kind = "grant"
    type = GrantRow

    def __init__(self, key: str, *, told: Callable[[str, Facts], None], **parts: Any) -> None:
        super().__init__(key, **parts)
        self._told = told

    def index_of(self, row: GrantRow) -> Index:
        return (("owner", row.owner_id), ("due", row.over_at))

    def stands(self, row: GrantRow | None) -> None:
        self._told(self.key, Facts(gone=row is None))

    async def do(self, command: Any) -> Any:
        row, now = self.row, self.clock.now_ms()
        match command:
            case Make(made, once):
                if once is not None and once.note is not None:
                    once.note.tell(about=self.key, client_id=made.client_id, acts_for=made.subject)
                return await self.write(made, None, once=once)
            case Due():
                return await self.write(None, None) if row is not None and row.over_at <= now else None
            case Redeem(shown, fresh):
                return await self._go_on(core.redeem(row, shown, fresh, now) if row is not None else None)
            case Refresh(shown, digest):
                return await self._go_on(core.refresh(row, shown, digest, now) if row is not None else None)
            case End(owner_id, client_id, once):
                theirs = row is not None and (owner_id or row.owner_id, client_id or row.client_id) == (
                    row.owner_id,
                    row.client_id,
                )
                if not theirs:
                    return refuse("not_found", "there is no such grant")
                return await self.write(None, None, once=once)
        raise TypeError(type(command))

    async def _go_on(self, decided: GrantRow | Stolen | Refusal | None) -> Any:
        match decided:
            case GrantRow():
                return await self.write(decided, decided)
            case Stolen(refusal):
                event = AuditEvent(self.clock.now_ms(), BROKER, "refresh_token_shown_twice", self.key)
                return await self.write(None, refusal, puts=[by_itself(f"stolen:{self.key}", event)])
        return decided or refuse_oauth("invalid_grant", "there is no such grant, or not any more")


async def read_grant(store: Store, grant_id: str) -> GrantRow | None:
    """A consent as stored."""
    return await read_row(store, GrantRow, "grant", grant_id)


async def read_facts(store: Store, grant_id: str) -> Facts | None:
    """What Standing is told of a consent; None where it has ended."""
    return None if await store.get("grant", grant_id) is None else Facts()


class Register(msgspec.Struct, frozen=True):
    """A client registers. Answer: None, or a Refusal (overloaded) while there is no room."""

    row: ClientRow


class Use(msgspec.Struct, frozen=True):
    """An owner consents to a client, or what was consented to is refreshed. Answer: None, or a Refusal (not_found)
    where it has gone."""

    client_id: str


class ClientsActor(Actor[int]):
    """All clients that registered; there is one of it, and its state is how many they are."""

    def __init__(self, key: str, *, clock: Clock, most: int = CLIENTS, **parts: Any) -> None:
        parts.pop("nudge", None)
        super().__init__(key, **parts)
        self._clock = clock
        self._most = most

    async def load(self) -> int:
        count = 0
        async for _ in every(self.store, "client", "all", "1"):
            count += 1
        return count

    async def handle(self, command: Any) -> Any:
        match command:
            case Register(row):
                return await self._register(row)
            case Use(client_id):
                return await self._use(client_id)
        raise TypeError(type(command))

    async def _register(self, row: ClientRow) -> Refusal | None:
        count, now = self.state or 0, self._clock.now_ms()
        going = await self.store.due("client", "unused", now - UNUSED_MS, SWEPT)
        going += await self.store.due("client", "used", now - LAPSE_MS, SWEPT)
        if not going and count >= self._most:
            going = await self.store.due("client", "unused", now - core.ASK_MS, 1)
            # What nobody refreshed for so long has no consent any more, whoever once had it consented to.
            going = going or await self.store.due("client", "used", now - core.IDLE_MS - TOUCH_MS, 1)
        if count - len(going) >= self._most:
            return refuse("overloaded", "no room for another client now", retry_after_ms=60_000)
        puts = (_put(row, 0), *(Put("client", each.id, each.version, None) for each in going))
        refused = await self.commit(Unit(puts=puts))
        if refused is None:
            self.state = count + 1 - len(going)
        return refused

    async def _use(self, client_id: str) -> Refusal | None:
        document, now = await self.store.get("client", client_id), self._clock.now_ms()
        if document is None:
            return refuse("not_found", "there is no such client, or not any more")
        row = read_client(document)
        if row.used_at is not None and now - row.used_at < TOUCH_MS:
            return None
        return await self.commit(
            Unit(puts=(_put(msgspec.structs.replace(row, used_at=now), document.version),))
        )


def read_client(document: Document) -> ClientRow:
    """A client as stored."""
    return stored(ClientRow, document.doc, "client", document.id)


def _put(row: ClientRow, expect: int) -> Put:
    when = ("unused", row.made_at) if row.used_at is None else ("used", row.used_at)
    return Put("client", row.client_id, expect, msgspec.json.encode(row), (("all", "1"), when))


class Assert(msgspec.Struct, frozen=True):
    """An agent's client assertion was good. Answer: None, or a Refusal where its jti has served."""

    jti: str
    until: int
    """Wall milliseconds until which it could be shown again."""


class AssertionActor(Actor[None]):
    """The assertions of one agent."""

    def __init__(self, key: str, **parts: Any) -> None:
        for unused in ("nudge", "clock"):
            parts.pop(unused, None)
        super().__init__(key, **parts)

    async def load(self) -> None:
        return None

    async def handle(self, command: Assert) -> Refusal | None:
        scope, key = f"assertion:{self.key}", hashlib.sha256(command.jti.encode()).hexdigest()
        if await self.store.recall(scope, key) is not None:
            return refuse_oauth("invalid_client", "this assertion has served; make another for each request")
        return await self.commit(Unit(remember=Remember(scope, key, b"", b"", command.until)))
