"""An agent's actor: its row, its keys, its name (network.md, Identity).

1. A name is claimed like a desk's code: a document under what the name looks like, so that no two agents can be taken
   for each other. A key is a document too; once revoked it stays, so that it never joins an agent again.
2. What changes an agent's right to speak is told to Standing after the commit.
3. An agent whose time has passed is gone at that moment: names and keys that it held are free, swept or not.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from broker.actors.agentdocs import (
    NO_AGENT,
    NO_CODE,
    KeyRow,
    NameRow,
    facts_of,
    put_key,
    read_agent,
    version_of,
)
from broker.actors.calls import agent_stream
from broker.actors.leaving import leave_channels, let_go, put_leaving
from broker.actors.notes import by_itself
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor, Told
from broker.actors.standing import Facts
from broker.core import agent as core
from broker.core.agent import AgentRow, Key, Policy, Suspension
from broker.core.audit import BROKER, AuditEvent
from broker.core.claim import ClaimCode
from broker.core.conversation import Due
from broker.core.names import looks_of
from broker.store.port import Put
from broker.store.stored import stored
from broker.wire.refusals import Refusal, refuse


class Create(msgspec.Struct, frozen=True):
    """A new agent, with its first keys. Answer: `answer`, or a Refusal (already_exists)."""

    row: AgentRow
    answer: Any
    once: Once | None = None


class Edit(msgspec.Struct, frozen=True):
    """Another name, description, capabilities; None: as it was. Answer: all three, or already_exists."""

    name: str | None
    description: str | None
    capabilities: tuple[str, ...] | None
    once: Once | None = None


class SetPublic(msgspec.Struct, frozen=True):
    """Whether the directory shows the agent. Answer: {agent_id, public}."""

    public: bool
    once: Once | None = None


class SetPolicy(msgspec.Struct, frozen=True):
    """How contact requests to the agent are handled. Answer: {policy}."""

    policy: Policy
    once: Once | None = None


class AddKey(msgspec.Struct, frozen=True):
    """A key that has proved itself joins. Answer: {agent_id, kid, added_at}; already_exists, quota_exceeded."""

    pk: str
    kid: str
    once: Once | None = None


class RevokeKey(msgspec.Struct, frozen=True):
    """A key signs for the agent no more. Answer: {agent_id, kid, revoked_at}; not_found, bad_request (the last)."""

    kid: str
    by_itself: bool
    once: Once | None = None


class Claim(msgspec.Struct, frozen=True):
    """An owner has entered a code, of this sha256. Answer: {agent_id, name, tier}, or not_found."""

    owner_id: str
    digest: str
    once: Once | None = None


class RenewClaim(msgspec.Struct, frozen=True):
    """Another claim code in place of the old one. Answer: `answer` and expires_at; not_found where nothing waits."""

    code: ClaimCode
    answer: dict[str, Any]
    once: Once | None = None


class Rotate(msgspec.Struct, frozen=True):
    """Another credential; the old one and all tokens are over. Answer: `answer`."""

    secret_hash: str
    answer: Any
    once: Once | None = None


class Assign(msgspec.Struct, frozen=True):
    """An operator gives the agent to an owner. Answer: {agent_id, owner_id, tier}."""

    owner_id: str
    once: Once | None = None


class Suspend(msgspec.Struct, frozen=True):
    """Operators suspend the agent, or (None) lift that. Answer: {agent_id, suspended}."""

    reason: str | None
    once: Once | None = None


class Delete(msgspec.Struct, frozen=True):
    """The agent goes, with its name and its live keys, if it is a test's or unclaimed. Answer: {agent_id, deleted}."""

    test: bool
    once: Once | None = None


class AgentActor(RecordActor[AgentRow]):
    """One agent."""

    kind = "agent"
    type = AgentRow

    def __init__(self, key: str, *, told: Callable[[str, Facts], None], **parts: Any) -> None:
        super().__init__(key, **parts)
        self._told = told

    def index_of(self, row: AgentRow) -> Index:
        index: list[tuple[str, str | int]] = [("all", "1"), ("tier", row.tier)]
        index += [("cap", each) for each in row.capabilities]
        if row.keys:
            index.append(("keyed", "1"))
        if row.owner_id is not None:
            index.append(("owner", row.owner_id))
        if row.public:
            index.append(("public", "1"))
        if row.suspended is not None:
            index.append(("suspended", "1"))
        if row.claim is not None:
            index.append(("claim", row.claim.selector))
        if row.expires_at is not None:
            index.append(("due", row.expires_at))
        return tuple(index)

    def stands(self, row: AgentRow | None) -> None:
        over = row is None or core.is_over(row, self.clock.now_ms())  # its keys may be another's by now
        self._told(self.key, Facts(gone=True) if row is None or over else facts_of(row))

    async def do(self, command: Any) -> Any:
        if isinstance(command, Create):
            return await self._create(command)
        row = self.row
        if isinstance(command, Due):
            return await self._expire(row)
        if row is None or core.is_over(row, self.clock.now_ms()):
            return NO_CODE if isinstance(command, Claim) else NO_AGENT
        match command:
            case Edit():
                return await self._edit(row, command)
            case AddKey():
                return await self._add_key(row, command)
            case RevokeKey():
                return await self._revoke_key(row, command)
            case Delete():
                return await self._delete(row, command)
        return await self._change(row, command)

    async def _change(self, row: AgentRow, command: Any) -> Any:
        """What changes the row alone."""
        events: list[Told] = []
        answer: Any = {"agent_id": self.key}
        match command:
            case SetPublic(public):
                changed = replace(row, public=public)
                answer["public"] = public
            case SetPolicy(policy):
                changed = replace(row, policy=policy)
                answer = {"policy": policy}
            case RenewClaim(code):
                if row.claim is None:
                    return refuse("not_found", "this agent has no claim code: only an unclaimed one has")
                changed = replace(row, claim=code)
                answer = {**command.answer, "expires_at": row.expires_at}
            case Rotate(secret_hash):
                changed = replace(row, secret_hash=secret_hash, tokens_after=self._now_s() + 1)
                answer = command.answer
                events.append(self._notice("credential_rotated"))
            case Suspend(reason):
                held = Suspension(self.clock.now_ms(), reason) if reason is not None else None
                changed = replace(row, suspended=held)
                answer["suspended"] = reason is not None
                events.append(self._notice("suspended" if held is not None else "unsuspended"))
            case Assign(owner_id):
                changed = core.owned(row, owner_id, self._now_s())
                answer |= {"owner_id": owner_id, "tier": changed.tier}
                events.append(self._notice("owner_assigned", owner_id=owner_id))
            case Claim(owner_id, digest, _):
                if row.claim is None or row.claim.digest != digest or row.suspended is not None:
                    return NO_CODE
                changed = core.owned(row, owner_id, self._now_s())
                answer |= {"name": row.name, "tier": changed.tier}
                events.append(self._notice("claimed", owner_id=owner_id))
            case _:
                raise TypeError(type(command))
        return await self.write(changed, answer, once=getattr(command, "once", None), events=events)

    async def _create(self, command: Create) -> Any:
        row = command.row
        if self.row is not None:
            return refuse("already_exists", "there is an agent of this id")
        puts = await self._take_name(row.name)
        if isinstance(puts, Refusal):
            return puts
        for key in row.keys:
            joined = await self._join(key)
            if isinstance(joined, Refusal):
                return joined
            puts.append(joined)
        return await self.write(row, command.answer, once=command.once, puts=puts)

    async def _edit(self, row: AgentRow, command: Edit) -> Any:
        puts: list[Put] = []
        given = {
            name: value
            for name in ("name", "description", "capabilities")
            if (value := getattr(command, name)) is not None
        }
        changed = replace(row, **given)
        if changed.name != row.name:
            taken = await self._take_name(changed.name)
            if isinstance(taken, Refusal):
                return taken
            puts = [*taken, *await self._free_name(row.name, kept=looks_of(changed.name))]
        answer = {
            "agent_id": self.key,
            "name": changed.name,
            "description": changed.description,
            "capabilities": changed.capabilities,
        }
        return await self.write(changed, answer, once=command.once, puts=puts)

    async def _add_key(self, row: AgentRow, command: AddKey) -> Any:
        key = Key(command.kid, command.pk, self.clock.now_ms())
        answer = {"agent_id": self.key, "kid": key.kid, "added_at": key.added_at}
        joined, changed = await self._join(key), core.with_key(row, key)
        if isinstance(joined, Refusal):
            return joined
        if isinstance(changed, Refusal):
            return changed
        events = [self._notice("key_added", kid=key.kid)]
        return await self.write(changed, answer, once=command.once, puts=[joined], events=events)

    async def _revoke_key(self, row: AgentRow, command: RevokeKey) -> Any:
        kid, now = command.kid, self.clock.now_ms()
        changed = core.without_key(row, kid, command.by_itself)
        if isinstance(changed, Refusal):
            return changed
        revoked = next(key for key in row.keys if key.kid == kid)
        document = await self.store.get("key", revoked.pk)
        assert document is not None  # it is written with the row
        kept = replace(stored(KeyRow, document.doc, "key", revoked.pk), revoked_at=now)
        puts = [put_key(kept, document.version)]
        answer = {"agent_id": self.key, "kid": kid, "revoked_at": now}
        events = [self._notice("key_revoked", kid=kid)]
        return await self.write(changed, answer, once=command.once, puts=puts, events=events)

    async def _delete(self, row: AgentRow, command: Delete) -> Any:
        if not (row.test if command.test else row.tier == "unclaimed"):
            kind = "made for tests" if command.test else "unclaimed"
            return refuse(
                "bad_request", f"this agent is not {kind}; nothing else is deleted", path="agent_id"
            )
        answer = {"agent_id": self.key, "deleted": True}
        refused = await leave_channels(self.store, self.key, self.commit)
        if refused is not None:
            return refused
        return await self.write(None, answer, once=command.once, puts=await self._leave(row))

    async def _expire(self, row: AgentRow | None) -> Any:
        now = self.clock.now_ms()
        if row is not None and core.is_over(row, now):
            refused = await leave_channels(self.store, self.key, self.commit)
            if refused is not None:
                return refused
            kids = [key.kid for key in row.keys]
            event = AuditEvent(now, BROKER, "agent_expired", self.key, {"name": row.name, "kids": kids})
            note = by_itself(f"due:{self.key}", event)
            return await self.write(None, None, puts=[*await self._leave(row), note])
        return None

    async def _take_name(self, name: str) -> list[Put] | Refusal:
        """What claims a name, or already_exists."""
        puts: list[Put] = []
        for look in looks_of(name):
            document = await self.store.get("agentname", look)
            holder = stored(NameRow, document.doc, "agentname", look).agent_id if document else None
            if holder == self.key:
                continue
            if holder is not None and not await self._is_gone(holder):
                said = "another agent has this name, or one that looks like it; choose another"
                return refuse("already_exists", said, path="name")
            puts.append(Put("agentname", look, version_of(document), msgspec.json.encode(NameRow(self.key))))
        return puts

    async def _free_name(self, name: str, kept: Iterable[str] = ()) -> list[Put]:
        """What lets go of a name, but for the looks that are `kept`."""
        puts: list[Put] = []
        for look in set(looks_of(name)) - set(kept):
            document = await self.store.get("agentname", look)
            if document and stored(NameRow, document.doc, "agentname", look).agent_id == self.key:
                puts.append(Put("agentname", look, document.version, None))
        return puts

    async def _join(self, key: Key) -> Put | Refusal:
        """What makes a key this agent's, or already_exists."""
        document = await self.store.get("key", key.pk)
        if document is not None:
            old = stored(KeyRow, document.doc, "key", key.pk)
            if old.revoked_at is not None or not await self._is_gone(old.agent_id):
                return refuse("already_exists", "this key belongs or belonged to an agent; use another")
        return put_key(KeyRow(key.pk, key.kid, self.key, key.added_at), version_of(document))

    async def _leave(self, row: AgentRow) -> list[Put]:
        """What lets go of the name, the live keys, and all else that the agent has. Revoked keys stay revoked."""
        puts = [*await self._free_name(row.name), *await let_go(self.store, self.key)]
        puts.append(put_leaving(self.key, self.clock.now_ms()))
        for key in row.keys:
            document = await self.store.get("key", key.pk)
            if document and stored(KeyRow, document.doc, "key", key.pk).agent_id == self.key:
                puts.append(Put("key", key.pk, document.version, None))
        return puts

    async def _is_gone(self, agent_id: str) -> bool:
        return await read_agent(self.store, agent_id, self.clock.now_ms()) is None

    def _now_s(self) -> int:
        return self.clock.now_ms() // 1000

    def _notice(self, what: str, **members: Any) -> Told:
        return Told(agent_stream(self.key), "notice", {"what": what, "at": self.clock.now_ms(), **members})
