"""One accepted connection of the public port: TLS, then one request after the other, within its times.

1. One task for all of it: the application runs in it, and no deadline has a task of its own.
2. It ends by itself, by its deadline, or because the port closes; an idle one then ends at once.
3. Who is told why the connection ends gets a moment to read it: a reset would destroy it on the way.
"""

import logging
import ssl
from contextlib import suppress
from functools import partial
from typing import Any, Final

import h11
import trio

from gateways.bodies import DRAIN_BYTES
from gateways.cycle import READ_BYTES, Cycle, Ends, feed, refusal
from gateways.listen import App, Bounds, DeadlineStream

log = logging.getLogger(__name__)

VERSIONS: Final = frozenset({b"1.0", b"1.1"})
HEAD_BYTES: Final = 16_384
"""The largest head of a request; a signed Authorization header has about 700 bytes."""


class Connection:
    """See the module. `ending` is set when the port closes; then call `stop`, and `cut` when its time is over."""

    def __init__(
        self,
        app: App,
        stream: trio.SocketStream,
        bounds: Bounds,
        tls: ssl.SSLContext | None,
        ending: trio.Event,
    ) -> None:
        self._app = app
        self._bare = stream
        self._bounds = bounds
        self._ending = ending
        self._scope = trio.CancelScope()
        self._raw = DeadlineStream(stream, bounds.send_s, partial(self._end_within, bounds.orphan_s))
        self._tls: trio.SSLStream[DeadlineStream] | None = None
        if tls is not None:
            self._tls = trio.SSLStream(self._raw, tls, server_side=True, https_compatible=True)
        self._stream: trio.abc.Stream = self._tls or self._raw
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._idle = True
        self._cycle: Cycle | None = None

    async def live(self) -> None:
        """Serve to the end; the handshake and the first head within `header_s`. Raises nothing but Cancelled.

        The socket is closed then, in any case.
        """
        self._scope.deadline = trio.current_time() + self._bounds.header_s
        try:
            with self._scope, suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                if self._tls is not None:
                    await self._tls.do_handshake()
                await self._serve(self._ends())
        except* Exception as faults:
            log.warning("a connection ended by a fault: %s", ", ".join(sorted(names(faults))))
        finally:
            self._raw.abort()

    def stop(self) -> None:
        """The port closes: end if nothing is under way. What is ends by itself, after its answer."""
        if self._idle:
            self._scope.cancel()

    def cut(self) -> None:
        """End now, under whatever still sends or reads."""
        if (
            self._cycle is not None and self._cycle.taken
        ):  # its reader and its writer hold the socket by its number
            self._scope.cancel()
        else:
            self._raw.abort()

    def _end_within(self, seconds: float) -> None:
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + seconds)

    def _ends(self) -> Ends:
        socket = self._bare.socket
        scheme, bare = ("http", self._bare) if self._tls is None else ("https", self._tls)
        return Ends(scheme, _address(socket.getpeername()), _address(socket.getsockname()), bare)

    async def _serve(self, ends: Ends) -> None:
        while (request := await self._next()) is not None:
            self._idle, self._scope.deadline = False, float("inf")
            cycle = self._cycle = Cycle(
                self._http,
                self._stream,
                request,
                ends,
                partial(self._end_within, self._bounds.orphan_s),
                self._ending,
                self._bounds.body_s + self._bounds.linger_s,  # a door that counts by itself is first
            )
            try:
                await self._app(cycle.scope, cycle.receive, cycle.send)
            except* Exception as faults:
                log.warning("an application failed: %s", ", ".join(sorted(names(faults))))
            if cycle.taken:
                return
            if not await cycle.finish():
                break
            ahead = self._http.trailing_data[0]
            self._http.start_next_cycle()
            self._idle, self._scope.deadline = True, trio.current_time() + self._bounds.keep_alive_s
            if ahead:  # else the next read is a checkpoint
                await trio.lowlevel.checkpoint()
        await self._leave()

    async def _next(self) -> h11.Request | None:
        """The next request's head; None: there is none, and whoever sent something else was told."""
        http, begun = self._http, False
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                if begun:
                    self._end_within(self._bounds.header_s)
                begun = await feed(http, self._stream)
        except h11.RemoteProtocolError as error:
            await self._refuse(error.error_status_hint)
            return None
        if not isinstance(event, h11.Request):
            return None
        if event.http_version not in VERSIONS or event.method == b"CONNECT":
            await self._refuse(501 if event.method == b"CONNECT" else 505)
            return None
        if framed_twice(event):
            await self._refuse(400)
            return None
        return event

    async def _refuse(self, status: int) -> None:
        http = self._http
        if http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            data = (http.send(refusal(status)) or b"") + (http.send(h11.EndOfMessage()) or b"")
            await self._stream.send_all(data)

    async def _leave(self) -> None:
        """Send nothing more, and let the far end read what was said, where it may not have sent all of its own."""
        self._scope.deadline = trio.current_time() + self._bounds.linger_s
        if self._tls is not None:
            await self._tls.aclose()  # TLS can only close both ways
            return
        await self._raw.send_eof()
        if self._http.their_state in (h11.SEND_BODY, h11.ERROR):
            size = 0
            while size < DRAIN_BYTES and (data := await self._raw.receive_some(READ_BYTES)):
                size += len(data)


def names(faults: BaseExceptionGroup[BaseException]) -> set[str]:
    """The kinds of the exceptions; their words may hold what a client sent."""
    found: set[str] = set()
    for each in faults.exceptions:
        found |= names(each) if isinstance(each, BaseExceptionGroup) else {type(each).__qualname__}
    return found


def framed_twice(request: h11.Request) -> bool:
    """Whether the body has two lengths: a proxy may have gone by the other one (RFC 9112, 6.3, rule 3)."""
    names = {name for name, _ in request.headers}
    return b"content-length" in names and b"transfer-encoding" in names


def _address(name: Any) -> tuple[str, int] | None:
    """A socket's name, as scopes have it; none for a Unix socket."""
    return (name[0], name[1]) if isinstance(name, tuple) else None
