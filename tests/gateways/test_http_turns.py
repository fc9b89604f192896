"""What a request costs the HTTP server, and that nothing waits for it: messages, idle connections."""

import trio

from gateways.listen import Bounds, Message, Receive, Scope, Send
from tests.support.network import serving
from tests.support.peers import dial, eventually, read_all, read_until
from tests.support.raw import GET, SMALL, App

POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n"


class Listener:
    """Keeps the messages of a request's body, and answers at its end."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            self.heard.append(message)
            more = message.get("more_body", False)
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


async def test_a_body_that_came_whole_is_one_message() -> None:
    app = Listener()
    async with serving(app, SMALL) as server, dial(server.address) as stream:
        await stream.send_all(POST + b"0123456789")
        await read_until(stream, b"ok")
    assert app.heard == [{"type": "http.request", "body": b"0123456789", "more_body": False}]


async def test_a_piece_of_a_body_does_not_wait_for_the_next() -> None:
    app = Listener()
    async with serving(app, SMALL) as server, dial(server.address) as stream:
        await stream.send_all(POST + b"01234")
        await eventually(lambda: len(app.heard) == 1)
        assert app.heard[0] == {"type": "http.request", "body": b"01234", "more_body": True}
        await stream.send_all(b"56789")
        await read_until(stream, b"ok")
    assert b"".join(each["body"] for each in app.heard) == b"0123456789"


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
