"""An agent's A2A endpoint of its own, and what its Agent Card is made of (network.md, A2A).

Nothing here ever asks the URL: it is published, and whoever reads the card asks it.
"""

import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from broker.actors.endpoint import SetEndpoint, read_endpoint
from broker.core.push import MAX_URL, judge_url
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import NO_AGENT, Profile
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

_NAMED: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])")
"""A host that the internet may know: a name with a dot. No address in any of its forms, no name of a local machine."""
_LOCAL: Final = (
    ".localhost",
    ".local",
    ".internal",
    ".lan",
    ".home",
    ".home.arpa",
    ".test",
    ".invalid",
    ".example",
)
_NOT_PUBLIC: Final = refuse(
    "bad_request",
    "an endpoint is an https:// URL on port 443 whose host is a name in the public DNS, not an address",
    path="url",
)


class Endpoint(msgspec.Struct, frozen=True):
    """An agent's own A2A endpoint; both null where it has none. `set_at`: Unix milliseconds."""

    url: str | None
    set_at: int | None


class CardFacts(msgspec.Struct, frozen=True):
    """What an agent's card is made of."""

    profile: Profile
    endpoint: str | None


@tool(face="network", scope="task", keyed=True, title="Publish your own A2A endpoint")
async def set_a2a_endpoint(
    context: Context,
    url: Annotated[str, Meta(max_length=MAX_URL, description="where your own A2A server answers: https://")],
) -> Endpoint | Refusal:
    """Put your own A2A endpoint in your Agent Card (direct mode): tasks are then sent to it, and no more through the
    network. Those that you were given already stay here."""
    refused = judge_url(url)
    host = "" if refused is not None else (urlsplit(url).hostname or "").removesuffix(".")
    if not _NAMED.fullmatch(host) or f".{host}".endswith(_LOCAL):
        return _NOT_PUBLIC
    return await _set(context, url)


@tool(face="network", scope="task", title="Your own A2A endpoint", read_only=True)
async def get_a2a_endpoint(context: Context) -> Endpoint:
    """The A2A endpoint that you have published; null: tasks come through the network's gateway."""
    row = await read_endpoint(context.services.store, me(context))
    return Endpoint(None, None) if row is None else Endpoint(row.url, row.set_at)


@tool(face="network", scope="task", keyed=True, title="Publish no A2A endpoint", destructive=True)
async def delete_a2a_endpoint(context: Context) -> Endpoint | Refusal:
    """Take your own A2A endpoint out of your Agent Card: tasks come through the network's gateway again."""
    return await _set(context, None)


@tool(face="signin", title="What an Agent Card is made of", read_only=True)
async def agent_card(context: Context, agent_id: str) -> CardFacts | Refusal:
    """For the door of the cards. An agent that is not in the directory is shown to agents alone, as get_agent does."""
    row = await agents.seen(context.services, agent_id)
    if row is None or not (row.public or context.caller.agent is not None):
        return NO_AGENT
    endpoint = await read_endpoint(context.services.store, agent_id)
    profile = await agents.profile_of(context.services, row)
    return CardFacts(profile, endpoint.url if endpoint is not None else None)


async def _set(context: Context, url: str | None) -> Endpoint | Refusal:
    command = SetEndpoint(url, context.once)
    answer: Any = await context.services.house.ask("endpoint", me(context), command)
    return answer if isinstance(answer, Refusal) else msgspec.convert(answer, Endpoint)
