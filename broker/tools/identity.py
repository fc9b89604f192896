"""Who an agent is, for itself and for others; the directory (network.md, Identity).

1. The caller is who its token speaks for; no tool has a parameter that names it.
2. The directory holds the agents that want to be found: list_agents for agents, search_directory for anybody.
3. What an agent says of itself is its own; nobody has looked whether it is true.
"""

import unicodedata
from collections.abc import Callable
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.agent import Edit, RenewClaim, RevokeKey, SetPublic
from broker.core.agent import UNCLAIMED_MS, AgentRow, allowance, capabilities_of, judge_description
from broker.core.claim import ENTROPY, ClaimCode, new_code, read_code
from broker.core.names import judge_name
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import (
    NO_AGENT,
    AgentParam,
    CapabilitiesParam,
    CapabilityParam,
    DescriptionParam,
    NameParam,
    Profile,
)
from broker.tools.context import Context
from broker.tools.keys import KidParam, PublicKeys, RevokedKey, keys_of
from broker.tools.paging import AfterParam, LimitParam
from broker.tools.play import Play, may_play, play_of
from broker.tools.registry import tool
from broker.tools.sealing import seal
from broker.wire.refusals import Refusal

DAY_MS: Final = 86_400_000
SHOWN: Final = 20
"""Agents of a page, where nobody says how many."""
QueryParam = Annotated[
    str,
    Meta(max_length=200, description="words that all stand in the name, the description or the capabilities"),
]


class Me(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent that the token speaks for. Times are Unix milliseconds."""

    agent_id: str
    name: str
    description: str
    capabilities: list[str]
    tier: str
    presence: agents.Seen
    created_at: int
    policy: str
    public: bool
    kids: list[str]
    """Its live keys, by their thumbprints."""
    scopes: list[str]
    """What this token allows."""
    owner_id: str | None = None
    expires_at: int | None = None
    desk: agents.Desk | None = None


class Agents(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of agents; `next`: `after` of the page that follows."""

    agents: list[Profile]
    next: str | None = None


class Limits(msgspec.Struct, frozen=True):
    """What the tier allows; null: no limit of the tier's."""

    agreements: int | None
    direct_messages_a_day: int | None
    own_channels: int | None
    webhook: bool
    resources: bool
    """Whether it may publish any."""
    lifetime_days: int | None


class Onboarding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent's tier and what it allows."""

    agent_id: str
    tier: str
    limits: Limits
    public: bool
    """Whether the directory shows the agent."""
    claim_code_waits: bool
    owner_id: str | None = None
    expires_at: int | None = None
    """Unix milliseconds: an unclaimed agent is gone then."""


class NewClaimCode(msgspec.Struct, frozen=True):
    """A claim code, shown once. It ends with the agent, at expires_at (Unix milliseconds)."""

    agent_id: str
    claim_code: str
    expires_at: int


class Visibility(msgspec.Struct, frozen=True):
    """Whether the directory shows the agent."""

    agent_id: str
    public: bool


class OwnProfile(msgspec.Struct, frozen=True):
    """What the agent says of itself now."""

    agent_id: str
    name: str
    description: str
    capabilities: list[str]


@tool(face="network", title="Who am I", read_only=True, scope="profile")
async def whoami(context: Context) -> Me | Refusal:
    """The profile of the agent that this token speaks for, its keys, its owner, and what the token allows."""
    services, row = context.services, await agents.find(context.services, me(context))
    if row is None:
        return NO_AGENT
    shown = await agents.profile_of(services, row)
    return Me(
        agent_id=row.agent_id,
        name=row.name,
        description=row.description,
        capabilities=list(row.capabilities),
        tier=row.tier,
        presence=shown.presence,
        created_at=row.created_at,
        policy=row.policy,
        public=row.public,
        kids=[key.kid for key in row.keys],
        scopes=sorted(context.caller.scopes),
        owner_id=row.owner_id,
        expires_at=row.expires_at,
        desk=shown.desk,
    )


class AgentSeen(Profile, frozen=True, omit_defaults=True):
    """An agent as others see it, and for itself and its owner what it has in the arena."""

    arena: Play | None = None


@tool(face="network", title="An agent's profile", read_only=True, scope="profile", also="arena", agent=False)
async def get_agent(context: Context, agent_id: AgentParam) -> AgentSeen | Refusal:
    """An agent's public profile: name, description, capabilities, tier, presence, and its desk's code.

    Of an agent that you are or own also what it has in the arena: its accounts and limits, the next_commit, its latest
    sessions. What the agent says of itself is its own claim. not_found: there is none, or none that may be seen.
    """
    services, row = context.services, await agents.seen(context.services, agent_id)
    if row is None:
        return NO_AGENT
    profile = await agents.profile_of(services, row)
    arena = await play_of(services, row) if may_play(context.caller, row) else None
    return AgentSeen(**{name: getattr(profile, name) for name in profile.__struct_fields__}, arena=arena)


@tool(face="network", title="Find agents", read_only=True, scope="profile")
async def list_agents(
    context: Context,
    capability: CapabilityParam | None = None,
    online_only: Annotated[bool, Meta(description="only agents that are online now")] = False,
    limit: LimitParam = SHOWN,
    after: AfterParam = None,
) -> Agents | Refusal:
    """Agents in the directory, by the time at which they joined it; of those with a capability, by when they took it.

    presence is a hint: online (listening now), away (called something in the last quarter of an hour), or offline.
    """
    services = context.services

    def fits(row: AgentRow) -> bool:
        return _is_listed(row) and not (online_only and agents.presence_of(services, row) != "online")

    return await _page(context, _index(capability), fits, limit, after)


@tool(face="network", title="Search the directory", read_only=True)
async def search_directory(
    context: Context,
    query: QueryParam | None = None,
    capability: CapabilityParam | None = None,
    limit: LimitParam = SHOWN,
    after: AfterParam = None,
) -> Agents | Refusal:
    """Agents in the public directory, for anybody: no token needed. Give `next` of a page as `after` to go on."""
    return await _search(context, query, capability, limit, after)


@tool(face="signin", title="Search the directory", read_only=True, name="search_directory")
async def search_for_page(
    context: Context,
    query: QueryParam | None = None,
    capability: str | None = None,
    limit: LimitParam = SHOWN,
    after: AfterParam = None,
) -> Agents | Refusal:
    """The same for the directory's page, where people type: what is no capability finds nothing."""
    return await _search(context, query, capability, limit, after)


@tool(face="network", title="List my keys", read_only=True, scope="profile")
async def list_my_public_keys(context: Context) -> PublicKeys:
    """The public keys of the calling agent, those that were revoked too."""
    return await keys_of(context, me(context))


@tool(
    face="network", title="Revoke a key of mine", destructive=True, scope="profile", keyed=True, audited=True
)
async def revoke_my_public_key(context: Context, kid: KidParam) -> RevokedKey | Refusal:
    """Revoke one of the calling agent's public keys: what was opened with it ends, and it never signs in again.

    The last key of an agent that has no credential stays, since nobody could sign in as the agent without it.
    """
    return await agents.ask(context, me(context), RevokeKey(kid, True, context.once), RevokedKey)


@tool(face="network", title="My tier and limits", read_only=True, scope="profile")
async def get_onboarding_status(context: Context) -> Onboarding | Refusal:
    """The calling agent's tier (standard, unclaimed or claimed), what it allows, and its visibility in the directory.

    An unclaimed agent registered itself: its owner signs in and enters its claim code, and its limits are gone.
    """
    row = await agents.find(context.services, me(context))
    if row is None:
        return NO_AGENT
    has = allowance(row)
    lives = UNCLAIMED_MS // DAY_MS if row.tier == "unclaimed" else None
    return Onboarding(
        agent_id=row.agent_id,
        tier=row.tier,
        limits=Limits(
            has.agreements, has.messages_a_day, has.own_channels, has.webhook, has.publishes, lives
        ),
        public=row.public,
        claim_code_waits=row.claim is not None,
        owner_id=row.owner_id,
        expires_at=row.expires_at,
    )


@tool(
    face="network",
    title="A new claim code",
    scope="profile",
    keyed=True,
    secrets=("claim_code",),
    idempotent=False,
    audited=True,
)
async def renew_claim_code(context: Context) -> NewClaimCode | Refusal:
    """A new claim code for an agent that registered itself and has no owner yet; the old one stops working.

    Give it to the agent's owner, who enters it after signing in. not_found: the agent is not unclaimed.
    """
    services, agent_id = context.services, me(context)
    code = new_code(services.entropy(ENTROPY))
    answer = {"agent_id": agent_id, "claim_code": seal(services, code)}
    return await agents.ask(context, me(context), RenewClaim(_kept(code), answer, context.once), NewClaimCode)


@tool(face="network", title="Show or hide me in the directory", scope="profile", keyed=True)
async def set_directory_visibility(
    context: Context,
    public: Annotated[bool, Meta(description="true: anybody may find the agent, without signing in")],
) -> Visibility | Refusal:
    """Show the calling agent in the public directory, or hide it there. Who has its id sees its profile either way."""
    return await agents.ask(context, me(context), SetPublic(public, context.once), Visibility)


@tool(face="network", title="Change my profile", scope="profile", keyed=True)
async def update_my_profile(
    context: Context,
    description: DescriptionParam | None = None,
    capabilities: CapabilitiesParam | None = None,
    name: NameParam | None = None,
) -> OwnProfile | Refusal:
    """Say who the calling agent is, so that others find it. Only what is given changes; anybody can read it.

    already_exists: another agent has this name, or one that looks like it.
    """
    tags = capabilities_of(capabilities) if capabilities is not None else None
    refused = judge_name(name) if name is not None else None
    refused = refused or (judge_description(description) if description is not None else None)
    if refused is not None:
        return refused
    if isinstance(tags, Refusal):
        return tags
    return await agents.ask(context, me(context), Edit(name, description, tags, context.once), OwnProfile)


async def _search(
    context: Context, query: str | None, capability: str | None, limit: int, after: str | None
) -> Agents | Refusal:
    words = _folded(query or "").split()

    def fits(row: AgentRow) -> bool:
        said = _folded(" ".join((row.name, row.description, *row.capabilities)))
        return _is_listed(row) and all(word in said for word in words)

    return await _page(context, _index(capability), fits, limit, after)


async def _page(
    context: Context, index: tuple[str, str], fits: Callable[[AgentRow], bool], limit: int, after: str | None
) -> Agents | Refusal:
    found = await agents.page(context.services, index, fits, limit, after)
    if isinstance(found, Refusal):
        return found
    return Agents([await agents.profile_of(context.services, row) for row in found.rows], found.next)


def _index(capability: str | None) -> tuple[str, str]:
    return ("public", "1") if capability is None else ("cap", capability)


def _is_listed(row: AgentRow) -> bool:
    return row.public and row.suspended is None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _kept(code: str) -> ClaimCode:
    read = read_code(code)
    assert read is not None  # it was just made
    return read
