"""Requests hidden in requests, answers hidden in answers, and other people's hosts: at the public port, whole."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from gateways.listen import Bounds
from gateways.metrics import Metrics
from gateways.oauth.metadata import Resources
from gateways.web import web_app
from gateways.websocket import ws_app
from gateways.wrappers import Origins
from tests.support.broker import Bench
from tests.support.network import Served, serving
from tests.support.peers import exchange

HIDDEN = (
    b"POST /v1/wire_info HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
)
"""What must not be answered: its answer names the wire."""
POST = b"POST /v1/presence HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
)
BOUNDS = Bounds(header_s=1, body_s=1, keep_alive_s=1, linger_s=0.2)


@pytest.fixture
async def whole(bench: Bench) -> AsyncIterator[Served]:
    """The public port of a real broker, on loopback, with all its doors."""
    shutdown = trio.Event()
    bench.broker.mcp_url = "http://127.0.0.1/mcp"
    app = web_app(
        bench.broker,
        Metrics(bench.broker),
        ws_app=ws_app(bench.broker, shutdown=shutdown, bounds=BOUNDS),
        origins=Origins(),
        bounds=BOUNDS,
        resources=Resources(issuer="https://id.example", origins=("http://localhost",)),
    )
    async with serving(app, bounds=BOUNDS) as server:
        yield server
        shutdown.set()


def heads(answer: bytes) -> list[int]:
    """The statuses of all that came back."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


TWO_LENGTHS = [
    b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\ncontent-length: %d\r\n\r\n0\r\n\r\n" % (len(HIDDEN) + 5),
    b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"content-length: 0\r\ncontent-length: %d\r\n\r\n" % len(HIDDEN),
    b"content-length: 0, 1\r\n\r\n",
    b"content-length: +0\r\n\r\n",
    b"content-length: 0x0\r\n\r\n",
    b"content-length: -1\r\n\r\n",
    b"content-length : 0\r\n\r\n",
    b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n-0\r\n\r\n",
    b"x: y\rcontent-length: 0\r\n\r\n",
    b"x: y\0\r\ncontent-length: 0\r\n\r\n",
]


@pytest.mark.requirement("threat.smuggling")
@pytest.mark.parametrize("rest", TWO_LENGTHS, ids=lambda rest: repr(rest[:60]))
async def test_what_follows_a_body_of_doubtful_length_is_never_answered(whole: Served, rest: bytes) -> None:
    answer = await exchange(whole.address, POST + rest + HIDDEN)
    assert b'"wire"' not in answer
    assert len(heads(answer)) == 1
    assert heads(answer)[0] in (400, 501)


@pytest.mark.requirement("threat.smuggling")
async def test_what_would_be_hidden_is_answered_where_it_is_not(whole: Served) -> None:
    answer = await exchange(whole.address, POST + b"content-length: 2\r\n\r\n{}" + HIDDEN)
    assert heads(answer) == [200, 200]
    assert b'"wire"' in answer


@pytest.mark.requirement("threat.smuggling")
@pytest.mark.parametrize(
    "data",
    [
        UPGRADE + b"content-length: %d\r\n\r\n" % len(HIDDEN),
        UPGRADE + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        UPGRADE + b"\r\n",
        UPGRADE.replace(b"version: 13", b"version: 12") + b"\r\n",
        UPGRADE.replace(b"/ws", b"/ws/x") + b"\r\n",
        UPGRADE.replace(b"GET", b"POST") + b"\r\n",
        UPGRADE.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n",
        UPGRADE.replace(b"websocket\r", b"h2c\r") + b"http2-settings: AAMAAABkAAQAAP__\r\n\r\n",
    ],
    ids=["length", "chunked", "at once", "version", "path", "method", "HTTP/1.0", "h2c"],
)
async def test_an_upgrade_hides_no_request(whole: Served, data: bytes) -> None:
    """Whatever follows an upgrade is a frame, or nothing: a connection that was taken is HTTP no more."""
    answer = await exchange(whole.address, data + HIDDEN)
    if b"/ws/x" in data:  # no WebSocket's path: it is a request as any other
        assert heads(answer) == [404, 200]
    else:
        assert b'"wire"' not in answer
        assert len(heads(answer)) == 1
        assert heads(answer)[0] != 101


@pytest.mark.requirement("threat.smuggling")
@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://localhost/v1/wire_info", b"evil.example", 400),
        (b"http://evil.example/v1/wire_info", b"localhost", 400),
        (b"http://localhost/v1/wire_info", b"localhost", 400),
        (b"x:/v1/wire_info", b"localhost", 400),
        (b"v1/wire_info", b"localhost", 400),
        (b"//evil.example/v1/wire_info", b"localhost", 404),
        (b"/v1/wire_info", b"localhost, evil.example", 421),
        (b"/v1/wire_info", b"localhost\r\nhost: evil.example", 400),
        (b"/v1/wire_info", b"localhost@evil.example", 421),
        (b"/v1/wire_info", b"localhost#.evil.example", 421),
        (b"/v1/wire_info", b"evil.example\r\nx-forwarded-host: localhost", 421),
        (b"/v1/wire_info", b"evil.example\r\nforwarded: host=localhost", 421),
        (b"/healthz/../v1/wire_info", b"evil.example", 421),
        (b"/healthz%2f..%2fv1/wire_info", b"evil.example", 421),
        (b"/v1/../healthz", b"evil.example", 421),
        (b"/v1/wire_info", b"", 421),
        (b"/v1/wire_info", b"127.0.0.1.nip.example", 421),
        (b"/v1/wire_info", b"0x7f000001", 421),
        (b"/v1/wire_info", b"2130706433", 421),
        (b"/v1/wire_info", b"LOCALHOST:1", 200),
    ],
)
async def test_no_spelling_of_a_target_or_a_host_is_anothers_way_in(
    whole: Served, target: bytes, host: bytes, status: int
) -> None:
    data = HIDDEN.replace(b"/v1/wire_info", target).replace(
        b"host: localhost", b"connection: close\r\nhost: " + host
    )
    answer = await exchange(whole.address, data)
    assert heads(answer) == [status]
    assert (b'"wire"' in answer) is (status == 200)


INJECTED = "%0d%0ainjected: yes%0d%0a%0d%0aHTTP/1.1 200 OK"


@pytest.mark.requirement("threat.splitting")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/{}", "/rings/{}", "/mcp/{}", "/{}", "/.well-known/oauth-protected-resource/mcp/{}",
        "/.well-known/oauth-protected-resource{}", "/ws{}", "/metrics?{}",
        "/rings/ALFA?after={}", "/rings/ALFA?auth={}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_nothing_of_a_request_becomes_a_header(whole: Served, path: str, method: str) -> None:
    target = path.format(INJECTED.replace(" ", "%20"))
    more = [
        "origin: http://localhost\tinjected: yes",
        "last-event-id: a\tinjected: yes",
        "mcp-session-id: a\tinjected: yes",
        "access-control-request-headers: x\tinjected: yes",
        "authorization: Turret %0d%0ainjected: yes",
    ]
    data = f"{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n"
    answer = await exchange(whole.address, (data + "\r\n".join(more) + "\r\n\r\n").encode())
    head, _, _ = answer.partition(b"\r\n\r\n")
    names = {line.partition(b":")[0].strip().lower() for line in head.split(b"\r\n")[1:]}
    assert b"injected" not in names
    assert b"location" not in names
    assert b"set-cookie" not in names
    assert len(heads(answer)) == 1


@pytest.mark.requirement("threat.splitting")
async def test_an_application_that_would_split_its_answer_is_answered_for() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"x", b"a\r\ninjected: yes")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with serving(app) as server:
        answer = await exchange(server.address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert b"injected" not in answer
    assert heads(answer) == [500]
