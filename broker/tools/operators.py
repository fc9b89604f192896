"""What operators do with agents (network.md, Operator tools). Never on the public port.

1. Each change is audited (broker.tools.auditing); each has an effect that an agent sees, and says so in its
   description.
2. A key joins an agent by its own word alone, also by an operator's hand.
3. A credential is shown once; kept is its sha256.
"""

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from broker.actors.agent import AddKey, Assign, Create, Delete, RevokeKey, Rotate, Suspend
from broker.actors.agentdocs import NO_AGENT, NameRow
from broker.actors.once import joined
from broker.core.agent import AgentRow, Key, Suspension, capabilities_of, judge_description
from broker.core.conversation import DUE
from broker.core.names import judge_name, looks_of
from broker.core.secret import digest
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.agents import (
    AgentParam,
    CapabilitiesParam,
    DescriptionParam,
    NameParam,
    Proof,
    named,
    prove_key,
)
from broker.tools.context import Context, Services
from broker.tools.keys import KidParam, PublicKeys, RevokedKey, keys_of
from broker.tools.paging import AfterParam, LimitParam
from broker.tools.proof import Proven
from broker.tools.registry import tool
from broker.tools.sealing import seal
from broker.wire.ids import ULID
from broker.wire.jwk import Jwk, thumbprint
from broker.wire.refusals import Refusal, refuse

T = TypeVar("T")
NO_OWNER: Final = refuse("not_found", "there is no such owner")
SWEPT: Final = 1000
"""Agents whose time is over that one call looks at."""
OwnerParam = Annotated[str, Meta(pattern=rf"^ow_{ULID}$(?!\n)", description="an owner's id: ow_ and a ULID")]
ReasonParam = Annotated[str, Meta(min_length=1, max_length=500, description="why, for the operators")]
JwkParam = Annotated[Jwk, Meta(description="the public key as a JWK")]


class Made(msgspec.Struct, frozen=True, omit_defaults=True):
    """A new agent; `credential`: client_secret of its client_credentials, shown here alone."""

    agent_id: str
    name: str
    tier: str
    created_at: int
    credential: str
    kid: str | None = None
    owner_id: str | None = None
    test: bool = False


class Credential(msgspec.Struct, frozen=True):
    """The agent's credential, shown once."""

    agent_id: str
    credential: str


class AddedKey(msgspec.Struct, frozen=True):
    """The key signs in as the agent from now on."""

    agent_id: str
    kid: str
    added_at: int


class Assigned(msgspec.Struct, frozen=True):
    """Whose the agent is now."""

    agent_id: str
    owner_id: str
    tier: str


class Suspended(msgspec.Struct, frozen=True):
    """Whether the agent is suspended now."""

    agent_id: str
    suspended: bool


class Deleted(msgspec.Struct, frozen=True):
    """The agent is gone."""

    agent_id: str
    deleted: bool


class Purged(msgspec.Struct, frozen=True):
    """How many agents whose time was over went."""

    deleted: int


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as operators see it. Times are Unix milliseconds."""

    agent_id: str
    name: str
    tier: str
    presence: str
    created_at: int
    public: bool
    policy: str
    kids: list[str]
    description: str = ""
    capabilities: list[str] = []
    owner_id: str | None = None
    expires_at: int | None = None
    suspended: Suspension | None = None
    test: bool = False


class HeldAgents(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of agents; `next`: `after` of the page that follows."""

    agents: list[Held]
    next: str | None = None


@tool(face="operator", title="Register an agent", keyed=True, secrets=("credential",), idempotent=False)
async def register_agent(
    context: Context,
    name: NameParam,
    description: DescriptionParam = "",
    capabilities: CapabilitiesParam | None = None,
    public_key: JwkParam | None = None,
    proof: Annotated[Proof, Meta(description="a register_agent statement by that key, with this name")]
    | None = None,
    owner_id: OwnerParam | None = None,
    test: Annotated[bool, Meta(description="true: delete_test_agent may delete it")] = False,
) -> Made | Refusal:
    """Make a standard agent. It signs in with the credential, which is shown here alone, and with the key, if given."""
    tags = capabilities_of(capabilities or [])
    refused = judge_name(name) or judge_description(description)
    if refused is not None:
        return refused
    if isinstance(tags, Refusal):
        return tags
    if owner_id is not None and (missing := await _no_owner(context, owner_id)) is not None:
        return missing
    keys: tuple[Key, ...] = ()
    once = context.once
    if public_key is not None or proof is not None:
        if public_key is None or proof is None:
            said = "public_key and proof go together"
            return refuse("bad_request", said, path="proof" if proof is None else "public_key")
        proven = await prove_key(context, public_key, proof, "public_key", "register_agent", name=name)
        if not isinstance(proven, Proven):
            return proven  # type: ignore[no-any-return]  # a Refusal, or the stored answer
        pk, once = proven.statement.pk, joined(once, proven.once)
        keys = (Key(thumbprint(pk), pk, context.services.clock.now_ms()),)
    row, answer = _standard(context, name, description, tags, keys, owner_id, test)
    return await _ask(context, row.agent_id, Create(row, answer, once), Made)


@tool(
    face="operator",
    title="Renew a credential",
    destructive=True,
    keyed=True,
    secrets=("credential",),
    idempotent=False,
)
async def rotate_agent_credential(context: Context, agent_id: AgentParam) -> Credential | Refusal:
    """A new credential for an agent, shown here alone. The old one and all tokens of the agent end within a second."""
    credential = _credential(context)
    answer = {"agent_id": agent_id, "credential": seal(context.services, credential)}
    return await _ask(context, agent_id, Rotate(digest(credential), answer, context.once), Credential)


@tool(face="operator", title="Add a key to an agent", keyed=True)
async def add_agent_public_key(
    context: Context,
    agent_id: AgentParam,
    public_key: JwkParam,
    proof: Annotated[Proof, Meta(description="a bind_key statement by that key, with this agent_id")],
) -> AddedKey | Refusal:
    """Let a key sign in as an agent; the key itself has said that it wants to. Its desk is the agent's from then on."""
    proven = await prove_key(context, public_key, proof, "public_key", "bind_key", agent_id=agent_id)
    if not isinstance(proven, Proven):
        return proven  # type: ignore[no-any-return]  # a Refusal, or the stored answer
    pk = proven.statement.pk
    return await _ask(
        context, agent_id, AddKey(pk, thumbprint(pk), joined(context.once, proven.once)), AddedKey
    )


@tool(face="operator", title="Revoke an agent's key", destructive=True, keyed=True)
async def revoke_agent_public_key(
    context: Context, agent_id: AgentParam, kid: KidParam
) -> RevokedKey | Refusal:
    """End a key of an agent for good: its sockets, streams and waits close within a second."""
    return await _ask(context, agent_id, RevokeKey(kid, False, context.once), RevokedKey)


@tool(face="operator", title="List an agent's keys", read_only=True)
async def list_agent_public_keys(context: Context, agent_id: AgentParam) -> PublicKeys | Refusal:
    """The public keys that an agent has or had."""
    if await agents.find(context.services, agent_id) is None:
        return named(NO_AGENT, "agent_id")
    return await keys_of(context, agent_id)


@tool(face="operator", title="Give an agent to an owner", keyed=True)
async def assign_agent_owner(
    context: Context, agent_id: AgentParam, owner_id: OwnerParam
) -> Assigned | Refusal:
    """Make an agent an owner's, as if its claim code had been entered: tier claimed, and it stands on the owner's page.
    Tokens that an earlier owner's clients hold for it end."""
    missing = await _no_owner(context, owner_id)
    if missing is not None:
        return missing
    return await _ask(context, agent_id, Assign(owner_id, context.once), Assigned)


@tool(face="operator", title="Suspend an agent", destructive=True, keyed=True)
async def suspend_agent(context: Context, agent_id: AgentParam, reason: ReasonParam) -> Suspended | Refusal:
    """Suspend an agent: its tokens are refused and what it has open ends within a second, its keys deal no more, and
    nobody sees it. unsuspend_agent restores all of it."""
    return await _ask(context, agent_id, Suspend(reason, context.once), Suspended)


@tool(face="operator", title="Unsuspend an agent", keyed=True)
async def unsuspend_agent(context: Context, agent_id: AgentParam) -> Suspended | Refusal:
    """Lift an agent's suspension: its tokens, keys and agreements are good again."""
    return await _ask(context, agent_id, Suspend(None, context.once), Suspended)


@tool(face="operator", title="List suspended agents", read_only=True)
async def list_suspended_agents(
    context: Context, limit: LimitParam = 100, after: AfterParam = None
) -> HeldAgents | Refusal:
    """Agents that are suspended, with since when and why."""
    return await _page(context, ("suspended", "1"), limit, after)


@tool(face="operator", title="List agents", read_only=True, name="list_agents")
async def list_all_agents(
    context: Context,
    tier: Annotated[Literal["standard", "unclaimed", "claimed"], Meta(description="only agents of this tier")]
    | None = None,
    owner_id: OwnerParam | None = None,
    agent_id: Annotated[str, Meta(pattern=rf"^ag_{ULID}$(?!\n)", description="this agent alone")]
    | None = None,
    name: Annotated[str, Meta(min_length=1, max_length=64, description="those whose name looks like this")]
    | None = None,
    limit: LimitParam = 100,
    after: AfterParam = None,
) -> HeldAgents | Refusal:
    """All agents, or an owner's, or those of a tier, with what operators need to know of them; or one, by its id or
    its name."""
    sought = {"agent_id": agent_id, "name": name, "owner_id": owner_id, "tier": tier}
    given = [which for which, value in sought.items() if value is not None]
    if len(given) > 1 and given[0] != "owner_id":
        return refuse("bad_request", f"{given[0]} goes alone", path=given[1])
    if agent_id is not None:
        found = await agents.find(context.services, agent_id)
        return named(NO_AGENT, "agent_id") if found is None else HeldAgents([_held(context, found)])
    if name is not None:
        return HeldAgents([_held(context, row) for row in await _called(context.services, name)])
    if owner_id is None:
        return await _page(context, ("all", "1") if tier is None else ("tier", tier), limit, after)
    if (missing := await _no_owner(context, owner_id)) is not None:
        return missing
    return await _page(context, ("owner", owner_id), limit, after, tier)


@tool(face="operator", title="List unclaimed agents", read_only=True)
async def list_unclaimed_agents(
    context: Context, limit: LimitParam = 100, after: AfterParam = None
) -> HeldAgents | Refusal:
    """Agents that registered themselves and wait for an owner."""
    return await _page(context, ("tier", "unclaimed"), limit, after)


@tool(face="operator", title="Delete an unclaimed agent", destructive=True, keyed=True)
async def delete_unclaimed_agent(context: Context, agent_id: AgentParam) -> Deleted | Refusal:
    """Delete an unclaimed agent before its time: it is gone for everyone, its name is free; transcripts stay."""
    return await _ask(context, agent_id, Delete(False, context.once), Deleted)


@tool(face="operator", title="Delete agents whose time is over", destructive=True)
async def purge_expired_unclaimed(context: Context) -> Purged:
    """Delete the unclaimed agents whose 7 days are over, now. They were gone for everyone already."""
    services, deleted = context.services, 0
    for document in await services.store.due("agent", "due", services.clock.now_ms(), SWEPT):
        if not isinstance(await services.house.ask("agent", document.id, DUE), Refusal):
            deleted += await services.store.get("agent", document.id) is None
    return Purged(deleted)


@tool(face="operator", title="Delete a test's agent", destructive=True, keyed=True)
async def delete_test_agent(context: Context, agent_id: AgentParam) -> Deleted | Refusal:
    """Delete an agent that was made with test = true: it is gone for everyone; transcripts stay."""
    return await _ask(context, agent_id, Delete(True, context.once), Deleted)


async def _ask(context: Context, agent_id: str, command: Any, kind: type[T]) -> T | Refusal:
    return named(await agents.ask(context, agent_id, command, kind), "agent_id")


async def _no_owner(context: Context, owner_id: str) -> Refusal | None:
    found = await context.services.store.get("owner", owner_id)
    return named(NO_OWNER, "owner_id") if found is None else None


async def _called(services: Services, name: str) -> list[AgentRow]:
    """The agents that have claimed what a name looks like."""
    looks = [await services.store.get("agentname", look) for look in looks_of(name)]
    rows = [stored(NameRow, each.doc, "agentname", each.id) for each in looks if each is not None]
    found = [await agents.find(services, agent_id) for agent_id in sorted({row.agent_id for row in rows})]
    return [row for row in found if row is not None]


async def _page(
    context: Context, index: tuple[str, str], limit: int, after: str | None, tier: str | None = None
) -> HeldAgents | Refusal:
    found = await agents.page(
        context.services, index, lambda row: tier is None or row.tier == tier, limit, after
    )
    if isinstance(found, Refusal):
        return found
    return HeldAgents([_held(context, row) for row in found.rows], found.next)


def _held(context: Context, row: AgentRow) -> Held:
    return Held(
        agent_id=row.agent_id,
        name=row.name,
        tier=row.tier,
        presence=agents.presence_of(context.services, row),
        created_at=row.created_at,
        public=row.public,
        policy=row.policy,
        kids=[key.kid for key in row.keys],
        description=row.description,
        capabilities=list(row.capabilities),
        owner_id=row.owner_id,
        expires_at=row.expires_at,
        suspended=row.suspended,
        test=row.test,
    )


def _standard(
    context: Context,
    name: str,
    description: str,
    capabilities: tuple[str, ...],
    keys: tuple[Key, ...],
    owner_id: str | None,
    test: bool,
) -> tuple[AgentRow, dict[str, Any]]:
    """A new row, and the answer with its credential sealed."""
    services, credential = context.services, _credential(context)
    row = AgentRow(
        agent_id=services.new_id("ag_"),
        name=name,
        tier="standard",
        created_at=services.clock.now_ms(),
        description=description,
        capabilities=capabilities,
        owner_id=owner_id,
        keys=keys,
        secret_hash=digest(credential),
        test=test,
    )
    shown = {
        "agent_id": row.agent_id,
        "name": name,
        "tier": row.tier,
        "created_at": row.created_at,
        "credential": seal(services, credential),
        "kid": keys[0].kid if keys else None,
        "owner_id": owner_id,
        "test": test,
    }
    return row, {member: value for member, value in shown.items() if value is not None}


def _credential(context: Context) -> str:
    return "ts_" + context.services.new_secret()
