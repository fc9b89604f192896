"""One connection: its ends, its silences, and what no wire may send."""

import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked
from websockets.server import ServerProtocol

from broker.wire.refusals import refuse
from gateways import jsonrpc
from gateways.client import socket as module
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.socket import Socket, open_socket, read_answer, read_refusal
from tests.support.network import listening, refused_port

Act = Callable[[Socket], Awaitable[None]]


class Peer:
    """The far end of one connection, by hand. Give its `open` to the client in place of TCP."""

    def __init__(self) -> None:
        self.ours, self.stream = memory_stream_pair()
        self.protocol = ServerProtocol(max_size=None)

    async def open(self, *_: object) -> trio.abc.Stream:
        return self.ours

    async def upgrade(self) -> None:
        self.protocol.receive_data(await self.stream.receive_some())
        (request,) = self.protocol.events_received()
        self.protocol.send_response(self.protocol.accept(request))  # type: ignore[arg-type]  # it is a Request
        await self.flush()

    async def flush(self) -> None:
        for data in self.protocol.data_to_send():
            await self.stream.send_all(data)

    async def text(self, data: bytes) -> None:
        self.protocol.send_text(data)
        await self.flush()

    async def request(self) -> jsonrpc.Request:
        self.protocol.receive_data(await self.stream.receive_some())
        (frame,) = self.protocol.events_received()
        message = jsonrpc.read(bytes(frame.data))  # type: ignore[union-attr]  # it is a Frame
        assert isinstance(message, jsonrpc.Request)
        return message


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> Peer:
    """The far end of the next connection; it answers the upgrade by itself."""
    peer = Peer()
    monkeypatch.setattr(module, "_open_stream", peer.open)
    nursery.start_soon(peer.upgrade)
    return peer


def ignore(method: str, params: bytes) -> None:
    """A notification that nobody wants."""


async def hold(act: Act, notify: Callable[[str, bytes], None] = ignore) -> None:
    """Connect, act, and stay until the connection ends."""
    with trio.fail_after(300):
        async with open_socket("ws://test", notify) as socket:
            await act(socket)
            await trio.sleep_forever()


async def until_lost(act: Act) -> Disconnected:
    """What a connection ended with."""
    with pytest.raises(Disconnected) as caught:
        await hold(act)
    return caught.value


async def test_answers_find_their_requests_in_any_order(
    autojump_clock: MockClock, peer: Peer, nursery: trio.Nursery
) -> None:
    answers: dict[str, bytes] = {}

    async def ask(socket: Socket, method: str) -> None:
        answers[method] = await socket.request(method, b"{}", 5)

    async with open_socket("ws://test", ignore) as socket:
        nursery.start_soon(ask, socket, "first")
        first = await peer.request()
        nursery.start_soon(ask, socket, "second")
        second = await peer.request()
        await peer.text(jsonrpc.result(second.id, 2))
        await peer.text(jsonrpc.result(first.id, 1))
        await wait_all_tasks_blocked()
    assert answers == {"first": b"1", "second": b"2"}


async def test_no_answer_in_time_says_nothing_and_a_late_one_is_dropped(
    autojump_clock: MockClock, peer: Peer
) -> None:
    async with open_socket("ws://test", ignore) as socket:
        with pytest.raises(Disconnected, match="no answer to ask in 5 s"):
            await socket.request("ask", b"{}", 5)
        await peer.text(jsonrpc.result(1, "late"))
        await wait_all_tasks_blocked()


async def test_a_break_ends_the_block_and_every_request(
    autojump_clock: MockClock, peer: Peer, nursery: trio.Nursery
) -> None:
    waiting: list[str] = []

    async def ask(socket: Socket) -> None:
        with pytest.raises(Disconnected):
            await socket.request("ask", b"{}", 50)
        waiting.append("was told")
        with pytest.raises(Disconnected):
            await socket.request("again", b"{}", 50)

    async def act(socket: Socket) -> None:
        nursery.start_soon(ask, socket)
        await peer.request()
        await trio.aclose_forcefully(peer.stream)

    await until_lost(act)
    await wait_all_tasks_blocked()
    assert waiting == ["was told"]


@pytest.mark.requirement("client.retry-hint")
@pytest.mark.parametrize(
    ("code", "reason", "hint"),
    [(1012, '{"retry_in_ms":1234}', 1.234), (1013, "retry_after_ms=50", 0.05), (4008, "too slow", None)],
)
async def test_a_close_is_told_with_its_hint(
    autojump_clock: MockClock, peer: Peer, code: int, reason: str, hint: float | None
) -> None:
    async def act(_: Socket) -> None:
        peer.protocol.send_close(code, reason)
        await peer.flush()

    lost = await until_lost(act)
    assert lost.retry_after_s == hint
    assert f"{code} {reason}" in str(lost)


async def test_a_silent_peer_is_asked_and_then_given_up(autojump_clock: MockClock, peer: Peer) -> None:
    began = trio.current_time()

    async def act(_: Socket) -> None: ...

    assert "no sign of life" in str(await until_lost(act))
    assert trio.current_time() - began <= 40


async def test_a_quiet_peer_that_answers_pings_is_kept(
    autojump_clock: MockClock, peer: Peer, nursery: trio.Nursery
) -> None:
    async def answer_pings() -> None:
        while data := await peer.stream.receive_some():
            peer.protocol.receive_data(data)
            await peer.flush()

    async with open_socket("ws://test", ignore):
        nursery.start_soon(answer_pings)
        await trio.sleep(600)


async def test_a_peer_that_takes_no_bytes_is_given_up(
    autojump_clock: MockClock, peer: Peer, nursery: trio.Nursery
) -> None:
    async def hang() -> None:
        await trio.sleep_forever()

    async def act(socket: Socket) -> None:
        peer.ours.send_stream.send_all_hook = hang  # type: ignore[attr-defined]  # a memory stream
        nursery.start_soon(swallow, socket)

    async def swallow(socket: Socket) -> None:
        with pytest.raises(Disconnected):
            await socket.request("ask", b"{}", 60)

    await until_lost(act)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"do","params":{}}', "no answer and no notification"),
        (b"[1,2", "no answer and no notification"),
        (
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
            "could not read a frame of ours",
        ),
    ],
)
async def test_a_frame_that_no_wire_sends_is_a_fault(
    autojump_clock: MockClock, peer: Peer, frame: bytes, words: str
) -> None:
    with pytest.raises(WireFault, match=words):
        await hold(lambda _: peer.text(frame))


async def test_a_binary_frame_is_a_fault(autojump_clock: MockClock, peer: Peer) -> None:
    async def act(_: Socket) -> None:
        peer.protocol.send_binary(b"{}")
        await peer.flush()

    with pytest.raises(WireFault, match="binary"):
        await hold(act)


async def test_a_fragmented_message_is_one_message(autojump_clock: MockClock, peer: Peer) -> None:
    heard: list[tuple[str, bytes]] = []
    async with open_socket("ws://test", lambda method, params: heard.append((method, params))):
        text = jsonrpc.notification("env", {"n": 1})
        peer.protocol.send_text(text[:9], fin=False)
        peer.protocol.send_continuation(text[9:20], fin=False)
        peer.protocol.send_continuation(text[20:], fin=True)
        await peer.flush()
        await wait_all_tasks_blocked()
    assert heard == [("env", b'{"n":1}')]


async def test_what_a_notification_raises_ends_the_block(autojump_clock: MockClock, peer: Peer) -> None:
    def lie(method: str, params: bytes) -> None:
        raise WireFault("found out")

    with pytest.raises(WireFault, match="found out"):
        await hold(lambda _: peer.text(jsonrpc.notification("env", {})), lie)


async def test_no_websocket_there_is_told_with_the_status() -> None:
    async def refuse_upgrade(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")

    async with listening(refuse_upgrade) as (host, port):
        with trio.fail_after(5), pytest.raises(Disconnected, match="HTTP 503") as caught:
            async with open_socket(f"ws://{host}:{port}", ignore):
                pytest.fail("it was no WebSocket")
    assert caught.value.retry_after_s == 7


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9\r\n", b""])
async def test_what_is_no_http_is_told(answer: bytes) -> None:
    async def other(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(answer)

    async with listening(other) as (host, port):
        with trio.fail_after(5), pytest.raises(Disconnected, match="no WebSocket there"):
            async with open_socket(f"ws://{host}:{port}", ignore):
                pytest.fail("it was no WebSocket")


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_nobody_there_is_told_with_the_reason(scheme: str) -> None:
    with trio.fail_after(5), pytest.raises(Disconnected, match="Connection refused"):
        async with open_socket(f"{scheme}://127.0.0.1:{refused_port()}", ignore):
            pytest.fail("nobody listens")


async def test_a_certificate_that_nobody_vouches_for_is_no_connection() -> None:
    async def plain(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 400 no\r\n\r\n")

    async with listening(plain) as (host, port):
        with trio.fail_after(5), pytest.raises(Disconnected, match="cannot connect"):
            async with open_socket(f"wss://{host}:{port}", ignore, ssl_context=ssl.create_default_context()):
                pytest.fail("that was no TLS")


def response(error: dict[str, Any] | None = None, result: bytes | None = None) -> jsonrpc.Response:
    text = None if error is None else jsonrpc.error(1, **error)
    message = jsonrpc.read(text) if text is not None else jsonrpc.Response(1, result, None)
    assert isinstance(message, jsonrpc.Response)
    return message


def test_an_error_is_read_as_what_it_means() -> None:
    body = refuse("rate_limited", "slow", retry_after_ms=5).body()
    refused = read_answer(response({"code": -32000, "message": "slow", "data": body}))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.retry_after_s) == ("rate_limited", 0.005)
    inside = read_answer(response({"code": -32602, "message": "?", "data": {"refusal": body}}))
    assert isinstance(inside, Refused)
    assert inside.code == "rate_limited"
    fault = read_answer(response({"code": -32603, "message": "internal error", "data": {"incident": "1"}}))
    assert isinstance(fault, Disconnected)  # says nothing about the outcome
    unknown = read_answer(response({"code": -32601, "message": "there is no method x"}))
    assert isinstance(unknown, Refused)
    assert unknown.code == "bad_request"
    assert isinstance(read_answer(jsonrpc.Response(1, None, b"7")), WireFault)
    assert read_answer(response(result=b"7")) == b"7"


def test_a_refusal_of_a_newer_wire_keeps_its_code() -> None:
    refusal = read_refusal(
        {"code": "quota_exceeded", "status": 429, "message": "m", "retryable": False, "left": 0}
    )
    assert refusal is not None
    assert (refusal.code, refusal.message, refusal.detail) == ("quota_exceeded", "m", {"left": 0})
    assert read_refusal({"status": 429}) is None
    assert read_refusal([]) is None
