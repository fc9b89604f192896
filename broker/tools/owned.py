"""What is an owner's, for the owner's page: agents, claiming one, requests that wait (network.md, Identity).

1. `owner_id` is what the browser's session says, never what the browser said.
2. What is not this owner's is missing, in the same words as what there is not.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.agent import NO_CODE, Claim, find_claim
from broker.core.agent import AgentRow, Allowance, Key, allowance, is_over
from broker.core.claim import read_code
from broker.store.stored import stored
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.refusals import Refusal

Text = Annotated[str, Meta(max_length=1024)]
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


@tool(face="signin", title="Claim an agent")
async def claim_agent(context: Context, owner_id: Text, code: Text) -> Claimed | Refusal:
    """The agent that waits for this code becomes the owner's. not_found: none does, in the same words whatever the
    reason; rate_limited: 5 codes a minute."""
    services = context.services
    stopped = services.attempts.claim(owner_id)
    if stopped is not None:
        return stopped
    read = read_code(code)
    row = await find_claim(services.store, read, services.clock.now_ms()) if read is not None else None
    if row is None or read is None:
        return NO_CODE
    answer = await services.house.ask("agent", row.agent_id, Claim(owner_id, read.digest))
    return answer if isinstance(answer, Refusal) else Claimed(**answer)


def _owned(context: Context, row: AgentRow) -> Owned:
    online = any(context.services.presence.online(key.pk) for key in row.keys)
    return Owned(
        row.agent_id,
        row.name,
        row.description,
        row.tier,
        row.policy,
        row.public,
        "online" if online else "offline",
        None,
        row.keys,
        allowance(row),
        row.suspended is not None,
    )
