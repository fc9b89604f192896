"""What is read without a tool: the wire's document, health, readiness, the OpenAPI document."""

from typing import Any, Final

import msgspec
from quart import Quart, Response

from broker.app import Broker
from gateways import openapi

JSON: Final = "application/json; charset=utf-8"


def register(app: Quart, broker: Broker, public_url: str | None = None) -> None:
    """Add the routes. None of them is ever stored by a cache."""
    info = broker.wire_info()
    described = msgspec.json.encode(
        openapi.document(broker.tools.values(), str(info.get("version", "")), public_url)
    )

    @app.get("/.well-known/turret.json")
    async def turret() -> Response:
        return _json(broker.wire_info())

    @app.get("/healthz")
    async def healthz() -> Response:
        """The process lives and its loop turns; says nothing of the store."""
        return _json({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> Response:
        """503 with the reasons while a load balancer should send no new work."""
        reasons = broker.readiness()
        return _json({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    @app.get("/openapi.json")
    async def described_api() -> Response:
        return _response(described, 200)


def _json(value: Any, status: int = 200) -> Response:
    return _response(msgspec.json.encode(value), status)


def _response(body: bytes, status: int) -> Response:
    response = Response(body, status)
    response.headers["content-type"] = JSON
    response.headers["cache-control"] = "no-store"
    return response
