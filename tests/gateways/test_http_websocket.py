"""WebSockets on the HTTP port: what is agreed on, and that each ends with its code."""

from collections.abc import AsyncIterator

import pytest
import trio

from gateways.listen import Bounds
from tests.support.network import Served, serving
from tests.support.peers import dial, eventually, exchange, read_all, read_until
from tests.support.raw import GET_ONCE, LIVELY, QUICK, SMALL, UPGRADE, App, alive, closing, frame, upgraded


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def served(app: App) -> AsyncIterator[Served]:
    async with serving(app, SMALL, QUICK) as server:
        yield server


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


ENDINGS = [
    (frame(b"close"), 4008),
    (frame(b"end"), 1011),
    (frame(b"x" * 1001), 1009),
    (frame(b"\xff"), 1007),
    (b"\xff" * 20, 1002),
    (b"\x81\xff" + (2**40).to_bytes(8, "big") + bytes(4) + b"x" * 1001, 1009),
]
"""What makes us close: by the application, and by what the far end sent; the last one is never whole."""


@pytest.mark.requirement("ws.close-half")
@pytest.mark.parametrize(("ending", "code"), ENDINGS)
async def test_after_our_close_nothing_more_comes_and_the_far_end_has_a_moment_for_its_own(
    app: App, ending: bytes, code: int
) -> None:
    async with serving(app, SMALL, Bounds(linger_s=3)) as server, dial(server.address) as stream:
        await upgraded(stream)
        await stream.send_all(ending)
        with trio.fail_after(1):
            assert await closing(stream) == code
        for _ in range(5):
            await stream.send_all(frame(b"late") * 10)
            await trio.sleep(0.02)
        await stream.send_all(frame(b"\x03\xe8", 8))


async def freed(server: Served) -> None:
    """The one place of this server is free again, soon."""
    for _ in range(200):
        if (await exchange(server.address, GET_ONCE)).startswith(b"HTTP/1.1 200"):
            return
        await trio.sleep(0.01)
    pytest.fail("the place did not come back")


@pytest.mark.requirement("ws.close-half")
@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(("ending", "code"), ENDINGS)
async def test_a_far_end_that_closes_after_ours_frees_its_place_at_once(
    app: App, ending: bytes, code: int, answers: bool
) -> None:
    bounds = Bounds(linger_s=30, connections=1)
    async with serving(app, SMALL, bounds) as server:
        async with dial(server.address) as stream:
            await upgraded(stream)
            await stream.send_all(ending)
            with trio.fail_after(1):
                assert await closing(stream) == code
            if answers:
                await stream.send_all(frame(b"\x03\xe8", 8))
        await freed(server)


@pytest.mark.requirement("ws.close-half")
async def test_a_far_end_that_answers_our_close_and_waits_for_ours_is_done(app: App) -> None:
    """A client that leaves the closing of the socket to the server, as RFC 6455, 7.1.1 has it."""
    async with (
        serving(app, SMALL, Bounds(linger_s=30, connections=1)) as server,
        dial(server.address) as stream,
    ):
        await upgraded(stream)
        await stream.send_all(frame(b"close"))
        assert await closing(stream) == 4008
        await stream.send_all(frame(b"\x03\xe8", 8))
        await freed(server)


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
async def test_a_websocket_that_answers_no_ping_is_gone_and_one_that_does_stays(app: App) -> None:
    async with (
        serving(app, LIVELY, QUICK) as server,
        dial(server.address) as silent,
        dial(server.address) as lively,
    ):
        await upgraded(silent)
        await upgraded(lively)
        with trio.move_on_after(1.5):
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
