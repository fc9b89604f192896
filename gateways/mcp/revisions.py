"""The ladder's table: which revision has which method, what each asks for, and what each code's status is.

1. A revision is data. To serve a new one, add its name and its rows.
2. What is not in the table is refused: an unknown method is -32601, an unknown revision -32022.
3. Pure: no socket, no clock, no broker.

Source: the MCP specification, revisions 2025-03-26, 2025-06-18, 2025-11-25 (the handshake era) and 2026-07-28
(the era without a handshake: each request carries its revision and its capabilities in `_meta`).
"""

from typing import Any, Final, Literal

import msgspec

from gateways import jsonrpc

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Newest first: a client that asks for one that we don't have gets the first."""
SUPPORTED: Final = (MODERN, *LEGACY)
"""Told by server/discover and by -32022; clients of both eras pick theirs out of it."""
BARE: Final = "2025-03-26"
"""The revision of a request that names none (2025-06-18, Protocol Version Header)."""

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

HEADER_MISMATCH: Final = -32020
CAPABILITY_MISSING: Final = -32021
"""The client did not declare what its request needs; data.requiredCapabilities says what."""
UNSUPPORTED_REVISION: Final = -32022
RESOURCE_MISSING: Final = -32002
"""The handshake era's; 2026-07-28 forbids it and says -32602 with data.uri."""
SESSION_UNKNOWN: Final = -32001
"""Ours, as the TypeScript SDK has it; travels with HTTP 404."""
CANCELLED: Final = -32800
"""Ends the exchange of a cancelled request (as in LSP and the Python SDK), so that its POST does not hang."""

STATUS: Final[dict[int, int]] = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    CAPABILITY_MISSING: 400,
    UNSUPPORTED_REVISION: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
}
"""2026-07-28: the HTTP status of an error's code; what is not here travels with 200."""


LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""RFC 5424, from the least to the most severe."""


class Fault(msgspec.Struct, frozen=True):
    """A JSON-RPC error to be: the protocol's own "no", never a refusal of the broker."""

    code: int
    message: str
    data: Any = None


class Hints(msgspec.Struct, frozen=True):
    """Cache hints of 2026-07-28. `ttl_ms` 0: ask again each time."""

    ttl_ms: int
    scope: Literal["public", "private"]


LISTS: Final = Hints(300_000, "public")
"""Lists change with the broker's version alone, and are the same for everybody."""
READS: Final = Hints(0, "private")
"""A transcript grows, and may be its parties' alone."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One method. `named_by`: the param that Mcp-Name repeats. `hints`: the result may be cached.

    `streams`: its answer is an event stream and never JSON, so that the client must accept one.
    `asks`: what answers it may need more from the client first (Needs).
    """

    revisions: tuple[str, ...] = SUPPORTED
    named_by: str | None = None
    hints: Hints | None = None
    streams: bool = False
    asks: bool = False


METHODS: Final[dict[str, Row]] = {
    "initialize": Row(revisions=LEGACY),
    "ping": Row(revisions=LEGACY),
    "server/discover": Row(revisions=(MODERN,), hints=LISTS),
    "tools/list": Row(hints=LISTS),
    "tools/call": Row(named_by="name", asks=True),
    "resources/list": Row(hints=LISTS),
    "resources/templates/list": Row(hints=LISTS),
    "resources/read": Row(named_by="uri", hints=READS, asks=True),
    "resources/subscribe": Row(revisions=LEGACY),
    "resources/unsubscribe": Row(revisions=LEGACY),
    "subscriptions/listen": Row(revisions=(MODERN,), streams=True),
    "prompts/list": Row(hints=LISTS),
    "prompts/get": Row(named_by="name", asks=True),
    "logging/setLevel": Row(revisions=LEGACY),
    "completion/complete": Row(),
}


def row_of(method: str, revision: str) -> Row | Fault:
    """The method's row, or -32601 where this revision has no such method."""
    row = METHODS.get(method)
    if row is None or revision not in row.revisions:
        return Fault(jsonrpc.METHOD_NOT_FOUND, f"method not found in {revision}: {method[:64]}")
    return row


def unsupported(requested: str) -> Fault:
    """-32022, with what is supported, so that the client can choose."""
    data = {"supported": list(SUPPORTED), "requested": requested}
    return Fault(UNSUPPORTED_REVISION, "unsupported protocol version", data)


def status_of(code: int, revision: str) -> int:
    """The HTTP status that an error travels with. In the handshake era an answered request is a 200."""
    return STATUS.get(code, 200) if revision == MODERN else 200
