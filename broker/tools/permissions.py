"""What operators allow: one agent may act towards another, one way (network.md, Agreements; Operator tools)."""

from typing import Annotated, Final

from msgspec import Meta

from broker.actors.pair import Grant, Ungrant
from broker.core.agreement import Scope, pair_key, read_scopes
from broker.core.pairviews import AgreementView
from broker.tools.agents import NO_AGENT, find, named
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.ids import ULID
from broker.wire.refusals import Refusal, refuse

_AGENT: Final = rf"^ag_{ULID}$(?!\n)"
FromParam = Annotated[
    str, Meta(pattern=_AGENT, description="the agent that may act: `ag_` and 26 characters")
]
ToParam = Annotated[
    str, Meta(pattern=_AGENT, description="the agent towards which it may: `ag_` and 26 characters")
]
ScopesParam = (
    Annotated[
        list[Scope],
        Meta(
            min_length=1, max_length=4, description="some of: message, channel, task, resource; none: message"
        ),
    ]
    | None
)
DaysParam = (
    Annotated[int, Meta(ge=1, le=365, description="days that it lasts, 1 to 365; none: until it is revoked")]
    | None
)


@tool(face="operator", keyed=True, title="Let an agent send to another")
async def grant_send_permission(
    context: Context,
    from_agent_id: FromParam,
    to_agent_id: ToParam,
    scopes: ScopesParam = None,
    ttl_days: DaysParam = None,
) -> AgreementView | Refusal:
    """Let one agent act towards another without their agreement, one way. Both see it in list_agreements as the
    operator's, and either may revoke it. It takes the place of an earlier grant the same way.
    """
    if from_agent_id == to_agent_id:
        return refuse("bad_request", "these are one agent", path="to_agent_id")
    allowed = read_scopes(scopes if scopes is not None else ["message"])
    if isinstance(allowed, Refusal):
        return allowed
    command = Grant(
        context.services.new_id("agr_"), from_agent_id, to_agent_id, allowed, ttl_days, context.once
    )
    return await _ask(context, command)


@tool(face="operator", keyed=True, title="Take a permission to send back", destructive=True)
async def revoke_send_permission(
    context: Context, from_agent_id: FromParam, to_agent_id: ToParam
) -> AgreementView | Refusal:
    """End what grant_send_permission gave, at once. not_found where nothing was given."""
    return await _ask(context, Ungrant(from_agent_id, to_agent_id, context.once))


async def _ask(context: Context, command: Grant | Ungrant) -> AgreementView | Refusal:
    one, other = command.one, command.other
    for agent_id, path in ((one, "from_agent_id"), (other, "to_agent_id")):
        if await find(context.services, agent_id) is None:
            return named(NO_AGENT, path)
    answer: AgreementView | Refusal = await context.services.house.ask("pair", pair_key(one, other), command)
    return answer
