"""What is an owner's, for the owner's pages: agents, claiming one, taking care of it, requests that wait
(network.md, Identity, Sign-in).

1. `owner_id` is what the browser's session says, never what the browser said.
2. What is not this owner's is missing, in the same words as what there is not.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.agent import Claim, RevokeKey, SetPolicy
from broker.actors.agentdocs import NO_AGENT, NO_CODE, find_claim
from broker.actors.pair import NO_AGREEMENT, NO_REQUEST, Respond, Revoke
from broker.actors.pairdocs import read_agreement, read_request, view_agreement
from broker.actors.push import KIND, NO_PUSH, RemovePush, read_push
from broker.core.agent import AgentRow, Allowance, Key, Policy, allowance, is_over
from broker.core.agreement import Agreement, Request, Scope, pair_key
from broker.core.claim import read_code
from broker.core.pairviews import AgreementView, counterpart
from broker.core.push import MAX_URL
from broker.core.webhook import Webhook, show
from broker.store.stored import stored
from broker.tools.agents import find, presence_of, seen
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.refusals import Refusal

Text = Annotated[str, Meta(max_length=1024)]
Url = Annotated[str, Meta(max_length=MAX_URL)]
PAGE: Final = 200
"""Agents of one owner that are shown."""


class Owned(msgspec.Struct, frozen=True):
    """An agent as its owner sees it. Times are Unix milliseconds."""

    agent_id: str
    name: str
    description: str
    tier: str
    policy: str
    public: bool
    presence: str
    last_seen: int | None
    keys: tuple[Key, ...]
    limits: Allowance
    suspended: bool


class OwnedAgents(msgspec.Struct, frozen=True):
    """All of an owner's agents, in the order in which they came to be the owner's."""

    agents: list[Owned]


class Kept(msgspec.Struct, frozen=True):
    """An agent as its owner takes care of it: its agreements that hold, the latest first, PAGE at most; its webhook."""

    agent: Owned
    agreements: list[AgreementView]
    webhook: Webhook | None


class Changed(msgspec.Struct, frozen=True):
    """What the owner changed is changed."""

    agent_id: str


class Waiting(msgspec.Struct, frozen=True):
    """A contact request that waits for an owner. Times are Unix milliseconds."""

    request_id: str
    from_agent: str
    from_name: str
    to_agent: str
    to_name: str
    purpose: str
    scopes: tuple[str, ...]
    ttl_days: int
    asked_at: int
    expires_at: int


class WaitingRequests(msgspec.Struct, frozen=True):
    """All that wait for an owner, the latest first."""

    requests: list[Waiting]


class DecidedRequest(msgspec.Struct, frozen=True):
    """What became of a request: accepted or declined."""

    request_id: str
    status: str


class Claimed(msgspec.Struct, frozen=True):
    """The agent that is the owner's now."""

    agent_id: str
    name: str
    tier: str


@tool(face="signin", title="My agents", read_only=True)
async def my_agents(context: Context, owner_id: Text) -> OwnedAgents | Refusal:
    """The owner's agents."""
    services, found = context.services, []
    for document in await services.store.find("agent", "owner", owner_id, limit=PAGE):
        row = stored(AgentRow, document.doc, "agent", document.id)
        if not is_over(row, services.clock.now_ms()):
            found.append(_owned(context, row))
    return OwnedAgents(found)


@tool(face="signin", title="Claim an agent", audited=True)
async def claim_agent(context: Context, owner_id: Text, code: Text) -> Claimed | Refusal:
    """The agent that waits for this code becomes the owner's. not_found: none does, in the same words whatever the
    reason; rate_limited: 5 codes a minute."""
    services = context.services
    read = read_code(code)
    selector = read.selector if read is not None else None
    stopped = services.attempts.claim(owner_id, selector, context.caller.address)
    if stopped is not None:
        return stopped
    row = await find_claim(services.store, read, services.clock.now_ms()) if read is not None else None
    if row is None or read is None:
        return NO_CODE
    answer = await services.house.ask("agent", row.agent_id, Claim(owner_id, read.digest, context.once))
    return answer if isinstance(answer, Refusal) else Claimed(**answer)


@tool(face="signin", title="One of my agents", read_only=True)
async def my_agent(context: Context, owner_id: Text, agent_id: Text) -> Kept | Refusal:
    """An agent of the owner's, what it agreed on, and its webhook. not_found: it is none of this owner's."""
    services = context.services
    row = await find(services, agent_id, owner_id)
    if row is None:
        return NO_AGENT
    now, found = services.clock.now_ms(), []
    for document in await services.store.find("agreement", "active", agent_id, limit=PAGE, newest=True):
        agreement = stored(Agreement, document.doc, "agreement", document.id)
        silent = await seen(services, counterpart(agreement, agent_id)) is None
        found.append(await view_agreement(services.store, agreement, agent_id, now, silent=silent))
    push, shown = await read_push(services.store, agent_id), None
    if push is not None:
        head = await services.store.head(push.stream)
        shown = show(push, head.oldest, head.newest, now)
    return Kept(_owned(context, row), found, shown)


@tool(face="signin", title="End an agreement of my agent")
async def end_agreement(
    context: Context, owner_id: Text, agent_id: Text, agreement_id: Text
) -> Changed | Refusal:
    """The owner revokes an agreement for its agent: it allows nothing from then on. not_found: there is none such."""
    services = context.services
    row = await read_agreement(services.store, agreement_id)
    if row is None or agent_id not in (row.one, row.other) or not await find(services, agent_id, owner_id):
        return NO_AGREEMENT
    command = Revoke(agreement_id, agent_id, context.once)
    answer = await services.house.ask("pair", pair_key(row.one, row.other), command)
    return answer if isinstance(answer, Refusal) else Changed(agent_id)


@tool(face="signin", title="Say how requests to my agent are handled")
async def choose_policy(
    context: Context, owner_id: Text, agent_id: Text, policy: Policy
) -> Changed | Refusal:
    """The owner sets its agent's contact policy, as the agent itself may."""
    if await find(context.services, agent_id, owner_id) is None:
        return NO_AGENT
    answer = await context.services.house.ask("agent", agent_id, SetPolicy(policy, context.once))
    return answer if isinstance(answer, Refusal) else Changed(agent_id)


@tool(face="signin", title="Revoke a key of my agent", audited=True)
async def revoke_agent_key(context: Context, owner_id: Text, agent_id: Text, kid: Text) -> Changed | Refusal:
    """The owner revokes a key of its agent, such as one that is lost, for good: also its last one."""
    if await find(context.services, agent_id, owner_id) is None:
        return NO_AGENT
    answer = await context.services.house.ask("agent", agent_id, RevokeKey(kid, False, context.once))
    return answer if isinstance(answer, Refusal) else Changed(agent_id)


@tool(face="signin", title="End my agent's webhook", audited=True)
async def end_webhook(context: Context, owner_id: Text, agent_id: Text, url: Url) -> Changed | Refusal:
    """The owner ends its agent's webhook, if it is still this one, such as one that a lost key has set."""
    services = context.services
    push = await read_push(services.store, agent_id)
    if push is None or push.url != url or await find(services, agent_id, owner_id) is None:
        return NO_PUSH
    command = RemovePush({"agent_id": agent_id}, context.once, by_other=True)
    answer = await services.house.ask(KIND, agent_id, command)
    return answer if isinstance(answer, Refusal) else Changed(agent_id)


@tool(face="signin", title="Requests that wait for me", read_only=True)
async def waiting_requests(context: Context, owner_id: Text) -> WaitingRequests:
    """Contact requests to agents of this owner whose policy is owner-decides."""
    services, found = context.services, []
    for document in await services.store.find("contact", "owner-waits", owner_id, limit=PAGE, newest=True):
        request = stored(Request, document.doc, "contact", document.id)
        if await _is_to_decide(context, request, owner_id):
            found.append(
                Waiting(
                    request.request_id,
                    request.asker,
                    request.asker_name,
                    request.target,
                    request.target_name,
                    request.purpose,
                    request.scopes,
                    request.ttl_days,
                    request.asked_at,
                    request.expires_at,
                )
            )
    return WaitingRequests(found)


@tool(face="signin", title="Decide on a request")
async def decide_request(
    context: Context,
    owner_id: Text,
    request_id: Text,
    accept: bool,
    scopes: list[Scope] | None = None,
    ttl_days: Annotated[int, Meta(ge=1, le=365)] | None = None,
) -> DecidedRequest | Refusal:
    """Accept with no more scopes and days than asked for, or decline. not_found: it does not wait for this owner."""
    services = context.services
    request = await read_request(services.store, request_id)
    if request is None or not await _is_to_decide(context, request, owner_id):
        return NO_REQUEST
    command = Respond(
        request_id,
        request.target,
        accept,
        services.new_id("agr_"),
        list(scopes) if accept and scopes is not None else None,
        ttl_days if accept else None,
        by_owner=True,
    )
    answer = await services.house.ask("pair", pair_key(request.asker, request.target), command)
    return answer if isinstance(answer, Refusal) else DecidedRequest(request_id, answer.status)


async def _is_to_decide(context: Context, request: Request, owner_id: str) -> bool:
    """Whether a request waits for this owner now. The agent may have come to another one since it was asked."""
    services = context.services
    now = services.clock.now_ms()
    if request.owner_id != owner_id or request.status != "pending" or request.expires_at <= now:
        return False
    return await find(services, request.target, owner_id) is not None


def _owned(context: Context, row: AgentRow) -> Owned:
    return Owned(
        row.agent_id,
        row.name,
        row.description,
        row.tier,
        row.policy,
        row.public,
        presence_of(context.services, row),
        context.services.activity.last_seen(row.agent_id),
        row.keys,
        allowance(row),
        row.suspended is not None,
    )
