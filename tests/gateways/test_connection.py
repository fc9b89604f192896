"""A connection's life: its requests in order, its idle times, its ends, and that it is one task."""

import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from gateways.connection import Connection, names
from gateways.cycle import TAKE
from gateways.listen import Bounds, Receive, Scope, Send
from tests.support.network import serving
from tests.support.peers import dial, read_all, read_until, trickle
from tests.support.raw import GET, GET_ONCE, SMALL, App


async def say_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the path and the size of the body, reads it or (under /deaf) does not."""
    size = 0
    while not scope["path"].startswith("/deaf"):
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        if not message["more_body"]:
            break
    text = f"[{scope['path']} {size}]".encode()
    headers = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@pytest.mark.requirement("http.in-order")
async def test_requests_that_come_in_one_packet_are_answered_in_their_order() -> None:
    posts = [
        b"POST /%d HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (n, n) + b"x" * n for n in range(50)
    ]
    async with serving(say_path) as server, dial(server.address) as stream:
        await stream.send_all(b"".join(posts) + GET_ONCE)
        answer = await read_all(stream)
    assert re.findall(rb"\[/(\d+) (\d+)\]", answer) == [(b"%d" % n, b"%d" % n) for n in range(50)]
    assert answer.endswith(b"[/ 0]")


@pytest.mark.requirement("http.one-reading")
async def test_a_body_that_was_not_read_is_never_taken_for_a_request() -> None:
    hidden = b"GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n"
    post = b"POST /deaf HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(hidden)
    async with serving(say_path, bounds=Bounds(linger_s=0.2)) as server:
        async with dial(server.address) as stream:
            await stream.send_all(post + hidden + GET_ONCE)
            assert re.findall(rb"\[.*?\]", await read_all(stream)) == [b"[/deaf 0]", b"[/ 0]"]
        async with dial(server.address) as stream:
            await stream.send_all(post)
            await read_until(stream, b"[/deaf 0]")
            await stream.send_all(hidden + GET_ONCE)
            assert await read_all(stream) == b""


async def test_many_requests_in_one_packet_do_not_hold_up_the_loop() -> None:
    """Each is a turn: nobody else waits for all of them."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with serving(App()) as server, dial(server.address) as stream, trio.open_nursery() as nursery:
        await stream.send_all(GET * 200 + GET_ONCE)
        nursery.start_soon(count)
        await read_all(stream)
        nursery.cancel_scope.cancel()
    assert turns > 200


async def test_a_connection_is_one_task() -> None:
    async with serving(App()) as server, dial(server.address) as stream:
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        for path in (b"/ ", b"/follow "):
            await stream.send_all(GET.replace(b"/ ", path))
            await read_until(stream, b"ok" if path == b"/ " else b"begun")
            assert trio.lowlevel.current_statistics().tasks_living == before


@pytest.mark.requirement("http.slow-loris")
async def test_a_later_head_that_does_not_come_in_time_ends_the_connection_too() -> None:
    async with serving(App(), bounds=Bounds(header_s=0.4)) as server, dial(server.address) as stream:
        await stream.send_all(GET)
        await read_until(stream, b"ok")
        began = trio.current_time()
        with pytest.raises(trio.BrokenResourceError):  # noqa: PT012
            while trio.current_time() - began < 10:
                await trickle(stream, b"GET /", 0.05)
        assert trio.current_time() - began < 3


async def test_who_is_refused_can_read_why_although_it_sent_more() -> None:
    async with serving(App(), bounds=Bounds(linger_s=0.5)) as server, dial(server.address) as stream:
        await stream.send_all(b"nonsense\r\n\r\n" + b"x" * 200_000)
        assert (await read_all(stream, clean=True)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.requirement("http.one-connection-one-fault")
async def test_an_application_that_fails_is_answered_for_and_its_connection_ends() -> None:
    async with serving(App()) as server, dial(server.address) as stream:
        await stream.send_all(GET.replace(b"/ ", b"/raise ") + GET)
        answer = await read_all(stream)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_tunnel_is_not_to_be_had() -> None:
    app = App()
    async with serving(app) as server, dial(server.address) as stream:
        await stream.send_all(b"CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (await read_all(stream)).startswith(b"HTTP/1.1 501 ")
    assert app.started == 0


@asynccontextmanager
async def living(
    app: object, ending: trio.Event
) -> AsyncIterator[tuple[Connection, trio.SocketStream, trio.Event]]:
    """A connection over a socket pair, its far end, and when it has ended."""
    near, far = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    connection, ended = Connection(app, near, Bounds(orphan_s=0.2), None, ending), trio.Event()  # type: ignore[arg-type]

    async def live() -> None:
        await connection.live()
        ended.set()

    async with trio.open_nursery() as nursery, far:
        nursery.start_soon(live)
        yield connection, far, ended
        nursery.cancel_scope.cancel()


async def test_stopping_ends_who_is_idle_at_once_and_others_after_their_answer() -> None:
    gate, ending = trio.Event(), trio.Event()

    async def gated(scope: Scope, receive: Receive, send: Send) -> None:
        await gate.wait()
        await App()(scope, receive, send)

    async with living(gated, ending) as (idle, _, idle_ended), living(gated, ending) as (busy, far, ended):
        await far.send_all(GET)
        await trio.testing.wait_all_tasks_blocked()
        ending.set()
        idle.stop()
        busy.stop()
        with trio.fail_after(2):
            await idle_ended.wait()
            gate.set()
            answer = await read_all(far)
            await ended.wait()
        assert b"connection: close" in answer.lower()
        assert answer.endswith(b"ok")


@pytest.mark.requirement("http.bounded-shutdown")
@pytest.mark.parametrize("takes", [True, False])
async def test_cutting_ends_whatever_is_under_way(takes: bool) -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if takes:
            stream, _ = scope["extensions"][TAKE]()
            with pytest.raises(trio.Cancelled):
                await stream.receive_some()
            raise KeyError("what it does then is its own matter")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})

    async with living(endless, trio.Event()) as (connection, far, ended):
        await far.send_all(GET)
        with trio.move_on_after(0.2):
            await ended.wait()
        connection.cut()
        with trio.fail_after(2):
            await ended.wait()


def test_faults_are_named_and_their_words_are_kept_back() -> None:
    group = ExceptionGroup("a", [ValueError("secret"), ExceptionGroup("b", [KeyError("secret")])])
    assert names(group) == {"ValueError", "KeyError"}


async def test_an_idle_connection_is_closed_when_its_time_is_over_and_each_request_renews_it() -> None:
    async with serving(App(), SMALL, Bounds(keep_alive_s=0.6)) as server, dial(server.address) as stream:
        began = trio.current_time()
        for _ in range(3):
            await stream.send_all(GET)
            await read_until(stream, b"ok")
            await trio.sleep(0.3)
        assert await read_all(stream) == b""
        assert 1.1 < trio.current_time() - began < 4


async def test_a_connection_with_a_request_under_way_is_never_idle() -> None:
    async with serving(App(), SMALL, Bounds(keep_alive_s=0.1)) as server, dial(server.address) as stream:
        await stream.send_all(GET.replace(b"/ ", b"/follow "))
        await read_until(stream, b"begun")
        with trio.move_on_after(0.4) as waited:
            await stream.receive_some()
        assert waited.cancelled_caught
