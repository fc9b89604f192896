"""The public port: connections taken, counted, kept apart from each other, and ended in time.

1. A fault in one connection ends that one.
2. HTTP/1.0 and 1.1 alone: HTTP/2 would bring many streams past bounds that count connections.
3. When the shutdown's time is over every socket is closed, whatever clients do.
"""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from broker.config import Settings
from gateways.connection import Connection
from gateways.listen import App, Bounds, Network, Places, place_of, tune
from gateways.sockets import Sockets

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
    sockets: Sockets | None = None,
    door: str = "http",
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application until `shutdown` is set and the connections have ended.

    After the shutdown no connection is taken, idle ones close, and `bounds.grace_s` later all do. The
    application hears of the shutdown by itself (it holds the same event). `proxies` are exempt from the bound
    on connections from one address. Cancelling closes every socket at once. All scopes are of the type `http`:
    for anything else an application takes the connection (cycle.TAKE). `sockets` counts the connections as `door`'s.
    """
    server = _Server(app, settings, bounds, tls, proxies, shutdown, sockets or Sockets(), door)
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(trio.serve_listeners, server.accept, list(listeners), handler_nursery=connections)
            )
            task_status.started()
            await shutdown.wait()
            accepting.cancel_scope.cancel()
        connections.start_soon(server.end_after, bounds.grace_s, connections.cancel_scope)


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS 1.2 or newer, HTTP/1.1 alone, one handshake. Raises OSError, which names the files, where it can't be had."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # older OpenSSLs let a client ask for handshakes without end
    try:
        context.load_cert_chain(certificate, key)
    except OSError as fault:  # ssl's own are OSErrors, too; none of them says which file
        why = fault.strerror or fault
        raise OSError(
            f"TLS with the certificate {certificate} and the key {key} can't be had: {why}"
        ) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Server:
    """What all connections of a port share."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        bounds: Bounds,
        tls: ssl.SSLContext | None,
        proxies: Sequence[Network],
        shutdown: trio.Event,
        sockets: Sockets,
        door: str,
    ) -> None:
        self._app = app
        self._sockets = sockets
        self._door = door
        self._dead_s = settings.streams.dead_s
        self._bounds = bounds
        self._tls = tls
        self._proxies = proxies
        self._shutdown = shutdown
        self._places = Places(bounds)
        self._connections: set[Connection] = set()
        self._gone = trio.Event()
        """Set when, after the shutdown, the last connection has ended."""

    async def accept(self, stream: trio.SocketStream) -> None:
        """One connection, from its first byte to its end. Raises nothing but Cancelled."""
        try:
            place = place_of(stream.socket.getpeername()[0], self._proxies)
        except OSError:  # the peer has already left
            await trio.aclose_forcefully(stream)
            return
        if self._shutdown.is_set() or not self._places.take(place):
            await _turn_away(stream, self._tls is None)
            return
        tune(stream, self._dead_s)
        connection = Connection(self._app, stream, self._bounds, self._tls, self._shutdown)
        self._connections.add(connection)
        try:
            with self._sockets.held(self._door):
                await connection.live()
        finally:
            self._connections.discard(connection)
            self._places.leave(place)
            if self._shutdown.is_set() and not self._connections:
                self._gone.set()

    async def end_after(self, seconds: float, scope: trio.CancelScope) -> None:
        """Give the connections their time, then close the sockets under whatever still sends or reads."""
        for each in list(self._connections):
            each.stop()
        with trio.move_on_after(seconds):
            if self._connections:
                await self._gone.wait()
        for each in list(self._connections):
            each.cut()
        scope.cancel()


async def _turn_away(stream: trio.SocketStream, plain: bool) -> None:
    """No place: say so if that takes no waiting, and close."""
    with trio.move_on_after(0.1):
        if plain:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.send_all(BUSY)
    await trio.aclose_forcefully(stream)
