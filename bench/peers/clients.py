"""Which client speaks to which peer. Loaded by name: some need packages that others do without."""

import importlib
from typing import Final

from bench.peers.side import Client

CLIENTS: Final = {
    "turret": "turret_side:CLIENT",
    "turret-mcp": "mcp_side:TURRET",
    "sdk": "mcp_side:SDK",
    "nats": "nats_side:CLIENT",
    "starlette": "starlette_side:CLIENT",
    "nostr": "nostr_side:CLIENT",
}


def load_client(name: str) -> Client:
    """The client of a peer. Raises KeyError, ImportError."""
    module, attribute = CLIENTS[name].split(":")
    found: Client = getattr(importlib.import_module(f"bench.peers.{module}"), attribute)
    return found
