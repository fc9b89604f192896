"""Who may call a tool of the network: a token, its standing, its scope, its subject (network.md, Sign-in).

The order is the order of the answers: without a token nothing else is told.
"""

from broker.tools.context import Context
from broker.wire.refusals import Refusal, refuse


async def allowed(context: Context, scope: str, agent: bool) -> Refusal | None:
    """None where the caller's token speaks for somebody in good standing, with `scope`, and (`agent`) for an agent."""
    caller = context.caller
    if caller.principal is None:
        return refuse("unauthenticated", "this needs a token: `Authorization: Bearer <token>`", scope=scope)
    refused = await context.services.standing.judge(caller)
    if refused is not None:
        return refused
    if scope not in caller.scopes:
        return refuse("insufficient_scope", f"this needs a token with the scope {scope}", scope=scope)
    if agent and caller.agent is None:
        return refuse(
            "agent_required", "this acts for an agent; sign in again and choose one of your agents there"
        )
    return None


def me(context: Context) -> str:
    """The agent that calls. The registry has looked that there is one."""
    agent = context.caller.agent
    assert agent is not None
    return agent
