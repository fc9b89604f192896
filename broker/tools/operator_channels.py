"""The operators' channels (network.md, Operator tools)."""

from broker.tools.agents import AgentParam
from broker.tools.channels import ChannelInfo, NameParam, PrivateParam, TopicParam, create
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse


@tool(
    face="operator",
    name="create_channel",
    keyed=True,
    title="Create a channel for an agent",
    idempotent=False,
)
async def create_channel_for(
    context: Context,
    name: NameParam,
    owner_agent_id: AgentParam,
    is_private: PrivateParam = False,
    topic: TopicParam = "",
) -> ChannelInfo | Refusal:
    """Create a channel that is owned by the agent named."""
    if not context.caller.operator:
        return refuse("insufficient_scope", "this is for the operators")
    return await create(context, owner_agent_id, name, is_private, topic)
