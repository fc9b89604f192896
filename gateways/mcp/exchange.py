"""One HTTP exchange over ASGI: JSON out, or an event stream once something is said early.

1. The status is decided before the first byte: what fails before anything was said is JSON with its status.
2. Signs of life are comments, never events (clients parse each event as JSON).
3. Nothing is sent from a cancelled scope: a send is shielded, and the shield has a bound.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import trio

from gateways import eventstream, render
from gateways.mcp.headers import Accept, Headers
from gateways.streaming import wait_left

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

KEEP_ALIVE_S: Final = 15.0
"""Seconds of silence after which a comment goes out (proxies cut at 60)."""
SEND_S: Final = 30.0
"""Seconds that one send may take before the client counts as gone."""
_STREAM_HEADERS: Final[render.Headers] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class Answer(msgspec.Struct, frozen=True):
    """What ends an exchange: a status, a JSON-RPC message, and headers beside the content type."""

    status: int
    body: bytes
    headers: render.Headers = []


class Reply:
    """The way back of one exchange. Made for one task; `finish` or `end` is called once."""

    def __init__(self, send: Send, accept: Accept) -> None:
        self._send = send
        self._accept = accept
        self._started = False
        self.gone = False
        """The client took nothing for SEND_S: nothing more is sent."""

    async def open(self) -> None:
        """Begin the stream before there is anything to say, so that the client knows that it stands."""
        await self._start_stream()
        await self._body(eventstream.comment("open"), more=True)

    async def event(self, message: bytes) -> None:
        """Say something before the answer; the first time makes the response a stream."""
        await self._start_stream()
        await self._body(eventstream.encode(message, event="message"), more=True)

    async def keep_alive(self) -> None:
        """A comment. It starts the stream only for a client that asked for one by name."""
        if self._started or self._accept.stream_named:
            await self._start_stream()
            await self._body(eventstream.comment("keep-alive"), more=True)

    async def finish(self, final: Answer) -> None:
        """The answer: JSON with its status, or an event where a stream has begun or JSON is not taken."""
        if not self._started and (final.status != 200 or self._accept.json or not final.body):
            await self._whole(final)
            return
        await self._start_stream(final.headers)
        await self._body(eventstream.encode(final.body, event="message"), more=False)

    async def end(self) -> None:
        """The end of a stream without an answer."""
        await self._body(b"", more=False)

    async def _start_stream(self, headers: render.Headers | None = None) -> None:
        if not self._started:
            self._started = True
            start = {
                "type": "http.response.start",
                "status": 200,
                "headers": [*_STREAM_HEADERS, *(headers or [])],
            }
            await self._put(start)

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._put({"type": "http.response.body", "body": data, "more_body": more})

    async def _whole(self, final: Answer) -> None:
        body = final.body
        if not body.isascii():  # some readers of JSON take these for line ends, as some of event streams do
            body = body.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
        headers = [*final.headers]
        if final.status != 204:  # RFC 9110, 8.6
            headers.append((b"content-length", b"%d" % len(body)))
        if body:
            headers += render.JSON_HEADERS
        # Outside of every nursery, so that no scope of ours can be cancelled here: no shield is needed.
        await self._send({"type": "http.response.start", "status": final.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def _put(self, message: Message) -> None:
        if self.gone:
            return
        with trio.move_on_after(SEND_S, shield=True) as scope:
            await self._send(message)
        self.gone = scope.cancelled_caught


class Http(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange: what the client asked in its head, and the ways in and out.

    `left` is set when the client leaves while work that may last is done for it.
    """

    scope: dict[str, Any]
    head: Headers
    accept: Accept
    receive: Receive
    reply: Reply
    left: trio.Event = msgspec.field(default_factory=trio.Event)


Notify = Callable[[bytes], Awaitable[None]]


async def run(
    work: Callable[[Notify | None], Awaitable[Answer]],
    http: Http,
    *,
    ends_with_client: bool,
    keep_alive_s: float = KEEP_ALIVE_S,
) -> None:
    """Work that may last: what it says early is streamed, silence is filled, its answer ends the exchange.

    `ends_with_client`: a disconnect cancels the work, and nothing more is sent. The work runs in the caller's task, so
    that a wait costs one task beside it.
    """
    reply, lock = http.reply, trio.Lock()
    final: list[Answer] = []
    said_at = trio.current_time()

    async def say(message: bytes | None) -> None:
        """One after the other; None is a sign of life. Who takes nothing is given up, and the work with it."""
        nonlocal said_at
        async with lock:
            said_at = trio.current_time()
            await (reply.keep_alive() if message is None else reply.event(message))
        if reply.gone:
            nursery.cancel_scope.cancel()

    async def attend() -> None:
        while not http.left.is_set():
            with trio.move_on_at(said_at + keep_alive_s):
                await wait_left(http.receive)
                http.left.set()
            if not http.left.is_set() and trio.current_time() >= said_at + keep_alive_s:
                await say(None)
        if ends_with_client:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(attend)
        final.append(await work(say if http.accept.stream else None))
        nursery.cancel_scope.cancel()
    if final and not (http.left.is_set() and ends_with_client):
        await reply.finish(final[0])


async def relay(receive: Callable[[], Awaitable[bytes]], reply: Reply, keep_alive_s: float) -> None:
    """Messages onto the stream, comments into silence, until the source ends (trio.EndOfChannel)."""
    while not reply.gone:
        message = None
        with trio.move_on_after(keep_alive_s):
            try:
                message = await receive()
            except trio.EndOfChannel:
                return
        await (reply.keep_alive() if message is None else reply.event(message))
