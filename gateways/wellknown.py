"""What is read without a tool: the wire's document, health, readiness, the OpenAPI document, and the faces' documents
for clients that need a token (RFC 9728)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from quart import Quart, Response, request

from broker.app import Broker
from broker.wire.refusals import refuse
from gateways import descriptors, openapi, render
from gateways.oauth.metadata import WELL_KNOWN, Resources

JSON: Final = "application/json; charset=utf-8"
DOORS: Final = {
    "name": "turret",
    "info": "/.well-known/turret.json",
    "openapi": "/openapi.json",
    "mcp": "/mcp",
    "tools": "/v1/<tool>",
    "websocket": "/ws",
    "artifacts": "/artifact/<ref>",
    "reports": "/artifact/<ref>/report",
    "owners": "/owner",
}
"""What `/` says to a program: where to read the wire's document, and where the doors are."""
SHARED: Final = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers": "*",
    "access-control-max-age": "600",
}


def register(app: Quart, broker: Broker, public_url: str | None = None) -> None:
    """Add the routes. None of them is ever stored by a cache."""
    info = broker.wire_info()
    described = msgspec.json.encode(
        openapi.document(broker.tools.values(), str(info.get("version", "")), public_url)
    )

    register_probes(app, broker)

    @app.get("/")
    async def root() -> Response:
        """For who knows nothing but the address: a browser goes to owners' pages, a program reads where to begin."""
        if _reads_pages(request.headers.getlist("accept")):
            response = _response(b"", 303)
            response.headers["location"] = "/owner"
        else:
            response = _json(DOORS)
        response.headers["vary"] = "Accept"
        return response

    @app.get("/.well-known/turret.json")
    async def turret() -> Response:
        return _json(broker.wire_info())

    @app.get("/openapi.json")
    async def described_api() -> Response:
        return _response(described, 200)


def register_probes(app: Quart, broker: Broker) -> None:
    """Add /healthz and /readyz."""

    @app.get("/healthz")
    async def healthz() -> Response:
        """The process lives and its loop turns; says nothing of the store."""
        return _json({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> Response:
        """503 with the reasons while a load balancer should send no new work."""
        reasons = broker.readiness() + ([] if descriptors.are_left() else [descriptors.NONE_LEFT])
        return _json({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)


def register_resources(app: Quart, resources: Resources) -> None:
    """Add the documents of the faces as protected resources, for any web page too: they hold no secret."""

    @app.route(WELL_KNOWN, methods=["GET", "OPTIONS"])
    @app.route(f"{WELL_KNOWN}/<path:place>", methods=["GET", "OPTIONS"])
    async def resource(place: str = "") -> Response:
        document = resources.document(request.path, request.headers.get("host"))
        if request.method == "OPTIONS":
            response = Response(b"", 204)
        elif document is None:
            status, _, body = render.http(refuse("not_found", "there is no such resource"))
            response = _response(body, status)
        else:
            response = _json(document)
        response.headers.update(SHARED)
        return response


def register_shared(app: Quart, documents: Mapping[str, Callable[[], Any]]) -> None:
    """Add documents that any web page may read: path → what stands there now."""
    for path, document in documents.items():

        async def shown(document: Callable[[], Any] = document) -> Response:
            response = Response(b"", 204) if request.method == "OPTIONS" else _json(document())
            response.headers.update(SHARED)
            return response

        app.add_url_rule(path, path, shown, methods=["GET", "OPTIONS"])


def _reads_pages(accept: Sequence[str]) -> bool:
    """Whether a client asks for a page: a browser names text/html, a program takes anything or JSON."""
    named = [each.partition(";")[0].strip().lower() for each in ",".join(accept).split(",")]
    return "text/html" in named or "application/xhtml+xml" in named


def _json(value: Any, status: int = 200) -> Response:
    return _response(msgspec.json.encode(value), status)


def _response(body: bytes, status: int) -> Response:
    response = Response(body, status)
    response.headers["content-type"] = JSON
    response.headers["cache-control"] = "no-store"
    return response
