"""An agent's card (pure): who it is, where and how it is given tasks.

Source: A2A specification 1.0, 4.4 (AgentCard) and 8.6 (caching).
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from broker.wire.a2a import VERSION

PREFIX: Final = "/a2a/"
CARD: Final = "/.well-known/agent-card.json"
MODES: Final = ("text/plain", "application/json", "application/octet-stream")
"""What a message may be of, where its agent says no more: the broker reads none of it, and passes on every type."""
SCOPES: Final = {"task": "give tasks to agents, and look at them"}


class Place(msgspec.Struct, frozen=True):
    """Where the doors stand. `token_url`, `metadata_url`: of the sign-in that is ours, where it is."""

    url: str
    token_url: str | None = None
    metadata_url: str | None = None


def card(facts: Mapping[str, Any], place: Place) -> bytes:
    """The Agent Card of what `agent_card` tells, as JSON."""
    profile: Mapping[str, Any] = facts["profile"]
    own: str | None = facts["endpoint"]
    url = own or f"{place.url}{PREFIX}{profile['agent_id']}"
    made: dict[str, Any] = {
        "name": profile["name"],
        "description": profile["description"] or f"{profile['name']}, an agent of this network",
        "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": VERSION}],
        "capabilities": {},
        "defaultInputModes": list(MODES),
        "defaultOutputModes": list(MODES),
        "skills": [_skill(each) for each in profile["capabilities"]] or [_ANY],
    }
    if own is None:  # what an endpoint of the agent's own can do, and whom it asks for what, it says itself
        made["capabilities"] = {"streaming": True, "pushNotifications": True, "extendedAgentCard": False}
        made["securitySchemes"], made["securityRequirements"] = _security(place)
    return msgspec.json.encode(made)


def etag(text: bytes) -> str:
    """The name of this very card."""
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'


_ANY: Final = {
    "id": "tasks",
    "name": "Tasks",
    "description": "Takes tasks in words.",
    "tags": ["tasks"],
}


def _skill(tag: str) -> dict[str, Any]:
    return {"id": tag, "name": tag, "description": f"The agent says that it does: {tag}", "tags": [tag]}


def _security(place: Place) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A bearer token of the sign-in; where that is ours, how to get one."""
    schemes: dict[str, Any] = {
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}
    }
    required: list[dict[str, Any]] = [{"schemes": {"bearer": {"list": []}}}]
    if place.token_url is not None:
        flow = {"tokenUrl": place.token_url, "scopes": SCOPES}
        oauth: dict[str, Any] = {"flows": {"clientCredentials": flow}}
        if place.metadata_url is not None:
            oauth["oauth2MetadataUrl"] = place.metadata_url
        schemes["oauth2"] = {"oauth2SecurityScheme": oauth}
        required.insert(0, {"schemes": {"oauth2": {"list": list(SCOPES)}}})
    return schemes, required
