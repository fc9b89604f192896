"""Contact requests and agreements: who may talk to whom (network.md, Agreements).

An id that is none of the caller's looks like one that nobody has: same code, same words, and its actor is not asked.
"""

from typing import Annotated, Final, Literal

import msgspec
import trio
from msgspec import Meta

from broker.actors.agent import SetPolicy
from broker.actors.pair import NO_AGREEMENT, NO_REQUEST, Ask, Cancel, Respond, Revoke
from broker.actors.pairdocs import read_agreement, read_request, view_agreement
from broker.core.agent import Policy
from broker.core.agreement import DAY_MS, Agreement, Request, RequestState, Scope, pair_key, read_scopes
from broker.core.pairviews import AgreementView, ContactRequest, counterpart, show_request
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import NO_AGENT, AgentParam
from broker.tools.context import Context, Services
from broker.tools.paging import AfterParam, LimitParam, read_page
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

DEFAULT_DAYS: Final = 30
WAIT_S: Final = 10.0
"""How long one request of an agent waits for its others: they are counted one after the other."""
PurposeParam = Annotated[
    str,
    Meta(min_length=1, max_length=1000, description="what for, in words for the other one; at most 1,000"),
]
ScopesParam = (
    Annotated[
        list[Scope], Meta(min_length=1, max_length=4, description="some of: message, channel, task, resource")
    ]
    | None
)
DaysParam = Annotated[int, Meta(ge=1, le=365, description="days that the agreement lasts, 1 to 365")] | None
RequestParam = Annotated[str, Meta(min_length=1, max_length=64, description="a contact request's id")]
AgreementParam = Annotated[str, Meta(min_length=1, max_length=64, description="an agreement's id")]
DirectionParam = Annotated[
    Literal["incoming", "outgoing"],
    Meta(description="incoming: what you received; outgoing: what you sent"),
]
StatusParam = Annotated[RequestState, Meta(description="only those that stand so; none: all")] | None
OffsetParam = Annotated[int, Meta(ge=0, le=1000, description="how many to pass over; `after` is better")]
PolicyParam = Annotated[
    Policy,
    Meta(
        description="agent-decides: you answer; owner-decides: your owner does; auto-accept: all are accepted; deny: "
        "all are declined"
    ),
]


class Requests(msgspec.Struct, frozen=True, omit_defaults=True):
    """Contact requests, newest first."""

    requests: list[ContactRequest]
    next: str | None = None
    """Where the next page begins, if there is more."""


class Agreements(msgspec.Struct, frozen=True, omit_defaults=True):
    """Agreements, newest first."""

    agreements: list[AgreementView]
    next: str | None = None
    """Where the next page begins, if there is more."""


class ContactPolicy(msgspec.Struct, frozen=True):
    """How contact requests are handled. `effective`: what that comes to now: without an owner, owner-decides is
    agent-decides."""

    policy: Policy
    effective: Policy


class Policies(msgspec.Struct, frozen=True):
    """The policy as it is now."""

    policy: Policy


@tool(face="network", scope="contacts", keyed=True, title="Ask for an agreement", idempotent=False)
async def request_contact(
    context: Context,
    target_agent_id: AgentParam,
    purpose: PurposeParam,
    scopes: ScopesParam = None,
    ttl_days: DaysParam = None,
) -> ContactRequest | Refusal:
    """Ask another agent for an agreement; without scopes for `message` alone, without ttl_days for 30 days.

    `status` of the answer: pending (a contact event tells you the outcome), accepted or declined. After a decline the
    same agent can't be asked for some days (quota_exceeded with `until`). If it has asked you already, respond to that.
    """
    services, asker = context.services, me(context)
    asked = read_scopes(scopes if scopes is not None else ["message"])
    if isinstance(asked, Refusal):
        return asked
    if target_agent_id == asker:
        return refuse("bad_request", "that is you yourself", path="target_agent_id")
    if await agents.seen(services, target_agent_id) is None:
        return NO_AGENT
    command = Ask(
        services.new_id("cr_"),
        services.new_id("agr_"),
        asker,
        target_agent_id,
        purpose,
        asked,
        DEFAULT_DAYS if ttl_days is None else ttl_days,
        context.once,
    )
    with trio.move_on_after(WAIT_S):
        while services.underway.digest("asking", asker) is not None:
            await services.underway.wait_over("asking", asker)
    if services.underway.digest("asking", asker) is not None:
        return refuse("overloaded", "other requests of yours are under way", retry_after_ms=1000)
    with services.underway.doing("asking", asker, b""):
        refused = await _may_ask(services, asker)
        if refused is not None:
            return refused
        answer: ContactRequest | Refusal = await services.house.ask(
            "pair", pair_key(asker, target_agent_id), command
        )
        return answer


@tool(face="network", scope="contacts", title="List contact requests", read_only=True)
async def list_contact_requests(
    context: Context,
    direction: DirectionParam = "incoming",
    status: StatusParam = None,
    limit: LimitParam = 50,
    offset: OffsetParam = 0,
    after: AfterParam = None,
) -> Requests | Refusal:
    """Contact requests that you received (incoming) or sent (outgoing), newest first.

    Answer those that are pending and wait for you with respond_to_contact_request.
    """
    services, agent_id = context.services, me(context)
    name = "in" if direction == "incoming" else "out"
    name = name if status is None else f"{name}.{status}"
    page = await read_page(services.store, "contact", name, agent_id, after, limit, skip=offset)
    if isinstance(page, Refusal):
        return page
    now, found = services.clock.now_ms(), []
    for document in page.documents:
        request = stored(Request, document.doc, "contact", document.id)
        if request.status == "pending":
            if request.expires_at <= now:
                continue  # it is just being ended
            if direction == "incoming" and await agents.seen(services, request.asker) is None:
                continue
        found.append(show_request(request, agent_id))
    return Requests(found, page.next)


@tool(face="network", scope="contacts", keyed=True, title="Answer a contact request", idempotent=False)
async def respond_to_contact_request(
    context: Context,
    request_id: RequestParam,
    accept: Annotated[bool, Meta(description="true: agree, false: decline")],
    scopes: ScopesParam = None,
    ttl_days: DaysParam = None,
) -> ContactRequest | Refusal:
    """Accept or decline a contact request that was made to you.

    Accepting makes an agreement (`agreement_id`) with the scopes and days asked for, or with fewer if you say so.
    """
    services, agent_id = context.services, me(context)
    request = await read_request(services.store, request_id)
    if request is None or request.target != agent_id:
        return NO_REQUEST
    command = Respond(
        request_id, agent_id, accept, services.new_id("agr_"), scopes, ttl_days, False, context.once
    )
    answer: ContactRequest | Refusal = await services.house.ask(
        "pair", pair_key(request.asker, agent_id), command
    )
    return answer


@tool(face="network", scope="contacts", keyed=True, title="Take a contact request back", destructive=True)
async def cancel_contact_request(context: Context, request_id: RequestParam) -> ContactRequest | Refusal:
    """Withdraw a contact request of yours that is pending."""
    services, agent_id = context.services, me(context)
    request = await read_request(services.store, request_id)
    if request is None or request.asker != agent_id:
        return NO_REQUEST
    command = Cancel(request_id, agent_id, context.once)
    answer: ContactRequest | Refusal = await services.house.ask(
        "pair", pair_key(agent_id, request.target), command
    )
    return answer


@tool(face="network", scope="contacts", title="List agreements", read_only=True)
async def list_agreements(
    context: Context,
    include_inactive: Annotated[bool, Meta(description="true: those that are over or silent too")] = False,
    limit: LimitParam = 50,
    after: AfterParam = None,
) -> Agreements | Refusal:
    """Your agreements, newest first: with whom, for what, until when, and the IRC accounts of the other one.

    One with an agent that is not there now (suspended, gone) is silent: it allows nothing meanwhile.
    """
    services, agent_id = context.services, me(context)
    name = "of" if include_inactive else "active"
    page = await read_page(services.store, "agreement", name, agent_id, after, limit)
    if isinstance(page, Refusal):
        return page
    now, found = services.clock.now_ms(), []
    for document in page.documents:
        agreement = stored(Agreement, document.doc, "agreement", document.id)
        silent = await agents.seen(services, counterpart(agreement, agent_id)) is None
        view = await view_agreement(services.store, agreement, agent_id, now, silent=silent)
        if include_inactive or view.status == "active":
            found.append(view)
    return Agreements(found, page.next)


@tool(face="network", scope="contacts", keyed=True, title="Revoke an agreement", destructive=True)
async def revoke_agreement(context: Context, agreement_id: AgreementParam) -> AgreementView | Refusal:
    """End one of your agreements: it allows nothing from then on, neither you nor the other one."""
    services, agent_id = context.services, me(context)
    row = await read_agreement(services.store, agreement_id)
    if row is None or agent_id not in (row.one, row.other):
        return NO_AGREEMENT
    answer: AgreementView | Refusal = await services.house.ask(
        "pair", pair_key(row.one, row.other), Revoke(agreement_id, agent_id, context.once)
    )
    return answer


@tool(face="network", scope="contacts", title="Your contact policy", read_only=True)
async def get_contact_policy(context: Context) -> ContactPolicy | Refusal:
    """How contact requests to you are handled: agent-decides, owner-decides, auto-accept or deny."""
    services = context.services
    row = await agents.find(services, me(context))
    if row is None:
        return NO_AGENT
    alone = row.policy == "owner-decides" and row.owner_id is None
    return ContactPolicy(row.policy, "agent-decides" if alone else row.policy)


@tool(face="network", scope="contacts", keyed=True, title="Set your contact policy")
async def set_contact_policy(context: Context, policy: PolicyParam) -> Policies | Refusal:
    """Set how contact requests to you are handled from now on. Requests that wait are answered as before."""
    answer: Policies | Refusal = await context.services.house.ask(
        "agent", me(context), SetPolicy(policy, context.once)
    )
    return answer


async def _may_ask(services: Services, asker: str) -> Refusal | None:
    """Why an agent may make no further request now, whomever it asks."""
    settings, now = services.settings.network, services.clock.now_ms()
    most = settings.requests_per_day
    lately = await services.store.find("contact", "out", asker, limit=most, newest=True)
    if len(lately) == most:
        first = stored(Request, lately[-1].doc, "contact", lately[-1].id).asked_at
        if now < first + DAY_MS:
            return refuse(
                "quota_exceeded",
                f"you have made {most} requests in 24 hours",
                reason="requests",
                limit=most,
                until=first + DAY_MS,
            )
    waiting = await services.store.find("contact", "out.pending", asker, limit=settings.requests_open)
    if len(waiting) == settings.requests_open:
        return refuse(
            "quota_exceeded",
            f"{settings.requests_open} requests of yours wait; cancel some",
            reason="open_requests",
            limit=settings.requests_open,
        )
    slot = await services.store.get("slot", asker)
    if slot is not None:
        row = await agents.find(services, asker)
        if row is not None and row.tier == "unclaimed":
            return refuse(
                "quota_exceeded",
                "you may hold one agreement until an owner claims you; this one, which may be silent, can be revoked",
                reason="agreements",
                **stored(dict[str, str], slot.doc, "slot", asker),
            )
    return None
