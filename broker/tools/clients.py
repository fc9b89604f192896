"""Whose an OAuth client's id is, and an agent's: looked up for the verbs of the sign-in."""

import base64
from typing import Any

from broker.actors.grant import read_client
from broker.core.agent import AgentRow, is_over
from broker.core.client import ClientRow, described, fault, wrong_client_url
from broker.store.stored import stored
from broker.tools.context import Context
from broker.wire.refusals import Refusal


async def client_of(
    context: Context, client_id: str, document: dict[str, Any] | None = None
) -> ClientRow | Refusal:
    """The client of an id: one that registered, or the one that its document describes."""
    unknown = fault("invalid_client", "there is no such client")
    if client_id.startswith("https://"):
        wrong = wrong_client_url(client_id)
        if wrong is not None or document is None:
            return unknown if wrong is None else fault("invalid_client", wrong)
        if document.get("client_id") != client_id or "client_name" not in document:
            return fault("invalid_client_metadata", "the client's document is not about this client_id")
        row = described(client_id, document, default="none")
        if isinstance(row, ClientRow) and row.method != "none":
            return fault("invalid_client_metadata", "a client with a document has no secret")
        return row
    if not client_id.startswith("cl_"):
        return unknown
    found = await context.services.store.get("client", client_id)
    return unknown if found is None else read_client(found)


async def agent_of(context: Context, agent_id: str, owner_id: str | None = None) -> AgentRow | None:
    """An agent that lives (and, where `owner_id` is given, is this owner's)."""
    services = context.services
    document = await services.store.get("agent", agent_id)
    row = stored(AgentRow, document.doc, "agent", agent_id) if document is not None else None
    if row is None or is_over(row, services.clock.now_ms()):
        return None
    return row if owner_id is None or row.owner_id == owner_id else None


def random_text(context: Context, size: int = 32) -> str:
    """So many bytes of chance, base64url."""
    return base64.urlsafe_b64encode(context.services.entropy(size)).rstrip(b"=").decode()
