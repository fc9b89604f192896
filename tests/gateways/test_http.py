"""The HTTP server over real sockets: hostile bytes, stuck clients, WebSocket closes, shutdown."""

import logging
import ssl
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import trio

from broker.config import Limits, Settings, Streams
from gateways.caller import read_proxies
from gateways.http import place_of, tls_context
from gateways.listen import Bounds, Receive, Scope, Send
from tests.support.network import Served, serving
from tests.support.peers import dial, eventually, exchange, read_all, read_until, stalled, trickle

UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: keep-alive, Upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
)
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
GET_ONCE = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
SMALL = Settings(limits=Limits(frame_bytes=1000), streams=Streams(ping_s=0.1, dead_s=0.4))
QUICK = Bounds(header_s=0.4, send_s=0.3, linger_s=0.3, orphan_s=0.5, grace_s=0.5)


class App:
    """Answers `ok`, echoes WebSocket messages, or misbehaves by path."""

    def __init__(self) -> None:
        self.started = 0
        self.ended = 0
        self.disconnects: list[int] = []
        self.flooded = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.started += 1
        try:
            if scope["type"] == "websocket":
                await self.websocket(scope, receive, send)
            else:
                await self.http(scope, receive, send)
        finally:
            self.ended += 1

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/raise":
            raise RuntimeError("a fault")
        if path == "/cancelled":
            with trio.CancelScope() as done:
                done.cancel()
                await send({"type": "http.response.start", "status": 200, "headers": []})
        headers = [(b"content-length", b"2")] if path == "/" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if path == "/raise-late":
            raise RuntimeError("a fault")
        while path == "/flood":
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            self.flooded += 1
        if path == "/hang":
            await trio.sleep_forever()
        if path == "/follow":
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if scope["path"] == "/refuse":
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            if message["text"] == "close":
                await send({"type": "websocket.close", "code": 4008, "reason": "slow"})
                return
            if message["text"] == "end":
                return
            await send({"type": "websocket.send", "text": f"{len(message['text'])}"})
        self.disconnects.append(message["code"])
        if scope["path"] == "/deaf":
            await trio.sleep_forever()


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def served(app: App) -> AsyncIterator[Served]:
    async with serving(app, SMALL, QUICK) as server:
        yield server


async def alive(served: Served) -> None:
    """A plain request is answered: whatever was done before did not end the server."""
    assert (await exchange(served.address, GET_ONCE)).endswith(b"\r\n\r\nok")


def frame(data: bytes, opcode: int = 1, *, fin: bool = True, mask: bytes = b"\0\0\0\0") -> bytes:
    """A client's WebSocket frame, masked with zeros so that its payload stands as it is."""
    first = (0x80 if fin else 0) | opcode
    if len(data) < 126:
        return struct.pack("!BB", first, 0x80 | len(data)) + mask + data
    return struct.pack("!BBH", first, 0x80 | 126, len(data)) + mask + data


async def upgraded(stream: trio.SocketStream) -> bytes:
    """Send the upgrade and give what came after the answer's headers."""
    await stream.send_all(UPGRADE + b"\r\n")
    answer = await read_until(stream, b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101")
    return answer.partition(b"\r\n\r\n")[2]


async def closing(stream: trio.SocketStream) -> int:
    """The code of the server's close frame; pings before it are passed over."""
    received = await read_all(stream)
    while received[:2] == b"\x89\x00":
        received = received[2:]
    assert received[:1] == b"\x88", received
    return int.from_bytes(received[2:4], "big")


HOSTILE = {
    "trailing byte": UPGRADE + b"\r\nx",
    "early frame": UPGRADE + b"\r\n" + frame(b"hello"),
    "many early frames": UPGRADE + b"\r\n" + frame(b"hello") * 100,
    "upgrade with a body": UPGRADE + b"content-length: 5\r\n\r\nhello",
    "upgrade with a chunked body": UPGRADE + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "upgrade without a key": UPGRADE.replace(b"sec-websocket-key", b"x-key") + b"\r\n",
    "upgrade of another version": UPGRADE.replace(b": 13", b": 12") + b"\r\n",
    "upgrade refused with early bytes": UPGRADE.replace(b"/ws", b"/refuse") + b"\r\nx",
    "upgrade by HTTP/1.0": UPGRADE.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\nx",
    "HTTP/2 by prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 64,
    "h2c upgrade": b"GET / HTTP/1.1\r\nhost: a\r\nupgrade: h2c\r\nconnection: upgrade\r\nhttp2-settings: AA\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 400,
    "a head without end": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
    "bad chunk": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "huge chunk size": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "target not ASCII": b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n",
    "pipelined after upgrade": UPGRADE + b"\r\n" + GET,
    "a fault": GET.replace(b"/ ", b"/raise "),
    "a fault after the start": GET.replace(b"/ ", b"/raise-late "),
    "an answer begun in a cancelled scope": GET.replace(b"/ ", b"/cancelled "),
    "nothing": b"",
}


@pytest.mark.requirement("http.one-connection-one-fault")
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
async def test_no_input_of_one_connection_ends_the_server(served: Served, app: App, data: bytes) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(data)
        with trio.move_on_after(0.1):
            await stream.receive_some()
    await alive(served)
    await eventually(lambda: app.ended == app.started)


@pytest.mark.parametrize("early", [b"x", frame(b"hello") * 100], ids=["a byte", "frames"])
async def test_bytes_before_the_upgrade_is_answered_are_refused_and_the_connection_closed(
    app: App, early: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(app) as server:
        answer = await exchange(server.address, UPGRADE + b"\r\n" + early, seconds=1)
        assert answer.startswith(b"HTTP/1.1 400")
        await eventually(lambda: app.ended == app.started)
    assert caplog.text == ""


@pytest.mark.requirement("http.no-http2")
async def test_http2_is_spoken_in_no_disguise(served: Served, app: App) -> None:
    prior = await exchange(served.address, HOSTILE["HTTP/2 by prior knowledge"])
    assert prior.startswith(b"HTTP/1.1 505")
    offered = HOSTILE["h2c upgrade"].replace(b"connection: upgrade", b"connection: upgrade, close")
    assert (await exchange(served.address, offered)).startswith(b"HTTP/1.1 200")
    assert app.started == 1


async def test_a_request_cut_at_any_byte_ends_nothing(served: Served) -> None:
    for end in range(0, len(UPGRADE), 13):
        async with dial(served.address) as stream:
            await stream.send_all(UPGRADE[:end])
    await alive(served)


async def test_a_request_sent_byte_by_byte_is_answered(served: Served) -> None:
    async with dial(served.address) as stream:
        await trickle(stream, GET)
        assert (await read_until(stream, b"ok")).startswith(b"HTTP/1.1 200")


async def test_a_connection_serves_many_requests(served: Served) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(3):
            assert (await client.get(served.url)).text == "ok"
        pool = client._transport._pool  # type: ignore[attr-defined]
        assert len(pool.connections) == 1


@pytest.mark.requirement("http.slow-loris")
async def test_headers_that_do_not_come_in_time_end_the_connection(served: Served) -> None:
    async with dial(served.address) as silent, dial(served.address) as slow:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_all, silent)
            with pytest.raises(trio.BrokenResourceError):  # noqa: PT012
                while True:
                    await trickle(slow, b"GET /", 0.05)
        assert 0.3 < trio.current_time() - began < 3


async def test_an_idle_connection_between_requests_is_kept_beyond_the_header_time(served: Served) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(GET)
        await read_until(stream, b"ok")
        await trio.sleep(QUICK.header_s * 1.5)
        await stream.send_all(GET)
        await read_until(stream, b"ok")


@pytest.mark.requirement("http.stuck-client")
async def test_a_client_that_stops_reading_is_cut_and_holds_up_nobody(served: Served, app: App) -> None:
    async with stalled(served.address, GET.replace(b"/ ", b"/flood ")):
        await eventually(lambda: app.started == 1)
        await alive(served)
        await eventually(lambda: app.ended == app.started)


@pytest.mark.requirement("http.bounded-shutdown")
@pytest.mark.parametrize("path", [b"/flood ", b"/hang ", b"/follow "])
async def test_the_shutdown_ends_in_time_whatever_clients_and_applications_do(app: App, path: bytes) -> None:
    bounds = Bounds(send_s=60, grace_s=0.3)
    async with serving(app, bounds=bounds) as server, stalled(server.address, GET.replace(b"/ ", path)):
        await eventually(lambda: app.started == 1)
        flooded = -1
        while flooded != app.flooded:  # until nothing more leaves
            flooded = app.flooded
            await trio.sleep(0.1)
        began = trio.current_time()
        server.shutdown.set()
        with trio.fail_after(5):
            await server.ended.wait()
        assert trio.current_time() - began < 2


async def test_the_shutdown_waits_for_nobody_who_is_idle(app: App) -> None:
    async with serving(app, SMALL, Bounds(grace_s=30)) as server:
        async with dial(server.address) as used, dial(server.address) as fresh:
            await used.send_all(GET)
            await read_until(used, b"ok")
            server.shutdown.set()
            with trio.fail_after(2):
                await server.ended.wait()
            assert await read_all(used) == b""
            assert await read_all(fresh) == b""
        with pytest.raises(OSError, match="connect"):
            await trio.open_tcp_stream(*server.address)


async def test_a_client_that_goes_while_idle_leaves_nothing_behind(app: App) -> None:
    async with serving(app, SMALL, Bounds(connections=1)) as server:
        for _ in range(3):
            async with httpx.AsyncClient() as client:
                assert (await client.get(server.url)).text == "ok"
            await trio.sleep(0.05)


@pytest.mark.requirement("http.disconnect-is-told")
async def test_the_application_hears_that_its_client_left(served: Served, app: App) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(GET.replace(b"/ ", b"/follow "))
        await read_until(stream, b"begun")
    await eventually(lambda: app.ended > 0)


@pytest.mark.requirement("http.connection-bounds")
async def test_connections_beyond_the_bound_are_turned_away_and_places_come_back(app: App) -> None:
    async with serving(app, SMALL, Bounds(connections=2)) as server:
        async with dial(server.address) as one, dial(server.address) as two:
            await one.send_all(GET)
            await two.send_all(GET)
            await read_until(one, b"ok")
            await read_until(two, b"ok")
            assert (await exchange(server.address, b"")).startswith(b"HTTP/1.1 503")
        for _ in range(100):
            if (await exchange(server.address, GET_ONCE)).startswith(b"HTTP/1.1 200"):
                break
            await trio.sleep(0.01)
        else:
            pytest.fail("the places did not come back")


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("127.0.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("10.0.0.5", ""),
        ("fd00::5", ""),
        ("203.0.113.9", "203.0.113.9/32"),
        ("::ffff:203.0.113.9", "203.0.113.9/32"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8::9:9:9:9", "2001:db8::/64"),
    ],
)
def test_connections_are_counted_by_address_but_not_from_loopback_and_proxies(
    address: str, place: str
) -> None:
    assert place_of(address, read_proxies(["10.0.0.0/8", "fd00::5"])) == place


async def test_faults_are_logged_without_what_the_client_sent(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await exchange(served.address, GET.replace(b"/ ", b"/raise?secret "))
    assert "secret" not in caplog.text


async def test_a_websocket_talks_and_closes(served: Served, app: App) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        await stream.send_all(frame(b"hello"))
        assert (await read_until(stream, b"5")).endswith(b"\x81\x015")
        await stream.send_all(frame(b"\x03\xe8", 8))
        assert (await read_all(stream)).endswith(b"\x88\x02\x03\xe8")


async def test_extensions_are_never_agreed_on(served: Served) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(UPGRADE + b"sec-websocket-extensions: permessage-deflate\r\n\r\n")
        answer = await read_until(stream, b"\r\n\r\n")
        assert b"permessage-deflate" not in answer


@pytest.mark.requirement("ws.too-large-1009")
@pytest.mark.parametrize(
    "frames",
    [
        [frame(b"x" * 1001)],
        [frame("é".encode() * 501)],  # bytes count, not characters
        [frame(b"x" * 600, fin=False), frame(b"x" * 600, 0)],
        [frame(b"x" * 100, fin=False)] + [frame(b"x" * 100, 0, fin=False)] * 500,
    ],
    ids=["one frame", "not ASCII", "two fragments", "fragments without end"],
)
async def test_a_message_beyond_the_limit_is_closed_with_1009_and_kept_nowhere(
    served: Served, app: App, frames: list[bytes]
) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        await stream.send_all(b"".join(frames))
        assert await closing(stream) == 1009
    await eventually(lambda: app.ended > 0)
    assert app.disconnects == [1009]
    await alive(served)


async def test_a_message_of_the_limit_is_taken(served: Served) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        await stream.send_all(frame("é".encode() * 500) + frame(b"x" * 1000))
        await read_until(stream, b"1000")


@pytest.mark.requirement("ws.not-utf8-1007")
@pytest.mark.parametrize(
    ("data", "code"),
    [(frame(b"\xff\xff"), 1007), (frame(b"a", 3), 1002), (b"\x81\x01a", 1002), (frame(b"a", 0), 1002)],
    ids=["not UTF-8", "unknown opcode", "unmasked", "continuation of nothing"],
)
async def test_what_can_not_be_read_is_closed_with_its_code(
    served: Served, app: App, data: bytes, code: int
) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        await stream.send_all(data + frame(b"later") * 50)
        assert await closing(stream) == code
    await eventually(lambda: app.ended > 0)
    assert app.disconnects == [code]


async def test_after_a_broken_frame_what_follows_is_thrown_away_until_the_far_end_has_read_the_code(
    served: Served,
) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        await stream.send_all(frame(b"a", 3))
        for _ in range(10):
            await stream.send_all(b"garbage")
            await trio.sleep(0.01)
        assert await closing(stream) == 1002


@pytest.mark.parametrize(("text", "code"), [(b"close", 4008), (b"end", 1011)])
async def test_the_code_arrives_also_at_a_client_that_goes_on_sending(
    served: Served, text: bytes, code: int
) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        await stream.send_all(frame(text) + frame(b"x" * 900) * 200)
        assert await closing(stream) == code


async def test_after_a_close_the_far_end_has_a_moment_to_answer_and_then_the_end_comes_at_once(
    app: App,
) -> None:
    async with serving(app, SMALL, Bounds(linger_s=3)) as server:
        for ending in (b"close", b"end", b"x" * 1001):
            async with dial(server.address) as stream:
                await upgraded(stream)
                await stream.send_all(frame(ending))
                await read_until(stream, b"\x88")
                with trio.move_on_after(0.1) as waited:
                    await read_all(stream)
                assert waited.cancelled_caught
                await stream.send_all(frame(b"late") * 50 + frame(b"\x03\xe8", 8))
                await read_all(stream, seconds=1, clean=True)


async def test_an_application_that_does_not_end_holds_no_closed_connection(served: Served) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(UPGRADE.replace(b"/ws", b"/deaf") + b"\r\n")
        await read_until(stream, b"\r\n\r\n")
        await stream.send_all(frame(b"x" * 1001))
        assert await closing(stream) == 1009


async def test_a_client_that_never_answers_the_close_is_cut(served: Served) -> None:
    async with dial(served.address) as stream:
        await upgraded(stream)
        began = trio.current_time()
        await stream.send_all(frame(b"close"))
        assert await closing(stream) == 4008
        assert trio.current_time() - began < 2


@pytest.mark.requirement("ws.dead-peer")
async def test_a_websocket_that_answers_no_ping_is_gone_and_one_that_does_stays(
    served: Served, app: App
) -> None:
    async with dial(served.address) as silent, dial(served.address) as lively:
        await upgraded(silent)
        await upgraded(lively)
        with trio.move_on_after(1):
            while True:
                await read_until(lively, b"\x89\x00")
                await lively.send_all(frame(b"", 10))
        received = await read_all(silent)
        assert received.startswith(b"\x89\x00")
        assert app.ended == 1
        await lively.send_all(frame(b"abc"))
        await read_until(lively, b"3")


async def test_a_refused_websocket_gets_403(served: Served) -> None:
    answer = await exchange(served.address, UPGRADE.replace(b"/ws", b"/refuse") + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 403")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """Paths of a self-signed certificate for localhost and of its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")


@pytest.mark.requirement("http.tls")
async def test_tls_serves_http_1_1_and_its_handshake_is_bounded(
    app: App, certificate: tuple[str, str]
) -> None:
    trust = ssl.create_default_context(cafile=certificate[0])
    trust.set_alpn_protocols(["h2", "http/1.1"])
    async with (
        serving(app, SMALL, QUICK, tls=tls_context(*certificate)) as server,
        dial(server.address) as silent,
        dial(server.address) as plain,
        dial(server.address) as tcp,
    ):
        await plain.send_all(GET)
        stream = trio.SSLStream(tcp, trust, server_hostname="localhost", https_compatible=True)
        await stream.send_all(GET_ONCE)
        assert (await read_all(stream)).endswith(b"ok")
        assert stream.selected_alpn_protocol() == "http/1.1"
        assert b"200" not in await read_all(plain)
        began = trio.current_time()
        await read_all(silent)
        assert trio.current_time() - began < 2


async def test_a_stuck_client_behind_tls_is_cut_and_the_shutdown_is_bounded(
    app: App, certificate: tuple[str, str]
) -> None:
    trust = ssl.create_default_context(cafile=certificate[0])
    async with (
        serving(app, SMALL, QUICK, tls=tls_context(*certificate)) as server,
        dial(server.address) as tcp,
    ):
        stream = trio.SSLStream(tcp, trust, server_hostname="localhost", https_compatible=True)
        await stream.send_all(GET.replace(b"/ ", b"/flood "))
        await eventually(lambda: app.started == 1)
        await eventually(lambda: app.ended == 1)
        server.shutdown.set()
        with trio.fail_after(3):
            await server.ended.wait()
