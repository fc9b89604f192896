"""The HTTP server over real sockets: hostile bytes, stuck clients, WebSocket closes, shutdown."""

import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from gateways.http import tls_context
from gateways.listen import Bounds
from tests.support.network import Served, serving
from tests.support.peers import dial, eventually, exchange, read_all, read_until, stalled, trickle
from tests.support.raw import GET, GET_ONCE, HASTY, QUICK, SMALL, UPGRADE, App, alive, frame


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def served(app: App) -> AsyncIterator[Served]:
    async with serving(app, SMALL, QUICK) as server:
        yield server


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
async def test_headers_that_do_not_come_in_time_end_the_connection(app: App) -> None:
    async with (
        serving(app, bounds=HASTY) as server,
        dial(server.address) as silent,
        dial(server.address) as slow,
        trio.open_nursery() as nursery,
    ):
        began = trio.current_time()
        nursery.start_soon(read_all, silent)
        with pytest.raises(trio.BrokenResourceError):  # noqa: PT012
            while trio.current_time() - began < 10:
                await trickle(slow, b"GET /", 0.05)
        assert trio.current_time() - began > 0.3


async def test_an_idle_connection_between_requests_is_kept_beyond_the_header_time(app: App) -> None:
    async with serving(app, bounds=HASTY) as server, dial(server.address) as stream:
        await stream.send_all(GET)
        await read_until(stream, b"ok")
        await trio.sleep(HASTY.header_s * 1.5)
        await stream.send_all(GET)
        await read_until(stream, b"ok")


@pytest.mark.requirement("http.stuck-client")
async def test_a_client_that_stops_reading_is_cut_and_holds_up_nobody(served: Served, app: App) -> None:
    async with stalled(served.address, GET.replace(b"/ ", b"/flood ")):
        await eventually(lambda: app.started == 1)
        await alive(served)
        await eventually(lambda: app.ended == app.started)


@pytest.mark.requirement("http.bounded-shutdown")
@pytest.mark.parametrize("path", [b"/flood ", b"/hang ", b"/follow ", b"/shield "])
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


async def test_faults_are_logged_without_what_the_client_sent(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await exchange(served.address, GET.replace(b"/ ", b"/raise?secret "))
    assert "secret" not in caplog.text


@pytest.mark.requirement("http.tls")
async def test_tls_serves_http_1_1_and_its_handshake_is_bounded(
    app: App, certificate: tuple[str, str]
) -> None:
    trust = ssl.create_default_context(cafile=certificate[0])
    trust.set_alpn_protocols(["h2", "http/1.1"])
    async with (
        serving(app, bounds=Bounds(header_s=1), tls=tls_context(*certificate)) as server,
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
        assert trio.current_time() - began < 4


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


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_files_that_are_no_certificate_are_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "chain.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OSError, match=r"chain\.pem and the key .*chain\.pem can't be had: \S"):
        tls_context(str(file), str(file))
