"""What stands before every route: Host and Origin, CORS, bodies, contained faults."""

import logging
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
import trio

from gateways.listen import App, Bounds, Message, Receive, Scope, Send
from gateways.wrappers import Origins, check_origin, contain, limit_body
from tests.support.network import Served, serving
from tests.support.peers import dial, exchange, read_all

LIMIT = 1000
BOUNDS = Bounds(body_s=5, linger_s=0.5)
ORIGINS = Origins(
    public_url="https://turret.example/base", allowed=("https://desk.example:8443", "http://a.example")
)


class Echo:
    """Answers with how many bytes it got; counts what reached it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        if scope["path"] == "/raise":
            raise RuntimeError("a secret")
        body = (await receive())["body"]
        if scope["path"] == "/left":
            self.paths.append((await receive())["type"])
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % len(body), "more_body": False})


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def served(echo: Echo) -> AsyncIterator[Served]:
    async with serving(contain(check_origin(limit_body(echo, LIMIT, BOUNDS), ORIGINS, BOUNDS))) as server:
        yield server


async def ask(app: App, scope: Scope) -> list[Message]:
    """What an application sends for a request without a body, with no server between."""
    sent: list[Message] = []

    async def receive() -> Message:
        await trio.lowlevel.checkpoint()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    await app(scope, receive, send)
    return sent


def scope(
    host: str | None,
    origin: str | None,
    *,
    server: str = "127.0.0.1",
    path: str = "/v1/x",
    method: str = "POST",
) -> Scope:
    headers = [(b"host", host.encode("latin-1"))] if host is not None else []
    if origin is not None:
        headers.append((b"origin", origin.encode("latin-1")))
    return {
        "type": "http",
        "method": method,
        "path": path,
        "headers": headers,
        "server": (server, 8000),
        "client": ("127.0.0.1", 1),
    }


HOSTS = [
    # host, origin, server address, status
    ("localhost:8000", None, "127.0.0.1", 200),
    ("LOCALHOST", None, "127.0.0.1", 200),
    ("127.0.0.1:1", None, "127.0.0.1", 200),
    ("[::1]:8000", None, "::1", 200),
    ("[::1]", None, "::1", 200),
    ("turret.example", None, "127.0.0.1", 200),
    ("turret.example:443", None, "10.0.0.1", 200),
    ("evil.example", None, "127.0.0.1", 421),
    ("localhost.evil.example", None, "127.0.0.1", 421),
    ("localhost:8000.evil.example", None, "127.0.0.1", 421),
    ("localhost:8000@evil.example", None, "127.0.0.1", 421),
    ("evil.example/localhost", None, "127.0.0.1", 421),
    ("evil.example#localhost", None, "127.0.0.1", 421),
    ("localhost:99999", None, "127.0.0.1", 421),
    ("localhost:", None, "127.0.0.1", 200),
    ("localhost:a", None, "127.0.0.1", 421),
    ("127.0.0.1.nip.example", None, "127.0.0.1", 421),
    ("turret.example.evil.example", None, "127.0.0.1", 421),
    ("2130706433", None, "127.0.0.1", 421),
    ("[::1", None, "127.0.0.1", 421),
    ("", None, "127.0.0.1", 421),
    (None, None, "127.0.0.1", 421),
    ("localhost", None, "10.0.0.1", 421),
    ("10.0.0.1:8000", None, "10.0.0.1", 200),
    ("10.0.0.2:8000", None, "10.0.0.1", 421),
    ("[2001:db8::1]", None, "2001:db8::1", 200),
    ("127.0.0.2", None, "127.0.0.1", 421),
    ("localhost:8000", "http://localhost:8000", "127.0.0.1", 200),
    ("localhost:8000", "http://127.0.0.1:3000", "127.0.0.1", 200),
    ("127.0.0.1:8000", "http://[::1]:3000", "127.0.0.1", 200),
    ("localhost:8000", "https://turret.example", "127.0.0.1", 200),
    ("localhost:8000", "https://desk.example:8443", "127.0.0.1", 200),
    ("localhost:8000", "http://a.example", "127.0.0.1", 200),
    ("localhost:8000", "http://a.example:80", "127.0.0.1", 200),
    ("localhost:8000", "https://a.example", "127.0.0.1", 403),
    ("localhost:8000", "https://desk.example", "127.0.0.1", 403),
    ("localhost:8000", "https://desk.example:8443.evil.example", "127.0.0.1", 403),
    ("localhost:8000", "http://a.example.evil.example", "127.0.0.1", 403),
    ("localhost:8000", "http://evil.example", "127.0.0.1", 403),
    ("localhost:8000", "null", "127.0.0.1", 403),
    ("localhost:8000", "", "127.0.0.1", 403),
    ("localhost:8000", "localhost:8000", "127.0.0.1", 403),
    ("localhost:8000", "file://", "127.0.0.1", 403),
    ("localhost:8000", "http://localhost.evil.example", "127.0.0.1", 403),
    ("localhost:8000", "http://localhost:x", "127.0.0.1", 403),
    ("localhost:8000", "http://localhost@evil.example", "127.0.0.1", 403),
    ("evil.example", "http://evil.example", "127.0.0.1", 421),
    ("turret.example", "https://turret.example", "10.0.0.1", 200),
    ("turret.example:444", "https://turret.example:444", "10.0.0.1", 200),
    ("turret.example", "https://turret.example:444", "10.0.0.1", 403),
    ("turret.example", "http://localhost:3000", "127.0.0.1", 403),
]


@pytest.mark.requirement("http.host-and-origin")
@pytest.mark.parametrize(("host", "origin", "server", "status"), HOSTS)
async def test_host_and_origin_are_parsed_and_compared_whole(
    echo: Echo, host: str | None, origin: str | None, server: str, status: int
) -> None:
    sent = await ask(check_origin(echo, ORIGINS, BOUNDS), scope(host, origin, server=server))
    assert sent[0]["status"] == status
    assert bool(echo.paths) == (status == 200)


async def test_two_hosts_or_two_origins_are_refused(echo: Echo) -> None:
    app = check_origin(echo, ORIGINS, BOUNDS)
    twice = scope("localhost", "http://localhost")
    assert (await ask(app, {**twice, "headers": twice["headers"] + [(b"host", b"localhost")]}))[0][
        "status"
    ] == 421
    more = [(b"origin", b"http://localhost")]
    assert (await ask(app, {**twice, "headers": twice["headers"] + more}))[0]["status"] == 403


async def test_a_bind_with_unknown_names_takes_any_host_but_not_on_loopback(echo: Echo) -> None:
    app = check_origin(echo, Origins(), BOUNDS)
    assert (await ask(app, scope("desk.example", None, server="10.0.0.1")))[0]["status"] == 200
    assert (await ask(app, scope("desk.example", "https://evil.example", server="10.0.0.1")))[0][
        "status"
    ] == 403
    assert (await ask(app, scope("desk.example", None)))[0]["status"] == 421


async def test_probes_are_answered_for_any_host(echo: Echo) -> None:
    app = check_origin(echo, ORIGINS, BOUNDS)
    assert (await ask(app, scope("10.0.0.1:8000", None, path="/healthz", method="GET")))[0]["status"] == 200
    assert (await ask(app, scope("10.0.0.1:8000", None, path="/healthz/x", method="GET")))[0]["status"] == 421


@pytest.mark.requirement("http.cors")
async def test_a_preflight_is_answered_before_everything_else(echo: Echo, served: Served) -> None:
    async with httpx.AsyncClient() as client:
        headers = {
            "Origin": "https://desk.example:8443",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type",
            "Authorization": "Bearer nonsense",
        }
        answer = await client.options(f"{served.url}/mcp", headers=headers)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == "https://desk.example:8443"
        allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
        assert {
            "authorization",
            "content-type",
            "last-event-id",
            "mcp-session-id",
            "mcp-protocol-version",
        } <= {*allowed}
        assert "*" not in answer.headers["access-control-allow-origin"]
        assert echo.paths == []
        refused = await client.options(
            f"{served.url}/mcp", headers={**headers, "Origin": "http://evil.example"}
        )
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers


async def test_the_real_answer_carries_the_shared_headers_also_when_refused(served: Served) -> None:
    async with httpx.AsyncClient() as client:
        for body, status in ((b"x", 200), (b"x" * (LIMIT + 1), 413)):
            answer = await client.post(served.url, content=body, headers={"Origin": "http://a.example"})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == "http://a.example"
            assert "mcp-session-id" in answer.headers["access-control-expose-headers"].lower()
            assert answer.headers["vary"] == "Origin"
        plain = await client.post(served.url, content=b"x")
        assert "access-control-allow-origin" not in plain.headers


def refusal(answer: httpx.Response) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(answer.content)["refusal"]
    return found


@pytest.mark.requirement("http.body-limit")
async def test_a_body_of_the_limit_passes_and_one_more_byte_is_too_large(served: Served, echo: Echo) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.post(served.url, content=b"x" * LIMIT)).text == str(LIMIT)
        for _ in range(2):
            answer = await client.post(served.url, content=b"x" * (LIMIT + 1))
            assert answer.status_code == 413
            assert refusal(answer)["limit"] == LIMIT
            assert refusal(answer)["size"] == LIMIT + 1
    assert echo.paths == ["/"]


@pytest.mark.requirement("http.body-limit")
async def test_chunks_are_counted_where_no_length_is_declared(served: Served, echo: Echo) -> None:
    async def chunks(size: int) -> AsyncIterator[bytes]:
        for _ in range(size):
            yield b"x"

    async with httpx.AsyncClient() as client:
        assert (await client.post(served.url, content=chunks(LIMIT))).text == str(LIMIT)
        answer = await client.post(served.url, content=chunks(LIMIT + 1))
        assert answer.status_code == 413
    assert echo.paths == ["/"]


async def test_an_endless_body_is_answered_413_and_cut_off(served: Served) -> None:
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    sent = 0
    async with dial(served.address) as stream:
        await stream.send_all(head)
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:

                async def flood() -> None:
                    nonlocal sent
                    with pytest.raises(trio.BrokenResourceError):  # noqa: PT012
                        while sent < 1_000_000_000:
                            await stream.send_all(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
                            sent += 65_536

                nursery.start_soon(flood)
                answer = await read_all(stream)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"too_large" in answer
    assert sent < 20_000_000  # what fits into the kernel's buffers


async def test_a_client_that_sends_all_before_it_reads_gets_its_413_and_no_reset(served: Served) -> None:
    body = b"x" * 3_000_000
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with dial(served.address) as stream:
        await stream.send_all(head + body)
        assert (await read_all(stream, clean=True)).startswith(b"HTTP/1.1 413")


@pytest.mark.requirement("http.body-limit")
async def test_a_declared_length_is_refused_before_a_byte_is_read(served: Served) -> None:
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n"
    answer = await exchange(served.address, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"size":1000000000' in answer


@pytest.mark.requirement("http.slow-body")
async def test_a_body_that_does_not_come_in_time_is_answered_408(echo: Echo) -> None:
    hasty = Bounds(body_s=0.3, linger_s=0.3)
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc"
    async with serving(limit_body(echo, LIMIT, hasty)) as server:
        answer = await exchange(server.address, head)
    assert answer.startswith(b"HTTP/1.1 408")
    assert echo.paths == []


async def test_a_client_that_leaves_within_its_body_reaches_no_application(
    served: Served, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc")
    await exchange(served.address, b"GET /next HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert echo.paths == ["/next"]
    assert caplog.text == ""


async def test_the_application_still_hears_of_a_disconnect(served: Served, echo: Echo) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(b"GET /left HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await exchange(served.address, b"GET /next HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert sorted(echo.paths) == ["/left", "/next", "http.disconnect"]


@pytest.mark.requirement("refusals.fault-shows-nothing")
async def test_a_fault_is_500_with_its_incident_and_no_words_of_it(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    async with httpx.AsyncClient() as client:
        with caplog.at_level(logging.ERROR):
            answer = await client.get(f"{served.url}/raise?secret=1")
        assert answer.status_code == 500
        shown = answer.json()
        assert shown == {"error": "internal", "incident": shown["incident"]}
        assert shown["incident"] in caplog.text
        assert "secret=1" not in caplog.text
        assert (await client.get(served.url)).status_code == 200


@pytest.mark.requirement("operator.origin")
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8000", None, 200),
        ("localhost:8000", "http://localhost:8000", 200),
        ("localhost", "http://localhost", 200),
        ("localhost", "http://localhost:80", 200),
        ("localhost:8000", "http://localhost:3000", 403),
        ("localhost:8000", "http://127.0.0.1:8000", 403),
        ("localhost:8000", "https://localhost:8000", 403),
        ("localhost:8000", "https://desk.example:8443", 403),
        ("localhost:8000", "null", 403),
        ("turret.example", "https://turret.example", 200),
        ("turret.example", "http://turret.example", 403),
        ("evil.example", "http://evil.example", 421),
    ],
)
async def test_where_the_origin_must_be_exact_no_other_page_asks_and_none_gets_cors(
    echo: Echo, host: str, origin: str | None, status: int
) -> None:
    app = check_origin(echo, Origins(public_url="https://turret.example", exact=True), BOUNDS)
    start = (await ask(app, scope(host, origin)))[0]
    assert start["status"] == status
    assert not any(name.startswith(b"access-control") for name, _ in start["headers"])


@pytest.mark.requirement("operator.origin")
async def test_where_the_origin_must_be_exact_a_preflight_is_a_request_like_others(echo: Echo) -> None:
    app = check_origin(echo, Origins(exact=True), BOUNDS)
    await ask(app, scope("localhost:8000", "http://localhost:8000", method="OPTIONS", path="/here"))
    assert echo.paths == ["/here"]
    start = (await ask(app, scope("localhost:8000", "http://localhost:3000", method="OPTIONS")))[0]
    assert start["status"] == 403
