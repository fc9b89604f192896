"""The public port as one application: where each path goes, and what stands before them all."""

import random
from collections.abc import AsyncIterator

import httpx
import pytest

from broker.config import Limits, Settings
from gateways.cycle import TAKE
from gateways.listen import Bounds, Receive, Scope, Send
from gateways.metrics import Metrics
from gateways.web import quart_app, web_app
from gateways.wrappers import Origins
from tests.support.broker_fake import FakeBroker
from tests.support.network import Served, serving
from tests.support.peers import dial, exchange, read_all, read_until

UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: %s\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)


class Mcp:
    """Stands in for the MCP door: answers with the path and how the body came."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, message = 0, await receive()
        while message["type"] == "http.request":
            size += len(message["body"])
            if not message["more_body"]:
                break
            message = await receive()
        text = f"{scope['path']} {message['type']} {size}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text, "more_body": False})


async def take(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands in for the WebSocket door: has the connection to itself."""
    stream, read = scope["extensions"][TAKE]()
    await stream.send_all(b"taken " + read)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    broker = FakeBroker(Settings(limits=Limits(frame_bytes=1000)))
    app = web_app(
        broker,  # type: ignore[arg-type]
        Metrics(broker),  # type: ignore[arg-type]
        mcp_app=Mcp(),
        ws_app=take,
        origins=Origins(public_url="https://turret.example"),
        bounds=Bounds(body_s=1),
    )
    async with serving(app, bounds=Bounds(body_s=1, linger_s=0.2)) as server:
        yield server


@pytest.mark.requirement("http.one-port")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/wire", "/mcp/wire/"])
async def test_mcp_and_its_faces_go_to_its_application_which_reads_its_own_bodies(
    served: Served, path: str
) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(served.url + path, content=b"x" * 5000)
        assert answer.text == f"{path} http.request 5000"


async def test_what_only_begins_like_mcp_does_not_go_there(served: Served) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.post(f"{served.url}/mcpx", content=b"")).status_code == 404


async def test_without_an_mcp_door_its_path_is_not_found() -> None:
    broker = FakeBroker()
    async with serving(web_app(broker, Metrics(broker))) as server, httpx.AsyncClient() as client:  # type: ignore[arg-type]
        answer = await client.post(f"{server.url}/mcp", json={})
        assert (answer.status_code, answer.json()["refusal"]["code"]) == (404, "not_found")


async def test_a_body_for_mcp_that_does_not_come_in_time_counts_as_a_client_that_left(served: Served) -> None:
    head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\nconnection: close\r\n\r\nabc"
    assert b"http.disconnect 3" in await exchange(served.address, head)


@pytest.mark.requirement("http.slow-body")
async def test_a_body_for_a_plain_door_that_does_not_come_in_time_is_told_so_in_json(served: Served) -> None:
    head = b"POST /v1/echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\nconnection: close\r\n\r\nabc"
    answer = await exchange(served.address, head)
    assert answer.startswith(b"HTTP/1.1 408")
    assert answer.endswith(b'{"error":"timeout"}')


async def test_the_websocket_door_has_its_connections_to_itself_behind_the_same_checks(
    served: Served,
) -> None:
    early = UPGRADE % b"localhost" + b"early"
    assert await exchange(served.address, early) == b"taken " + early
    for request, status in (
        (UPGRADE % b"evil.example", b"421"),
        (UPGRADE.replace(b"upgrade\r\n", b"upgrade\r\norigin: null\r\n", 1) % b"localhost", b"403"),
        (UPGRADE.replace(b"/ws", b"/nothing") % b"localhost", b"404"),
    ):
        async with dial(served.address) as stream:
            await stream.send_all(request)
            assert (await read_until(stream, b"\r\n\r\n"))[9:12] == status


@pytest.mark.parametrize("host", ["localhost", "turret.example", "evil.example"])
@pytest.mark.parametrize("path", ["/v1/echo", "/mcp", "/rings/ALFA", "/metrics", "/openapi.json"])
async def test_every_door_is_behind_the_host_check(served: Served, host: str, path: str) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(served.url + path, json={}, headers={"host": host})
        assert (answer.status_code == 421) == (host == "evil.example")


async def test_plain_doors_are_behind_the_body_limit(served: Served) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{served.url}/v1/echo", json={"x": "x" * 2000})
        assert (answer.status_code, answer.json()["refusal"]["limit"]) == (413, 1000)


@pytest.mark.parametrize(
    "path", ["//v1//echo", "/v1/../metrics", "/%2e%2e/x", "/static/x", "//x", "/%ff", "/v1/%0a"]
)
async def test_odd_paths_are_plain_refusals_without_a_redirect(served: Served, path: str) -> None:
    answer = await exchange(
        served.address, f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
    )
    assert answer[9:12] in (b"404", b"405")
    assert b'{"refusal":' in answer


@pytest.mark.parametrize(
    "target",
    ["*", "localhost:80", "http://localhost/healthz", "http://evil.example/healthz", "http://[::1/x", "?x"],
)
async def test_targets_of_other_forms_end_nothing(served: Served, target: str) -> None:
    for method in ("GET", "OPTIONS", "CONNECT"):
        request = f"{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        assert (await exchange(served.address, request.encode())).startswith(b"HTTP/1.1 ")


SEEDS = [
    b'POST /v1/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}',
    b"GET /rings/ALFA?after=0&auth=YQ.b HTTP/1.1\r\nhost: localhost\r\nlast-event-id: a.b.1\r\n\r\n",
    b"GET /readyz HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost:1\r\nconnection: close\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    UPGRADE % b"localhost",
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\0",
    b"\xff",
    b" ",
    b":",
    b"%",
    b"%00",
    b"?",
    b"//",
    b"chunked",
    b"9" * 30,
    b"-1",
    b"HTTP/2.0",
    b"",
]


@pytest.mark.requirement("http.one-connection-one-fault")
async def test_mutated_requests_are_answered_or_closed_and_leave_no_incident(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(20)
    for _ in range(300):
        data = bytearray(chance.choice(SEEDS))
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(data))
            data[place : place + chance.randrange(6)] = chance.choice(PIECES)
        async with dial(served.address) as stream:
            await stream.send_all(bytes(data))
            await stream.send_eof()
            await read_all(stream)
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{served.url}/healthz")).status_code == 200
    assert [record for record in caplog.records if "incident" in record.getMessage()] == []


async def test_a_fault_in_a_route_is_an_incident(caplog: pytest.LogCaptureFixture) -> None:
    app = quart_app()

    @app.get("/raise")
    async def failing() -> None:
        raise RuntimeError("a secret")

    async with serving(app) as server, httpx.AsyncClient() as client:  # type: ignore[arg-type]
        answer = await client.get(f"{server.url}/raise")
        assert (answer.status_code, set(answer.json())) == (500, {"error", "incident"})
        assert answer.json()["incident"] in caplog.text


@pytest.mark.requirement("http.host-is-a-name")
@pytest.mark.parametrize("host", ["x" * 64, "a..b", ".a", "a." + "y" * 70 + ".b", "\xe9.example"])
@pytest.mark.parametrize("path", ["/healthz", "/v1/wire_info"])
async def test_a_host_that_is_no_name_is_refused_before_any_reader_chokes_on_it(
    served: Served, host: str, path: str
) -> None:
    head = f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    assert (await exchange(served.address, head.encode("latin-1")))[9:12] == b"421"
