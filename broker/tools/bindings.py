"""IRC accounts that operators bind to agents: labels, listed with each agreement (network.md, Agreements)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from broker.actors.agentdocs import NO_AGENT
from broker.actors.binding import Bind, BindingRow, Unbind
from broker.core.irc import NETWORK, NICK, account_key
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.agents import AgentParam, named
from broker.tools.context import Context
from broker.tools.paging import AfterParam, LimitParam, read_page
from broker.tools.registry import tool
from broker.wire.ids import ULID
from broker.wire.refusals import Refusal

NetworkParam = Annotated[
    str, Meta(pattern=rf"^{NETWORK}$(?!\n)", description="the IRC network's name, such as libera.chat")
]
NickParam = Annotated[str, Meta(pattern=rf"^{NICK}$(?!\n)", description="the account's nick there")]


class Binding(msgspec.Struct, frozen=True):
    """An account and whose it is. `bridged`: whether messages go over there; never, so far. `bound_at`: Unix
    milliseconds."""

    agent_id: str
    network: str
    nick: str
    bound_at: int
    bridged: bool = False


class Unbound(msgspec.Struct, frozen=True):
    """The account is nobody's now."""

    agent_id: str
    network: str
    nick: str
    unbound: bool


class Bindings(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of bindings, the oldest first; `next`: `after` of the page that follows."""

    bindings: list[Binding]
    next: str | None = None


@tool(face="operator", title="Bind an IRC account", keyed=True)
async def bind_irc_account(
    context: Context, agent_id: AgentParam, network: NetworkParam, nick: NickParam
) -> Binding | Refusal:
    """Say that an IRC account is an agent's: whoever has an agreement with the agent sees it there. It is a label;
    nothing is sent to IRC. An account is one agent's at most, however its nick is written.
    """
    command = Bind(network, nick, agent_id, context.once)
    answer: Binding | Refusal = await context.services.house.ask("irc", account_key(network, nick), command)
    return named(answer, "agent_id")


@tool(face="operator", title="Unbind an IRC account", destructive=True, keyed=True)
async def unbind_irc_account(
    context: Context, agent_id: AgentParam, network: NetworkParam, nick: NickParam
) -> Unbound | Refusal:
    """Take an IRC account back from an agent: it stands in no agreement any more."""
    if await agents.find(context.services, agent_id) is None:
        return named(NO_AGENT, "agent_id")
    command = Unbind(agent_id, context.once)
    answer: Unbound | Refusal = await context.services.house.ask("irc", account_key(network, nick), command)
    return answer


@tool(face="operator", title="List IRC accounts", read_only=True)
async def list_irc_bindings(
    context: Context,
    agent_id: Annotated[str, Meta(pattern=rf"^ag_{ULID}$(?!\n)", description="only this agent's")]
    | None = None,
    network: Annotated[str, Meta(pattern=rf"^{NETWORK}$(?!\n)", description="only those of this network")]
    | None = None,
    limit: LimitParam = 100,
    after: AfterParam = None,
) -> Bindings | Refusal:
    """IRC accounts that are bound to agents, the oldest binding first: all, an agent's, or a network's."""
    services = context.services
    if agent_id is not None and await agents.find(services, agent_id) is None:
        return named(NO_AGENT, "agent_id")
    index = ("all", "1") if network is None else ("network", network.lower())
    if agent_id is not None:
        index = ("agent", agent_id)
    page = await read_page(services.store, "irc", *index, after, limit, newest=False)
    if isinstance(page, Refusal):
        return page
    rows = [stored(BindingRow, each.doc, "irc", each.id) for each in page.documents]
    shown = [
        Binding(row.agent_id, row.network, row.nick, row.bound_at)
        for row in rows
        if agent_id is None or network is None or row.network.lower() == network.lower()
    ]
    return Bindings(shown, page.next)
