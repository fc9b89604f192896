"""`GET /artifact/<ref>`: the exact bytes of a published artifact, for whoever has its ref (arena.md, Artifacts).

1. The bytes never change, and their hash is their name: a cache may keep them for ever, and the ETag is the ref.
2. They hold words of players. Nobody's browser is to take them for a page.
3. A refusal is that of the other plain doors, and no cache keeps it.
"""

from collections.abc import Sequence
from typing import Final

from quart import Quart, Response, request

from broker.app import Broker
from broker.wire.refusals import Refusal
from gateways import plain, render
from gateways.caller import connect
from gateways.listen import Network

PATH: Final = "/artifact/<ref>"
HEADERS: Final = {
    "content-type": "application/json",
    "cache-control": "public, max-age=31536000, immutable",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
}
"""Of an artifact; a year is what `immutable` needs to mean anything to caches."""


def register(app: Quart, broker: Broker, *, proxies: Sequence[Network] = ()) -> None:
    """Add the route; HEAD is answered too. No header tells who asks: the ref is the right."""

    @app.get(PATH)
    async def artifact(ref: str) -> Response:
        try:
            content = await broker.artifact(connect(dict(request.scope), proxies), ref)
        except Exception as fault:
            return plain.answer(*render.http_fault(render.incident(fault, "GET /artifact")))
        if isinstance(content, Refusal):
            return plain.answer(*render.http(content))
        known = request.if_none_match.contains_weak(ref)
        response = Response(b"" if known else content, 304 if known else 200)
        if known:
            del response.headers["content-type"]
        response.headers.update({name: each for name, each in HEADERS.items() if not known or name in CACHED})
        response.set_etag(ref)
        return response


CACHED: Final = frozenset({"cache-control"})
"""What a 304 repeats, beside the ETag (RFC 9110, 15.4.5)."""
