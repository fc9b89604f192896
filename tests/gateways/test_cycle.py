"""One request and its answer: what the application sees, what leaves, and that nothing runs beside it."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import h11
import pytest
import trio
import trio.testing
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from trio.testing import MockClock

from gateways.cycle import AHEAD, PIECES, TAKE, Cycle, Ends, feed
from gateways.listen import Message, Receive, Scope, Send
from tests.support.network import listening, serving
from tests.support.peers import exchange

HEAD = b"POST /x HTTP/1.1\r\nhost: localhost\r\n"
ENDS = Ends("http", ("192.0.2.1", 9), ("127.0.0.1", 80), None)  # type: ignore[arg-type]


class Talk:
    """A cycle over a memory stream: the client's end in the test's hand, and the writes counted."""

    def __init__(self, cycle: Cycle, http: h11.Connection, client: Any, ending: trio.Event) -> None:
        self.cycle = cycle
        self.http = http
        self.client = client
        self.ending = ending
        self.left = 0
        self.writes = 0

    async def start(self, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
        await self.cycle.send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def body(self, data: bytes = b"", *, more: bool = False) -> None:
        await self.cycle.send({"type": "http.response.body", "body": data, "more_body": more})

    async def said(self) -> bytes:
        """What has reached the client so far."""
        return bytes(await self.client.receive_some())


async def talk(data: bytes, body_s: float = 30) -> Talk:
    """A client has sent `data`; its request's head was read."""
    client, server = trio.testing.memory_stream_pair()
    http, ending = h11.Connection(h11.SERVER), trio.Event()

    pump = server.send_stream.send_all_hook  # type: ignore[union-attr]

    async def count() -> None:
        found.writes += 1
        await pump()

    server.send_stream.send_all_hook = count  # type: ignore[union-attr]
    await client.send_all(data)
    await feed(http, server)
    request = http.next_event()
    assert isinstance(request, h11.Request)

    def left() -> None:
        found.left += 1

    found = Talk(Cycle(http, server, request, ENDS, left, ending, body_s), http, client, ending)
    return found


# The scope and the answer, beside another server's


REQUESTS = [
    b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nHost: A:80\r\nX-Odd:  two  \r\nX-ODD: again\r\nEmpty:\r\n\r\n",
    b"get /lower HTTP/1.1\r\nhost: a\r\n\r\n",
    b"HEAD /mcp HTTP/1.1\r\nhost: a\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET //mcp//x/../y/./ HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /%6dcp/%2fwire%00%ff%e2%82%ac?a=%20b&&c HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /mcp?x?y#z HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /%zz% HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET http://evil.example/mcp?q HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET ?q HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET mcp HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /204 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /304 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /stream HTTP/1.0\r\nhost: a\r\n\r\n",
    b"GET /mcp HTTP/1.0\r\n\r\n",
    b"GET /mcp HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nt: u\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\nabc",
    b"POST /silent HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc",
    # what must be refused, and must not be read in two ways
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 3, 3\r\n\r\nabc",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: +3\r\n\r\nabc",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 0x3\r\n\r\nabc",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, chunked\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n",
    b"POST /mcp HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nx\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n",
    b"GET /mcp HTTP/1.1\r\nhost: a\r\n folded: b\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nhost: a\r\nx: b\0c\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n\r\n",
    b"GET /mcp HTTP/1.1\nhost: a\nconnection: close\n\n",
    b"GET  /mcp HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /mcp\tHTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /m\xc3\xa9 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"G\xffT /mcp HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /mcp HTTP/1.1 \r\nhost: a\r\n\r\n",
    b"GET /mcp HTTX/1.1\r\nhost: a\r\n\r\n",
    b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 20_000,
]
SEEN = {
    "type",
    "http_version",
    "method",
    "scheme",
    "path",
    "raw_path",
    "query_string",
    "root_path",
    "headers",
    "asgi",
}


class Witness:
    """Answers by path, and keeps each scope with the body that came."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, Any], bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, message = b"", await receive()
        while message["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
            message = await receive()
        else:
            return  # it left, or wrote nonsense
        self.seen.append(({name: scope[name] for name in SEEN}, body))
        path = scope["path"]
        if path == "/silent":
            return
        status = int(path[1:]) if path[1:].isdigit() else 200
        length = [] if path == "/stream" or status != 200 else [(b"content-length", b"2")]
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"x-answer", b"1"), *length]}
        )
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
        await send({"type": "http.response.body", "body": b"k", "more_body": False})


def once(data: bytes) -> bytes:
    """The same request, after which the connection is closed."""
    line, found, rest = data.partition(b"\r\n")
    return line + b"\r\nconnection: close\r\n" + rest if found and b"\nconnection:" not in data else data


def known(answer: bytes) -> tuple[bytes, set[bytes], bytes]:
    """Status line without its phrase, headers without the date, and the body with its chunks put together."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    if b"transfer-encoding: chunked" in [line.lower() for line in lines]:
        body = b"".join(re.findall(rb"[0-9a-f]+\r\n(.*?)\r\n", body))
    return first[:12], {line.lower() for line in lines if not line.lower().startswith(b"date:")}, body


@pytest.mark.requirement("http.one-reading")
@pytest.mark.parametrize("data", REQUESTS, ids=lambda data: repr(data[:70]))
async def test_a_request_is_read_and_answered_as_by_hypercorn(data: bytes) -> None:
    ours, theirs = Witness(), Witness()
    data = once(data)
    async with serving(ours) as server:
        ours_said = await exchange(server.address, data)

    async def handler(stream: trio.SocketStream) -> None:
        await TCPServer(ASGIWrapper(theirs), quiet(), WorkerContext(None), {}, stream)  # type: ignore[arg-type]

    async with listening(handler) as address:
        theirs_said = await exchange(address, data)
    assert ours.seen == theirs.seen
    assert known(ours_said) == known(theirs_said)


def quiet() -> Config:
    config = Config()
    config.include_server_header = False
    config.errorlog = None
    return config


# Bodies


async def test_a_body_that_came_whole_is_one_message() -> None:
    found = await talk(HEAD + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert await found.cycle.receive() == {"type": "http.request", "body": b"abcde", "more_body": False}


async def test_a_piece_of_a_body_does_not_wait_for_the_next() -> None:
    found = await talk(HEAD + b"content-length: 10\r\n\r\n01234")
    assert await found.cycle.receive() == {"type": "http.request", "body": b"01234", "more_body": True}
    await found.client.send_all(b"56789")
    assert await found.cycle.receive() == {"type": "http.request", "body": b"56789", "more_body": False}


async def test_a_body_in_tiny_chunks_is_read_in_turns_with_others() -> None:
    found = await talk(HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 500 + b"0\r\n\r\n")
    turns = 0
    with trio.testing.assert_checkpoints():
        message = await found.cycle.receive()
    assert len(message["body"]) == PIECES
    while message["more_body"]:
        message = await found.cycle.receive()
        turns += 1
    assert turns == 500 // PIECES


async def test_100_continue_is_said_when_the_body_is_asked_for_and_else_never() -> None:
    asked = HEAD + b"expect: 100-continue\r\ncontent-length: 3\r\n\r\n"
    found = await talk(asked)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(found.cycle.receive)
        assert (await found.said()).startswith(b"HTTP/1.1 100 ")
        await found.client.send_all(b"abc")
    refused = await talk(asked)
    await refused.start(413, (b"content-length", b"0"))
    await refused.body()
    assert (await refused.said()).startswith(b"HTTP/1.1 413 ")
    assert await refused.cycle.finish() is False


@pytest.mark.parametrize(
    "body", [b"content-length: 9\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n5\r\nab"]
)
async def test_a_client_that_leaves_within_its_body_has_left_and_may_still_read_why(body: bytes) -> None:
    found = await talk(HEAD + body)
    assert (await found.cycle.receive())["more_body"] is True
    await found.client.send_eof()
    for _ in range(2):
        assert await found.cycle.receive() == {"type": "http.disconnect"}
    assert await found.cycle.finish() is False
    assert (await found.said()).startswith(b"HTTP/1.1 400 ")
    assert found.left == 1


async def test_a_body_that_makes_no_sense_is_400_if_the_application_says_nothing() -> None:
    found = await talk(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n")
    assert await found.cycle.receive() == {"type": "http.disconnect"}
    assert await found.cycle.finish() is False
    assert (await found.said()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.requirement("http.slow-body")
async def test_a_body_that_is_not_whole_in_time_counts_as_a_client_that_left(
    autojump_clock: MockClock,
) -> None:
    found = await talk(HEAD + b"content-length: 9\r\n\r\n", body_s=3)
    async with trio.open_nursery() as nursery:

        async def trickle() -> None:
            for _ in range(5):
                await trio.sleep(1)
                await found.client.send_all(b"x")

        nursery.start_soon(trickle)
        began, got = trio.current_time(), 0
        while (message := await found.cycle.receive())["type"] == "http.request":
            got += len(message["body"])
    assert (got, found.left) == (2, 1)
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)
    assert await found.cycle.finish() is False
    assert (await found.said()).startswith(b"HTTP/1.1 408 ")


# Answers


async def test_a_short_answer_is_one_write_and_waits_for_nobody() -> None:
    found = await talk(HEAD + b"\r\n")
    await found.start(200, (b"content-length", b"2"))
    assert found.writes == 0
    await found.body(b"ok")
    assert found.writes == 1
    answer = await found.said()
    assert answer.endswith(b"\r\n\r\nok")
    assert b"\r\ndate: " in answer.lower()
    assert await found.cycle.finish() is True


async def test_what_is_streamed_leaves_at_once() -> None:
    found = await talk(HEAD + b"\r\n")
    await found.start()
    with trio.testing.assert_checkpoints():
        await found.body(more=True)
    assert b"transfer-encoding: chunked" in (await found.said()).lower()
    await found.body(b"a", more=True)
    assert await found.said() == b"1\r\na\r\n"
    await found.body()
    assert await found.said() == b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "answer"),
    [([], b"500"), ([200], b"500"), ([404, b"x"], b"404")],
    ids=["nothing", "a head alone", "all"],
)
async def test_an_application_that_does_not_answer_is_answered_for(said: list[Any], answer: bytes) -> None:
    found = await talk(HEAD + b"\r\n")
    for each in said:
        await (found.start(each) if isinstance(each, int) else found.body(each))
    kept = await found.cycle.finish()
    assert (await found.said())[9:12] == answer
    assert kept is (answer == b"404")


async def test_an_answer_that_was_begun_and_not_ended_ends_the_connection() -> None:
    found = await talk(HEAD + b"\r\n")
    await found.start()
    await found.body(b"x", more=True)
    assert await found.cycle.finish() is False
    assert found.writes == 1


async def test_messages_out_of_turn_are_faults() -> None:
    found = await talk(HEAD + b"\r\n")
    with pytest.raises(RuntimeError, match="out of turn"):
        await found.body()
    await found.start(204)
    with pytest.raises(RuntimeError, match="out of turn"):
        await found.start(204)
    await found.body()
    for act in (found.body, found.start):
        with pytest.raises(RuntimeError, match="out of turn"):
            await act()  # type: ignore[operator]


@pytest.mark.requirement("http.one-reading")
async def test_a_body_that_nobody_read_is_passed_over_where_it_is_there_and_else_ends_the_connection() -> (
    None
):
    for sent, kept in ((b"abc", True), (b"ab", False)):
        found = await talk(HEAD + b"content-length: 3\r\n\r\n" + sent)
        await found.start(404, (b"content-length", b"0"))
        await found.body()
        assert await found.cycle.finish() is kept


async def test_once_the_port_closes_an_answer_says_that_the_connection_does() -> None:
    found = await talk(HEAD + b"\r\n")
    found.ending.set()
    await found.start(200, (b"content-length", b"0"))
    await found.body()
    assert b"connection: close" in (await found.said()).lower()
    assert await found.cycle.finish() is False


async def test_what_a_client_that_left_was_to_get_is_dropped() -> None:
    found = await talk(HEAD + b"\r\n")
    await found.client.aclose()
    await found.start(200, (b"content-length", b"2"))
    await found.body(b"ok")
    assert found.left == 1


# Waiting for the end


async def wait(receive: Callable[[], Awaitable[Message]], heard: list[Message]) -> None:
    heard.append(await receive())


@pytest.mark.requirement("http.disconnect-is-told")
@pytest.mark.parametrize("end", ["the client leaves", "the answer ends"])
async def test_whoever_waits_after_the_body_hears_of_the_end(end: str) -> None:
    found = await talk(HEAD + b"\r\n")
    await found.cycle.receive()
    heard: list[Message] = []
    with trio.fail_after(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, found.cycle.receive, heard)
            await trio.testing.wait_all_tasks_blocked()
            assert heard == []
            if end == "the client leaves":
                await found.client.send_eof()
            else:
                await found.start(204)
                await found.body()
    assert heard == [{"type": "http.disconnect"}]
    assert found.left == (1 if end == "the client leaves" else 0)
    assert await found.cycle.receive() == {"type": "http.disconnect"}


@pytest.mark.requirement("http.left-is-no-fault")
async def test_a_client_that_left_while_the_application_waited_is_told_of_no_fault() -> None:
    found = await talk(HEAD + b"\r\n")
    await found.cycle.receive()
    await found.client.send_eof()
    assert await found.cycle.receive() == {"type": "http.disconnect"}
    assert await found.cycle.finish() is False
    assert found.writes == 0


async def test_what_is_read_ahead_is_bounded() -> None:
    found = await talk(HEAD + b"\r\n")
    await found.cycle.receive()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, found.cycle.receive, [])
        for _ in range(20):
            await found.client.send_all(b"x" * 10_000)
            await trio.testing.wait_all_tasks_blocked()
        assert AHEAD < len(found.http.trailing_data[0]) <= AHEAD + 10_000
        nursery.cancel_scope.cancel()


# The connection taken


async def test_an_application_may_take_the_connection_with_what_was_read() -> None:
    found = await talk(b"GET /ws?a=b HTTP/1.1\r\nHost:  a\r\nX-Y: z\r\n\r\nearly")
    bare, read = found.cycle.scope["extensions"][TAKE]()
    assert bare is ENDS.bare
    assert read == b"GET /ws?a=b HTTP/1.1\r\nHost: a\r\nX-Y: z\r\n\r\nearly"
    assert found.cycle.taken
    with pytest.raises(RuntimeError, match="out of turn"):
        await found.start()
