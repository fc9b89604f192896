"""The catalog of tapes: kestrel://catalog, kestrel://catalog/<index>, kestrel://catalog-pricing (trial.md, Catalog).

What is read is what the broker's verb gives: for a token with the scope `trial`, the object itself, as JSON.
"""

import re
from typing import Any, Final, Literal, Protocol

import msgspec

from broker.app import Caller
from broker.wire.refusals import Refusal
from gateways.mcp.surface import Ask

CATALOG: Final = "kestrel://catalog"
PRICING: Final = "kestrel://catalog-pricing"
RESOURCES: Final[list[dict[str, Any]]] = [
    {
        "uri": CATALOG,
        "name": "catalog",
        "title": "Catalog of tapes",
        "description": "The tapes on which a plan can be tried: of each its index, instrument, ticks, ref, licence and "
        "price. For a token with the scope trial.",
        "mimeType": "application/json",
    },
    {
        "uri": PRICING,
        "name": "catalog-pricing",
        "title": "What trials cost",
        "description": "The price block of the catalog, before anything is opened. For a token with the scope trial.",
        "mimeType": "application/json",
    },
]
TEMPLATES: Final[list[dict[str, Any]]] = [
    {
        "uriTemplate": "kestrel://catalog/{index}",
        "name": "catalog-entry",
        "title": "A tape of the catalog",
        "description": "One entry of the catalog by its index, which kestrel.session.open takes as `entry`. For a "
        "token with the scope trial.",
        "mimeType": "application/json",
    },
]
_ENTRY: Final = re.compile(r"kestrel://catalog/(0|[1-9][0-9]{0,8})")


class Shelf(Protocol):
    """The broker's verb for the catalog."""

    async def catalog(self, caller: Caller, which: Literal["all", "pricing"] | int) -> Any: ...


async def read_catalog(broker: Shelf, ask: Ask, uri: str) -> bytes | Refusal | None:
    """What stands at an address of the catalog, as JSON text, or why not; None: it is no such address."""
    which: Literal["all", "pricing"] | int
    if uri == CATALOG:
        which = "all"
    elif uri == PRICING:
        which = "pricing"
    elif (found := _ENTRY.fullmatch(uri)) is not None:
        which = int(found[1])
    else:
        return None
    answer = await broker.catalog(ask.caller, which)
    return answer if isinstance(answer, Refusal) else msgspec.json.encode(answer)
