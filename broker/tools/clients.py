"""Whose an OAuth client's id is: looked up for the verbs of the sign-in."""

from typing import Any

from broker.actors.grant import read_client
from broker.core.client import ClientRow, described, wrong_client_url
from broker.tools.context import Context
from broker.wire.refusals import Refusal, refuse_oauth


async def client_of(
    context: Context, client_id: str, document: dict[str, Any] | None = None
) -> ClientRow | Refusal:
    """The client of an id: one that registered, or the one that its document describes."""
    unknown = refuse_oauth("invalid_client", "there is no such client")
    if client_id.startswith("https://"):
        wrong = wrong_client_url(client_id)
        if wrong is not None or document is None:
            return unknown if wrong is None else refuse_oauth("invalid_client", wrong)
        if document.get("client_id") != client_id or "client_name" not in document:
            return refuse_oauth(
                "invalid_client_metadata", "the client's document is not about this client_id"
            )
        row = described(client_id, document, default="none")
        if isinstance(row, ClientRow) and row.method != "none":
            return refuse_oauth("invalid_client_metadata", "a client with a document has no secret")
        return row
    if not client_id.startswith("cl_"):
        return unknown
    found = await context.services.store.get("client", client_id)
    return unknown if found is None else read_client(found)
