"""An artifact, fetched from any broker that has it: its ref says whether the bytes are the right ones.

1. Nothing of what was fetched is given on before its hash was compared: who serves it need not be trusted.
2. A broker that sends more than any artifact has is left.
"""

import hashlib
import ssl
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx
import msgspec

from broker.wire.ids import REF
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.mcp_link import http_client
from gateways.client.pins import address
from gateways.client.reasons import reason_of
from gateways.client.socket import read_refusal

SCHEME: Final = "kestrel://artifact/"
MAX_BYTES: Final = 4 * 1024 * 1024
"""The largest artifact that brokers give out (arena.md, Artifacts)."""


def read_ref(text: str) -> str:
    """The ref in a ref or in an artifact's address. Raises ValueError where it is neither."""
    ref = text.removeprefix(SCHEME)
    if not REF.fullmatch(ref):
        raise ValueError(f"an artifact's ref is 64 lowercase hex characters, alone or behind {SCHEME}")
    return ref


async def fetch_artifact(
    url: str,
    ref: str,
    *,
    ssl_context: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> bytes:
    """The bytes whose SHA-256 is `ref`, from the broker at `url` (its public port, whatever the path and scheme).

    Raises Refused (NOT_FOUND, unavailable, rate_limited …), Disconnected where the broker can't be asked, WireFault
    where it sends other bytes, ValueError for a URL or ref that is none. Cancelling is safe: it only reads.
    """
    address(url)
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    where = f"{scheme}://{parts.netloc}/artifact/{read_ref(ref)}"
    try:
        async with (
            http_client(url, ssl_context, transport) as client,
            client.stream("GET", where) as answer,
        ):
            content = await _read(answer)
    except httpx.HTTPError as fault:
        raise Disconnected(f"cannot read {where}: {reason_of(fault)}") from None
    if answer.status_code != 200:
        raise _no_artifact(answer, content, parts.netloc)
    if hashlib.sha256(content).hexdigest() != ref:
        raise WireFault(f"{parts.netloc} sent other bytes than the ref names: nothing of them was kept")
    return content


async def _read(answer: httpx.Response) -> bytes:
    content = b""
    parts = cast(AsyncGenerator[bytes, None], answer.aiter_bytes())
    async with aclosing(parts) as pieces:  # one that was left is not left to the collector
        async for piece in pieces:
            content += piece
            if len(content) > MAX_BYTES:
                raise WireFault(f"{answer.url} sends more than an artifact has")
    return content


def _no_artifact(answer: httpx.Response, content: bytes, place: str) -> Exception:
    """What an answer without an artifact means."""
    try:
        body: Any = msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError):
        body = None
    refusal = read_refusal(body.get("refusal")) if isinstance(body, dict) else None
    if refusal is not None:
        return Refused(refusal)
    return Disconnected(
        f"{place} has no artifacts (HTTP {answer.status_code}): is that a broker's public port?"
    )
