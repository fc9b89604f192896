"""Where secrets are kept (docs/reference/trial.md, Secrets): one document a holder, each value sealed.

1. They are the owner's, and all agents of an owner use the same; an agent that has no owner has its own. Operators
   have theirs, and use nobody else's: whoever says where a secret is sent can have it.
2. No command and no answer of the actor holds a value: it comes sealed, and is opened here alone, for what uses it
   and as it uses it. Whoever may use a secret may send it where he likes, which is why he can do without seeing it.
3. A value that no key opens is kept, listed and not used: the key may come back.
"""

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final, NamedTuple

import msgspec
import trio

from broker.actors.agentdocs import read_agent
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.clock import Clock
from broker.core.push import Outcome
from broker.core.safe import NO_SECRET, Kept, SafeRow, fill, names_in, with_secret, without_secret
from broker.store.port import InDoubt, Put, Store, Unavailable, Unit
from broker.store.stored import every, read_row, stored
from broker.wire.refusals import Refusal, refuse
from broker.wire.safekeys import NONCE_SIZE, SafeKeys

log = logging.getLogger("turret.secrets")
KIND: Final = "safe"
OPERATORS: Final = "operators"
"""The holder whose secrets are the operators'."""
LOOKED_AT: Final = 1_000
"""Holders that are looked at when a broker starts."""
_NOT_KEPT: Final = refuse(
    "unavailable",
    "nothing is kept now: the file of the secrets' key is not as it was at this broker's start; operators put it back",
    reason="secrets_key",
)
Headers = tuple[tuple[str, str], ...]
_INDEX: Final[Index] = (("all", "1"),)


class SetSecret(msgspec.Struct, frozen=True):
    """A secret, new or with another value. Answer: {name, created_at, updated_at}; quota_exceeded."""

    name: str
    sealed: str
    key: str
    once: Once | None = None


class UnsetSecret(msgspec.Struct, frozen=True):
    """No such secret any more. Answer: {name, unset}; NOT_FOUND."""

    name: str
    once: Once | None = None


class SafeActor(RecordActor[SafeRow]):
    """The secrets of one holder."""

    kind = KIND
    type = SafeRow

    def index_of(self, row: SafeRow) -> Index:
        return _INDEX

    async def do(self, command: Any) -> Any:
        row = self.row or SafeRow()
        match command:
            case SetSecret(name, sealed, key, once):
                changed = with_secret(row, name, sealed, key, self.clock.now_ms())
                if isinstance(changed, Refusal):
                    return changed
                made = changed.find(name)
                assert made is not None
                answer = {"name": name, "created_at": made.created_at, "updated_at": made.updated_at}
                return await self.write(changed, answer, once=once)
            case UnsetSecret(name, once):
                left = without_secret(row, name) if self.row is not None else NO_SECRET
                if isinstance(left, Refusal):
                    return left
                return await self.write(left if left.kept else None, {"name": name, "unset": True}, once=once)
        raise TypeError(type(command))


class Safe:
    """The way to what is kept, of one broker."""

    def __init__(
        self, *, store: Store, clock: Clock, keys: SafeKeys, entropy: Callable[[int], bytes]
    ) -> None:
        self._store = store
        self._clock = clock
        self._keys = keys
        self._entropy = entropy

    async def kept(self, holder: str) -> tuple[Kept, ...]:
        """What a holder keeps, in order of name. Raises what the store raises."""
        row = await read_row(self._store, SafeRow, KIND, holder)
        return () if row is None else row.kept

    async def sealing(self, holder: str, name: str, value: str, once: Once | None) -> SetSecret | Refusal:
        """The command that keeps a value; `unavailable` where the key that would seal it is not in its file any more:
        the next start would not have it. Nothing is kept before the command is asked for."""
        if self._keys.is_kept is not None and not await trio.to_thread.run_sync(self._keys.is_kept):
            log.error("the file of the secrets' key is not as it was at the start: put it back, or restart")
            return _NOT_KEPT
        sealed = self._keys.seal(holder, name, value, self._entropy(NONCE_SIZE))
        return SetSecret(name, sealed, self._keys.current, once)

    async def look(self) -> None:
        """At the start: log how many secrets of the first LOOKED_AT holders no key opens, or that the store can't be
        read. It changes nothing."""
        lost = holders = 0
        try:
            async with aclosing(every(self._store, KIND, "all", "1")) as documents:
                async for document in documents:
                    row = stored(SafeRow, document.doc, KIND, document.id)
                    lost += sum(not self._keys.has(each.key) for each in row.kept)
                    holders += 1
                    if holders == LOOKED_AT:
                        break
        except Unavailable as error:
            log.warning("secrets can't be looked at: %s", error)
        if lost:
            log.warning("%d secrets were sealed with keys that are not here: put the old lines back", lost)

    def is_readable(self, holder: str, kept: Kept) -> bool:
        """Whether there is a key that opens it."""
        return self._open(holder, kept) is not None

    async def fill(self, agent_id: str, headers: Headers) -> Headers | Outcome:
        """Headers with the secrets that they name, as an agent's; or what comes of an attempt without one. Raises what
        the store raises."""
        if not _named(headers):
            return await self.fill_for(agent_id, headers)
        agent = await read_agent(self._store, agent_id, self._clock.now_ms())
        return await self.fill_for(agent_id if agent is None else agent.owner_id or agent_id, headers)

    async def fill_for(self, holder: str, headers: Headers) -> Headers | Outcome:
        """The same, as a holder's."""
        names = _named(headers)
        kept = {each.name: each for each in await self.kept(holder)} if names else {}
        values: dict[str, str] = {}
        for name in sorted(names):
            if name not in kept:
                return Outcome(None, "secret_unset", secret=name)
            value = self._open(holder, kept[name])
            if value is None:
                return Outcome(None, "secret_unreadable", secret=name)
            values[name] = value
        return tuple((header, fill(template, values)) for header, template in headers)

    def _open(self, holder: str, kept: Kept) -> str | None:
        return self._keys.open(holder, kept.name, kept.sealed, kept.key)


def _named(headers: Headers) -> set[str]:
    return {name for _, template in headers for name in names_in(template) or ()}


class Resealed(NamedTuple):
    """What became of all secrets of a store: under the present key now, and those that no key opens."""

    secrets: int
    unreadable: int


class NotResealed(Exception):
    """A document can't be read or written; the message is one line for a person."""


async def reseal(store: Store, keys: SafeKeys, entropy: Callable[[int], bytes]) -> Resealed:
    """Have all secrets of a store that no broker serves sealed by the present key; one commit a holder. Whoever is cut
    off begins again. Raises NotResealed."""
    try:
        return await _reseal(store, keys, entropy)
    except (Unavailable, InDoubt) as error:
        raise NotResealed(str(error)) from error


async def _reseal(store: Store, keys: SafeKeys, entropy: Callable[[int], bytes]) -> Resealed:
    secrets = unreadable = 0
    async with aclosing(every(store, KIND, "all", "1")) as documents:
        async for document in documents:
            row = stored(SafeRow, document.doc, KIND, document.id)
            sealed = [_resealed(document.id, each, keys, entropy) for each in row.kept]
            unreadable += sealed.count(None)
            secrets += len(sealed) - sealed.count(None)
            kept = tuple(new or old for new, old in zip(sealed, row.kept, strict=True))
            if kept != row.kept:
                text = msgspec.json.encode(SafeRow(kept))
                await store.commit(Unit(puts=(Put(KIND, document.id, document.version, text, _INDEX),)))
    return Resealed(secrets, unreadable)


def _resealed(holder: str, kept: Kept, keys: SafeKeys, entropy: Callable[[int], bytes]) -> Kept | None:
    value = keys.open(holder, kept.name, kept.sealed, kept.key)
    if value is None or kept.key == keys.current:
        return None if value is None else kept
    sealed = keys.seal(holder, kept.name, value, entropy(NONCE_SIZE))
    return msgspec.structs.replace(kept, sealed=sealed, key=keys.current)
