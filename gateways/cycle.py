"""One request and its answer over h11, as ASGI's scope, receive and send.

1. Nothing runs beside the application: its body is read when it asks for it, and whoever waits in `receive`
   after the body reads the socket, which is how a client is seen to leave.
2. An answer's head leaves with the first of its body, as ASGI has it: a short answer is one write.
3. An application may take the connection itself (TAKE), for what is no HTTP.

Source: ASGI 3.0 (HTTP); RFC 9110, RFC 9112.
"""

import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import unquote

import h11
import msgspec
import trio

from gateways.listen import Message, Scope

READ_BYTES: Final = 65_536
AHEAD: Final = 65_536
"""Bytes of later requests that are kept while one is answered; beyond it nothing more is read."""
PIECES: Final = 64
"""Pieces of a body that are read in one go; a body in chunks of one byte costs 10 µs a byte."""
TAKE: Final = "turret.take"
"""The extension of the scope: () → the connection's bare stream, and what was read since the request began.

Nothing may have been received or sent. When the application returns the connection is closed.
"""

Stream = trio.SocketStream | trio.SSLStream[Any]
Heads = list[tuple[bytes, bytes]]


class Ends(msgspec.Struct, frozen=True):
    """Both ends of a connection, as scopes name them, and its bare stream."""

    scheme: str
    client: tuple[str, int] | None
    server: tuple[str, int] | None
    bare: Stream


async def feed(http: h11.Connection, stream: trio.abc.ReceiveStream) -> bool:
    """Read once and give it to h11; False at the end, or when the connection is broken. Cancelling loses nothing."""
    try:
        data = bytes(await stream.receive_some(READ_BYTES))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        data = b""
    http.receive_data(data)
    return bool(data)


class Cycle:
    """One request under way. `left` is called once when the client is seen to leave; `ending`: the port closes.

    A body that is not whole within `body_s` seconds counts as a client that left.
    """

    def __init__(
        self,
        http: h11.Connection,
        stream: trio.abc.Stream,
        request: h11.Request,
        ends: Ends,
        left: Callable[[], None],
        ending: trio.Event,
        body_s: float,
    ) -> None:
        self._http = http
        self._stream = stream
        self._request = request
        self._ends = ends
        self._left = left
        self._ending = ending
        self._until = trio.current_time() + body_s
        self._more = True
        """Whether the body has not ended."""
        self._gone = False
        self._head: h11.Response | None = None
        """What the application said and nobody sent yet."""
        self._started = False
        self._ended = False
        self._bodiless = False
        self._waiting: trio.CancelScope | None = None
        """Around who waits for the end."""
        self._status = 500
        """What the client is told where the application says nothing; 0: it left, and an error would be a lie."""
        self.taken = False
        """Whether the application took the connection."""
        self.scope = _scope(request, ends, self._take)

    async def receive(self) -> Message:
        """The body, piece by piece; then http.disconnect, once the client leaves or the answer has ended.

        Cancelling loses nothing.
        """
        if not self._more or self._gone:
            await self._wait_end()
        elif (message := await self._read_body()) is not None:
            return message
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """The answer. What a client that left was to get is dropped. Raises RuntimeError out of turn.

        Cancelling breaks the connection where a part was sent.
        """
        kind = message["type"]
        if kind == "http.response.start" and not (self._started or self.taken):
            self._head = self._response(int(message["status"]), message.get("headers", []))
            self._started = True
        elif kind == "http.response.body" and self._started and not self._ended:
            await self._send_body(message.get("body", b""), message.get("more_body", False))
        else:
            raise RuntimeError(f"{kind} out of turn")

    async def finish(self) -> bool:
        """After the application: answer where it did not. Whether the connection may serve another request."""
        http = self._http
        if http.our_state is h11.SEND_RESPONSE and self._status:
            self._head = refusal(self._status)
            await self._send_body(b"", False)
        if http.their_state is h11.SEND_BODY:
            self._skip()
        return http.our_state is h11.DONE and http.their_state is h11.DONE and not self._ending.is_set()

    def _take(self) -> tuple[Stream, bytes]:
        """See TAKE. The head is written anew out of what h11 found good."""
        self.taken = True
        request = self._request
        lines = [b"%b %b HTTP/%b" % (request.method, request.target, request.http_version)]
        lines += [b"%b: %b" % header for header in request.headers.raw_items()]
        return self._ends.bare, b"\r\n".join([*lines, b"", self._http.trailing_data[0]])

    async def _read_body(self) -> Message | None:
        """What there is of the body, or the next of it; None when it can't be read to its end."""
        http, pieces = self._http, list[bytes]()
        if http.they_are_waiting_for_100_continue:
            await self._write(http.send(h11.InformationalResponse(status_code=100, headers=[_date()])))
        try:
            while len(pieces) < PIECES:
                event = http.next_event()
                if isinstance(event, h11.Data):
                    pieces.append(event.data)
                elif event is not h11.NEED_DATA:
                    self._more = False
                    break
                elif pieces:
                    break
                elif not await self._feed():
                    return None
            else:
                await trio.lowlevel.checkpoint()
        except h11.RemoteProtocolError as error:
            self._status = error.error_status_hint
            self._leave()
            return None
        return {"type": "http.request", "body": b"".join(pieces), "more_body": self._more}

    async def _feed(self) -> bool:
        """Read more of the body; False when its time is over. Of an early end h11 tells."""
        with trio.move_on_at(self._until):
            await feed(self._http, self._stream)
            return True
        self._status = 408
        self._leave()
        return False

    async def _wait_end(self) -> None:
        http = self._http
        with trio.CancelScope() as self._waiting:
            while not (self._ended or self._gone):
                if len(http.trailing_data[0]) > AHEAD:
                    await trio.sleep_forever()
                elif not await feed(http, self._stream):
                    self._status = 0
                    self._leave()
            await trio.lowlevel.checkpoint()

    def _leave(self) -> None:
        if not self._gone:
            self._gone = True
            self._left()

    async def _send_body(self, body: bytes, more: bool) -> None:
        http, head = self._http, self._head
        parts = []
        if head is not None:
            self._head = None
            parts.append(http.send(head))
            self._bodiless = self._request.method == b"HEAD" or head.status_code in (204, 304)
        if body and not self._bodiless:
            parts.append(http.send(h11.Data(data=body)))
        if not more:
            parts.append(http.send(h11.EndOfMessage()))
            self._ended = True
            if self._waiting is not None:
                self._waiting.cancel()
        await self._write(b"".join(part for part in parts if part))
        if more:
            await trio.lowlevel.checkpoint()  # a write that need not wait is none

    async def _write(self, data: bytes | None) -> None:
        if data:
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._leave()

    def _response(self, status: int, headers: Heads) -> h11.Response:
        last = [(b"connection", b"close")] if self._ending.is_set() else []
        return h11.Response(status_code=status, headers=[*headers, *last, _date()])

    def _skip(self) -> None:
        """Throw away what has come of a body that nobody asked for."""
        try:
            for _ in range(PIECES):
                if not isinstance(self._http.next_event(), h11.Data):
                    return
        except h11.RemoteProtocolError:
            return


def refusal(status: int) -> h11.Response:
    """The head of an answer that the port gives by itself, without a body."""
    headers = [(b"content-length", b"0"), (b"connection", b"close"), _date()]
    return h11.Response(status_code=status, headers=headers)


def _scope(request: h11.Request, ends: Ends, take: Callable[[], tuple[Stream, bytes]]) -> Scope:
    path, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "http_version": request.http_version.decode(),
        "method": request.method.decode().upper(),
        "scheme": ends.scheme,
        "path": unquote(path.decode()),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
        "client": ends.client,
        "server": ends.server,
        "extensions": {TAKE: take},
    }


_dated: tuple[int, tuple[bytes, bytes]] = (0, (b"date", b""))


def _date() -> tuple[bytes, bytes]:
    """The Date header, made once a second (RFC 9110, 6.6.1)."""
    global _dated
    now = int(time.time())
    if _dated[0] != now:
        _dated = now, (b"date", formatdate(now, usegmt=True).encode())
    return _dated[1]
