"""Every HTTP request has an id: ours, or that of a proxy that we know; the client, the log and the incident have it."""

import ipaddress
import logging
import re
from typing import Any

import pytest

from gateways import requestid
from gateways.identified import identified
from gateways.metrics import Metrics
from gateways.web import web_app
from tests.support.asgi import asked
from tests.support.broker_fake import FakeBroker
from tests.support.ws import open_port

PROXY = (ipaddress.ip_network("10.0.0.1/32"),)
OURS = re.compile("[0-9a-f]{16}")


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": requestid.current().encode(), "more_body": False})


@pytest.mark.requirement("observe.request-ids")
async def test_a_request_has_an_id_and_its_client_is_told_it() -> None:
    named = identified(app)
    first, second = await asked(named, "/"), await asked(named, "/")
    for answer in (first, second):
        assert OURS.fullmatch(answer.headers["x-request-id"])
        assert answer.body.decode() == answer.headers["x-request-id"]
    assert first.body != second.body
    assert requestid.current() == ""


@pytest.mark.requirement("observe.request-ids")
@pytest.mark.parametrize(
    ("client", "given", "taken"),
    [
        ("10.0.0.1", "edge-7f3a.0001", True),
        ("10.0.0.2", "edge-7f3a.0001", False),
        ("127.0.0.1", "edge-7f3a.0001", False),
        ("10.0.0.1", "short", False),
        ("10.0.0.1", "x" * 65, False),
        ("10.0.0.1", "edge 7f3a 0001", False),
        ("10.0.0.1", "edge-7f3a\u001b[31m", False),
        ("10.0.0.1", '","level":"info', False),
        ("10.0.0.1", "-edge-7f3a.0001", False),
    ],
)
async def test_only_a_proxy_of_ours_gives_an_id_and_only_in_the_form_of_one(
    client: str, given: str, taken: bool
) -> None:
    answer = await asked(identified(app, PROXY), "/", {"x-request-id": given}, client=client)
    assert (answer.body.decode() == given) is taken
    assert taken or OURS.fullmatch(answer.body.decode())


@pytest.mark.requirement("observe.request-ids")
async def test_an_incident_begins_with_the_id_of_its_request(caplog: pytest.LogCaptureFixture) -> None:
    broker = FakeBroker()
    broker.answers["echo"] = RuntimeError("planted")
    door = web_app(broker, Metrics(broker))  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        plain = await asked(door, "/v1/echo", {"content-type": "application/json"}, method="POST", body=b"{}")
    number = re.search(r'"incident":"([^"]+)"', plain.body.decode())
    assert number is not None
    assert number[1].startswith(plain.headers["x-request-id"] + "-")
    assert number[1] in caplog.text


@pytest.mark.requirement("observe.request-ids")
async def test_a_websocket_has_one_id_for_all_that_it_asks(caplog: pytest.LogCaptureFixture) -> None:
    broker = FakeBroker()
    seen: list[str] = []

    async def fail(*_: object) -> None:
        seen.append(requestid.current())
        raise RuntimeError("planted")

    broker.answers["echo"] = fail
    async with open_port(broker, sockets=True) as port:  # what comes is taken by nobody's task in particular
        client, other = await port.dial(), await port.dial()
        for each in (client, client, other):
            number = (await each.ask("echo"))["error"]["data"]["incident"]
            assert number.startswith(f"{seen[-1]}-")
    assert OURS.fullmatch(seen[0])
    assert seen[0] == seen[1] != seen[2]
