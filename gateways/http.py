"""Hypercorn on our sockets: the only file that knows it.

1. A fault in one connection ends that one (Hypercorn 0.18's Trio worker ends with it: pgjones/hypercorn#225).
2. HTTP/1.1 and WebSocket alone: HTTP/2 would bring many streams past bounds that count connections.
3. A WebSocket is closed by the book: the code is sent and our side closed, then the far end has a moment for its
   own.
4. When the shutdown's time is over every socket is closed, whatever clients do.
5. A request costs few turns of the loop: a body that is there whole is one message, and one task watches over a
   connection's idle times.
"""

import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

import h11
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as ConnectionEvent
from hypercorn.protocol.events import Body, Data, EndBody, Event, Request, StreamClosed
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol, H11WSConnection
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr
from wsproto.connection import ConnectionState as WebSocketState
from wsproto.events import CloseConnection, Message, Ping

from broker.config import Settings
from gateways.listen import (
    App,
    Bounds,
    DeadlineStream,
    Network,
    Places,
    Receive,
    Scope,
    Send,
    place_of,
    tune,
)

log = logging.getLogger(__name__)

BUSY: Final = b"HTTP/1.1 503 \r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


async def serve_http(
    app: App,
    listeners: Sequence[trio.SocketListener],
    settings: Settings,
    *,
    shutdown: trio.Event,
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
    tls: ssl.SSLContext | None = None,
    proxies: Sequence[Network] = (),
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application until `shutdown` is set and the connections have ended.

    After the shutdown no connection is taken, idle ones close, and `bounds.grace_s` later all do. The
    application hears of the shutdown by itself (it holds the same event). `proxies` are exempt from the bound
    on connections from one address. Cancelling closes every socket at once. Lifespan events are not sent.
    """
    server = _Server(app, settings, bounds, tls, proxies)
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(trio.serve_listeners, server.accept, list(listeners), handler_nursery=connections)
            )
            task_status.started()
            await shutdown.wait()
            accepting.cancel_scope.cancel()
        await server.context.terminated.set()
        connections.start_soon(server.end_after, bounds.grace_s, connections.cancel_scope)


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS 1.2 or newer with HTTP/1.1 alone. Raises OSError or ssl.SSLError for files that can't be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _config(settings: Settings, bounds: Bounds) -> Config:
    config = Config()
    config.errorlog = log
    config.include_server_header = False
    config.keep_alive_timeout = bounds.keep_alive_s
    config.keep_alive_max_requests = 2**62
    config.websocket_max_message_size = settings.limits.frame_bytes
    config.websocket_ping_interval = settings.streams.ping_s
    return config


class _Server:
    """What all connections of a port share."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        bounds: Bounds,
        tls: ssl.SSLContext | None,
        proxies: Sequence[Network],
    ) -> None:
        self.app = app
        self.settings = settings
        self.bounds = bounds
        self.tls = tls
        self.proxies = proxies
        self.config = _config(settings, bounds)
        self.context = WorkerContext(None)
        self.places = Places(bounds)
        self.streams: set[DeadlineStream] = set()
        self.gone = trio.Event()
        """Set when, after the shutdown, the last connection has ended."""

    async def accept(self, stream: trio.SocketStream) -> None:
        """One connection, from its first byte to its end. Raises nothing but Cancelled."""
        try:
            place = place_of(stream.socket.getpeername()[0], self.proxies)
        except OSError:  # the peer has already left
            await trio.aclose_forcefully(stream)
            return
        if not self.places.take(place):
            await _turn_away(stream, self.tls is None)
            return
        connection = _Connection(self, stream)
        self.streams.add(connection.raw)
        try:
            await connection.live()
        except* Exception as faults:
            log.warning("a connection ended by a fault: %s", ", ".join(sorted(_names(faults))))
        finally:
            self.streams.discard(connection.raw)
            self.places.leave(place)
            connection.raw.abort()
            if self.context.terminated.is_set() and not self.streams:
                self.gone.set()

    async def end_after(self, seconds: float, scope: trio.CancelScope) -> None:
        """Give the connections their time, then close the sockets under whatever still sends or reads."""
        with trio.move_on_after(seconds):
            if self.streams:
                await self.gone.wait()
        for each in list(self.streams):
            each.abort()
        scope.cancel()


def _names(faults: BaseExceptionGroup[BaseException]) -> set[str]:
    """The kinds of the exceptions; their words may hold what a client sent."""
    names: set[str] = set()
    for each in faults.exceptions:
        names |= _names(each) if isinstance(each, BaseExceptionGroup) else {type(each).__qualname__}
    return names


async def _turn_away(stream: trio.SocketStream, plain: bool) -> None:
    """No place: say so if that takes no waiting, and close."""
    with trio.move_on_after(0.1):
        if plain:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.send_all(BUSY)
    await trio.aclose_forcefully(stream)


class _Connection(TCPServer):
    """Hypercorn's connection over our stream, with bounds on its silence and on its end."""

    def __init__(self, server: _Server, stream: trio.SocketStream) -> None:
        self.bounds = server.bounds
        self.dead_s = server.settings.streams.dead_s
        self.inner = server.app
        self.scope = trio.CancelScope()
        self._idle_until = trio.current_time() + self.bounds.keep_alive_s
        """Infinite while a request is under way."""
        self._idle = trio.CancelScope()
        self._watching = trio.CancelScope()
        tune(stream, self.dead_s)
        self.raw = DeadlineStream(stream, self.bounds.send_s, partial(self.end_within, self.bounds.orphan_s))
        self.tls: trio.SSLStream[DeadlineStream] | None = None
        if server.tls is not None:
            self.tls = trio.SSLStream(self.raw, server.tls, server_side=True, https_compatible=True)
        super().__init__(
            ASGIWrapper(self.run_app),  # type: ignore[arg-type]  # its scope types are narrower than a dict
            server.config,
            server.context,
            {},
            self.tls or self.raw,  # type: ignore[arg-type]  # any stream with a socket does
        )

    def end_within(self, seconds: float) -> None:
        """Bound what is left of this connection's life."""
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + seconds)

    async def live(self) -> None:
        """Run to the end; the handshake and the first headers within `header_s`."""
        self.scope.deadline = trio.current_time() + self.bounds.header_s
        with self.scope:
            await self.run()

    async def run_app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, once a request's headers have arrived."""
        self.scope.deadline = float("inf")
        await self.inner(scope, receive, send)

    async def half_close(self) -> None:
        """Send nothing more, so that the far end closes at once (RFC 6455, 7.1.1), and leave it `linger_s` for that.

        TLS can only close both ways: there the far end's answer is the end. Not to be cancelled.
        """
        self.end_within(self.bounds.linger_s)
        if self.tls is None:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self.bounds.linger_s):
                async with self.send_lock:
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await self.raw.send_eof()

    def upgraded(self) -> None:
        """From now on pings are answered, so that silence means a dead peer."""
        self.raw.quiet_s = self.dead_s

    async def run(self) -> None:
        """As Hypercorn's, but for HTTP/1.1 alone, and with nothing left behind when the client goes."""
        socket = self.raw.socket
        try:
            if self.tls is not None:
                await self.tls.do_handshake()
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            async with TaskGroup() as group:
                self._task_group = group
                protocol = _Protocol(
                    self.app,
                    self.config,
                    self.context,
                    group,
                    ConnectionState({}),
                    self.tls is not None,
                    client,
                    server,
                    self.protocol_send,
                )
                protocol.owner = self
                self.protocol = protocol  # type: ignore[assignment]  # what Hypercorn's wrapper would choose
                group.spawn(self._watch_idle)
                await self._read_data()
                self._watching.cancel()
                self.end_within(self.bounds.orphan_s)
        except (OSError, trio.BrokenResourceError):
            pass
        finally:
            await self._close()

    async def _watch_idle(self) -> None:
        """Close the connection when it was idle too long, or is idle at the shutdown.

        One that has a request under way at the shutdown is closed by the protocol, after its answer.
        """
        with self._watching:
            while True:
                with trio.CancelScope(deadline=self._idle_until) as self._idle:
                    await self.context.terminated.wait()
                if self._idle_until <= trio.current_time() or not self._idle.cancelled_caught:
                    break  # else a request came in the very moment in which the time was over
            if self._idle_until == float("inf"):
                return
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self.bounds.linger_s):
                await self._initiate_server_close()

    async def protocol_send(self, event: ConnectionEvent) -> None:
        """As Hypercorn's; but what follows an answer (closing, waiting for the next request) is always done.

        An application that has heard of the end may cancel the very task that tells us (Quart-Trio does).
        """
        if isinstance(event, RawData):
            if event.data:  # the end of an answer with a length has no bytes
                await super().protocol_send(event)
            return
        if isinstance(event, Updated):
            until = trio.current_time() + self.bounds.keep_alive_s if event.idle else float("inf")
            self._idle_until = self._idle.deadline = until
            return
        if isinstance(event, Closed):
            self.end_within(self.bounds.orphan_s)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + self.bounds.linger_s):
            await super().protocol_send(event)


class _Protocol(H11Protocol):
    """HTTP/1.x and the change to WebSocket; no HTTP/2 in any disguise."""

    owner: _Connection

    async def handle(self, event: ConnectionEvent) -> None:
        """As Hypercorn's; what has come of a body without its end goes on to the application."""
        await super().handle(event)
        if isinstance(self.stream, _Exchange):
            await self.stream.pass_on()

    async def _check_protocol(self, event: h11.Request) -> None:
        """An offer of h2c is ignored, as RFC 9110, 7.8 allows."""

    async def _create_stream(self, request: h11.Request) -> None:
        if request.http_version not in (b"1.0", b"1.1"):
            await self._send_error_response(505)
            await self.send(Closed())
            return
        headers = list(request.headers)
        kind: type[HTTPStream | WSStream] = _Exchange
        if _wants_websocket(request.method, headers):
            # permessage-deflate is never agreed on: 64 KiB of it unpack to 64 MiB.
            headers = [each for each in headers if each[0] != b"sec-websocket-extensions"]
            kind = _WebSocket
        self.stream = kind(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        if isinstance(self.stream, _WebSocket):
            self.owner.upgraded()
            self.stream.owner = self.owner
            self.connection = H11WSConnection(cast(h11.Connection, self.connection))
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=headers,
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1


def _wants_websocket(method: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    if method != b"GET":
        return False
    given = {name: value.decode("latin-1").lower() for name, value in headers}
    tokens = [each.strip() for each in given.get(b"connection", "").split(",")]
    return "upgrade" in tokens and given.get(b"upgrade", "").strip() == "websocket"


class _Exchange(HTTPStream):
    """A request and its answer; a body that came whole reaches the application as one message."""

    _piece: bytes | None = None

    async def handle(self, event: Event) -> None:
        if isinstance(event, Body) and not self.closed:
            await self.pass_on()
            self._piece = bytes(event.data)
        elif isinstance(event, EndBody) and self._piece is not None and not self.closed:
            await self.pass_on(more=False)
        else:
            await super().handle(event)

    async def pass_on(self, *, more: bool = True) -> None:
        """Hand over the piece that waits for what comes after it."""
        piece, self._piece = self._piece, None
        if piece is not None and not self.closed and self.app_put is not None:
            await self.app_put({"type": "http.request", "body": piece, "more_body": more})


class _WebSocket(WSStream):
    """A WebSocket that counts bytes, names its closes, and waits a moment for the far end's."""

    owner: _Connection
    _size = 0
    _deaf = False
    _pings: trio.CancelScope | None = None

    async def handle(self, event: Event) -> None:
        if isinstance(event, Body | Data) and not self.closed:
            if self._deaf:
                return
            if not self.handshake.accepted:
                await self._refuse_early()
                return
        await super().handle(event)
        if self.closed and self._pings is not None:
            self._pings.cancel()

    async def _send_pings(self) -> None:
        """The library's task would sleep on after the end, up to ping_s, and hold up its connection's end."""
        with trio.CancelScope() as self._pings:
            await super()._send_pings()

    async def _refuse_early(self) -> None:
        """Bytes after the upgrade and before our answer: nobody may send these (RFC 6455, 4.1)."""
        self.closed = True  # first of all: the application may be about to accept (the fault of #225)
        await self._send_error_response(400)
        await self._tell(1006)
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def app_send(self, message: Any) -> None:
        if message is None and not self.closed:
            if self.state is ASGIWebsocketState.CONNECTED:
                await self._end(1011)
                return
            if self.state is ASGIWebsocketState.CLOSED:  # our code is out, the far end has its moment
                return
        connected = self.state is ASGIWebsocketState.CONNECTED
        await super().app_send(message)
        if connected and self.state is ASGIWebsocketState.CLOSED:
            await self._leave()

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, Message):
                await self._message(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            elif isinstance(event, CloseConnection):
                state = self.connection.state
                if state is WebSocketState.OPEN or state is WebSocketState.LOCAL_CLOSING:
                    # What can't be parsed (1002, 1007): nothing that follows has a meaning.
                    self._deaf = True
                    if state is WebSocketState.OPEN:
                        await self._end(event.code, event.reason)
                    return
                if state is WebSocketState.REMOTE_CLOSING:
                    await self._send_wsproto_event(event.response())
                await self.send(StreamClosed(stream_id=self.stream_id))

    async def _message(self, event: Message[Any]) -> None:
        if self.state is not ASGIWebsocketState.CONNECTED:
            return
        data = event.data
        self._size += len(data.encode()) if isinstance(data, str) and not data.isascii() else len(data)
        if self._size > self.config.websocket_max_message_size:
            await self._end(1009, "a frame beyond the limit")
            return
        self.buffer.extend(event)
        if event.message_finished:
            message = self.buffer.to_message()
            self.buffer.clear()
            self._size = 0
            if self.app_put is not None:
                await self.app_put(message)

    async def _end(self, code: int, reason: str | None = None) -> None:
        """Close from our side: the code out, the application told, messages that still come thrown away."""
        self.state = ASGIWebsocketState.CLOSED
        self.buffer.clear()
        await self._send_wsproto_event(CloseConnection(code=code, reason=reason))
        await self._leave()
        await self._tell(code)

    async def _leave(self) -> None:
        """Our code is out, and nothing may follow it."""
        if self._pings is not None:
            self._pings.cancel()
        await self.owner.half_close()

    async def _tell(self, code: int) -> None:
        if self.app_put is not None:
            await self.app_put({"type": "websocket.disconnect", "code": code})
