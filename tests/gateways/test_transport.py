"""Browsers are told to come by TLS where there is TLS, and nowhere else."""

from typing import Any

import pytest

from gateways.metrics import Metrics
from gateways.transport import strict_transport
from gateways.web import web_app
from gateways.wrappers import Origins
from tests.support.asgi import asked
from tests.support.broker_fake import FakeBroker

PUBLIC = "https://turret.example"


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.mark.requirement("observe.hsts")
@pytest.mark.parametrize(
    ("public", "scheme", "host", "said"),
    [
        (PUBLIC, "http", "turret.example", True),
        (PUBLIC, "http", "turret.example:443", True),
        (None, "https", "desk.example", True),
        ("HTTPS://turret.example", "http", "turret.example", True),
        (None, "http", "turret.example", False),
        ("http://turret.example", "http", "turret.example", False),
        (PUBLIC, "https", "localhost:8766", False),
        (PUBLIC, "https", "LOCALHOST.", False),
        (PUBLIC, "https", "127.0.0.1:8766", False),
        (PUBLIC, "https", "[::1]:8766", False),
        (PUBLIC, "https", "203.0.113.9", False),
    ],
)
async def test_strict_transport_is_said_of_a_name_that_is_reached_by_tls(
    public: str | None, scheme: str, host: str, said: bool
) -> None:
    answer = await asked(strict_transport(app, public), "/", {"host": host}, scheme=scheme)
    assert answer.headers.get("strict-transport-security") == ("max-age=31536000" if said else None)


@pytest.mark.requirement("observe.hsts")
@pytest.mark.parametrize("path", ["/owner", "/healthz", "/mcp", "/nowhere"])
async def test_every_answer_of_the_public_port_says_it(path: str) -> None:
    broker = FakeBroker()
    door = web_app(broker, Metrics(broker), origins=Origins(public_url=PUBLIC))  # type: ignore[arg-type]
    answer = await asked(door, path, {"host": "turret.example"})
    assert "strict-transport-security" in answer.headers
    foreign = await asked(door, "/owner", {"host": "elsewhere.example"})
    assert foreign.status == 421
