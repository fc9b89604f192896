"""The dealing port: WebSocket for fast bots on bare Trio streams (wire.md, WebSocket).

1. The codec is websockets' sans-I/O core (frames.py); all frames of one read are handled together, all that waits
   to be sent leaves in one write. No compression: it buys little on envelopes and costs a bound.
2. Each connection has one writer, and a way past it for what a socket takes at once while the writer sleeps
   (flush.py). A send that stalls ends the connection; a frame is never cut on an open one.
3. Every way out is bounded, whatever the peer does: handshake, stall, silence, close and shutdown have a time.
"""

import os
import select
import ssl
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import trio
from websockets.protocol import SEND_EOF, State
from websockets.server import ServerProtocol

from broker.app import Broker, Caller
from broker.clock import Clock
from gateways import render, requestid
from gateways.bodies import Held, Rooms
from gateways.flush import Direct
from gateways.frames import Messages
from gateways.gate import Gate
from gateways.handshake import Peer, Stream, find_peer, shake_hands, turn_away
from gateways.listen import Bounds, DeadlineStream, Network, Places, place_of, tune
from gateways.outbox import TAKE_BYTES, open_outbox
from gateways.poll import Poller, poller
from gateways.session import CLOSE_S, DRAIN_S, SYSTEM, Frame, Session, restart
from gateways.sockets import Sockets

READ_BYTES: Final = 16_384
"""One read. It bounds how many frames are parsed in one go: 2,700 empty ones, about 10 ms."""
TURN_AWAY_S: Final = 0.1
"""Seconds for telling a newcomer that there is no place."""
_GONE: Final = render.Close(1000, "")
"""The end where the peer began it, or has gone: the codec knows what is still to be sent."""


async def serve_dealing(
    broker: Broker,
    listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
    *,
    shutdown: trio.Event,
    ssl_context: ssl.SSLContext | None = None,
    proxies: Sequence[Network] = (),
    origins: Collection[str] = (),
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
    clock: Clock = SYSTEM,
    gate: Gate | None = None,
    sockets: Sockets | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the listeners until `shutdown`, then end every connection within DRAIN_S + CLOSE_S and return.

    A browser's Origin is refused unless it stands in `origins` (bots send none). `gate` takes tokens; without it none
    are taken. The listeners are closed at
    the end in any case. Cancelling cuts every connection at once; what was asked of the broker goes on there.
    """
    door = _Door(broker, shutdown, ssl_context, proxies, frozenset(origins), bounds, clock, gate)
    door.sockets = sockets or door.sockets
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            serve = partial(trio.serve_listeners, handler_nursery=connections)
            await accepting.start(serve, door.serve, list(listeners))
            task_status.started()
            await shutdown.wait()
            accepting.cancel_scope.cancel()
        for opening in list(door.opening):
            opening.cancel()
        for connection in list(door.live):
            connections.start_soon(connection.leave)


class _Door:
    """What connections share, and who is in."""

    def __init__(
        self,
        broker: Broker,
        shutdown: trio.Event,
        ssl_context: ssl.SSLContext | None,
        proxies: Sequence[Network],
        origins: frozenset[str],
        bounds: Bounds,
        clock: Clock,
        gate: Gate | None,
    ) -> None:
        self._gate = gate
        self.sockets = Sockets()
        self.live: set[_Connection] = set()
        self.opening: set[trio.CancelScope] = set()
        self._broker = broker
        self._shutdown = shutdown
        self._ssl_context = ssl_context
        self._proxies = proxies
        self._origins = origins
        self._bounds = bounds
        self._clock = clock
        self._places = Places(bounds)

    async def serve(self, transport: trio.SocketStream) -> None:
        """One connection from accept to end. Here alone its exceptions are contained: the others go on."""
        requestid.bind(requestid.new_id())
        stream: Stream = transport
        if self._ssl_context is not None:
            stream = trio.SSLStream(transport, self._ssl_context, server_side=True)
        peer = find_peer(transport)
        place = place_of(peer[0] if peer is not None else None, self._proxies)
        taken = self._places.take(place)
        connection = None
        try:
            if not taken:
                with trio.move_on_after(TURN_AWAY_S):
                    await turn_away(stream)
            elif (connection := await self._open(stream, peer)) is not None:
                if isinstance(transport, trio.SocketStream):
                    tune(transport, self._broker.settings.streams.dead_s)
                self.live.add(connection)
                with self.sockets.held("dealing", connection.outbox):
                    await connection.run()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # gone; nobody is left to be told
        except Exception as fault:
            render.incident(fault, "the dealing port")
        finally:
            if taken:
                self._places.leave(place)
            if connection is not None:
                self.live.discard(connection)

    async def _open(self, stream: Stream, peer: Peer) -> "_Connection | None":
        """TLS and the opening handshake, within `header_s`; None when there was none, or it was refused."""
        with trio.CancelScope(deadline=trio.current_time() + self._bounds.header_s) as opening:
            self.opening.add(opening)
            try:
                opened = await shake_hands(
                    self._broker, stream, peer, self._proxies, self._origins, gate=self._gate
                )
            finally:
                self.opening.discard(opening)
            if opened is not None and not self._shutdown.is_set():
                return _Connection(self._broker, stream, *opened, self._bounds, self._clock, self._gate)
        return None


async def carry(
    broker: Broker,
    stream: Stream,
    opened: tuple[ServerProtocol, Caller],
    *,
    shutdown: trio.Event,
    bounds: Bounds,
    clock: Clock,
    gate: Gate | None,
    rooms: Rooms,
    sockets: Sockets,
) -> None:
    """Serve one connection that `shake_hands` opened, as this port's own are, until it has ended; but that who bears a
    token may send larger frames, while there is one of `rooms` for it.

    After `shutdown` it ends within DRAIN_S + CLOSE_S. Raises what the stream raises, alone or grouped. Cancelling
    cuts it at once. The caller then closes the stream by force.
    """
    connection = _Connection(broker, stream, *opened, bounds, clock, gate, rooms=rooms)

    async def leave() -> None:
        await shutdown.wait()
        await connection.leave()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        with sockets.held("ws", connection.outbox):
            await connection.run()
        nursery.cancel_scope.cancel()


class _Connection:
    """One open connection: reader, writer, watchdog, and the session that they carry."""

    def __init__(
        self,
        broker: Broker,
        stream: Stream,
        protocol: ServerProtocol,
        caller: Caller,
        bounds: Bounds,
        clock: Clock,
        gate: Gate | None,
        *,
        rooms: Rooms | None = None,
    ) -> None:
        self._held = Held(rooms) if rooms is not None else None
        """Where who bears a token may send more: its place for that."""
        self._broker = broker
        self._clock = clock
        self._bearing = gate.admit if gate is not None else None
        self._bounds = bounds
        self._stream = stream
        self._protocol = protocol
        self._messages = Messages(protocol, broker.settings.limits.frame_bytes)
        self._caller = caller
        self.outbox = open_outbox(broker.settings.streams, text_frame)
        self._session: Session | None = None
        self._scope = trio.CancelScope()
        self._fd = stream.socket.fileno() if isinstance(stream, trio.SocketStream) else None
        """Where nothing lies between us and the kernel."""
        self._direct = Direct(self._fd, self.outbox, self._scope.cancel) if self._fd is not None else None
        self._rest: list[Frame] = []
        """Messages that came and have to wait."""
        self._eof = trio.Event()
        """Both closes are said: the writer half-closes when it has sent all."""
        self._seen = trio.current_time()
        self._paused = False
        """Whether we do not read now, so that silence proves nothing."""
        self._written = trio.Event()
        """The writer has sent all that it will."""

    async def run(self) -> None:
        """Serve until the peer has gone or was cut; the caller then closes the stream by force."""
        try:
            await self._serve()
        finally:
            if self._session is not None:
                self._session.close()
            if self._held is not None:
                self._held.leave()
            if self._direct is not None:
                self._direct.close()

    async def _serve(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._session = Session(
                    self._broker,
                    self._caller,
                    self.outbox,
                    nursery,
                    clock=self._clock,
                    bearing=self._bearing,
                    widen=self._widen,
                )
                self._flush()  # the handshake's answer
                self._session.greet()
                nursery.start_soon(self._write)
                nursery.start_soon(self._guard)
                await self._read(self._session)
                self._protocol.receive_eof()
                self._flush()
                self._session.leave()
                with trio.move_on_after(DRAIN_S):
                    await self._session.drain()
                self.outbox.end(_GONE)
                self._eof.set()
                await self._written.wait()
                nursery.cancel_scope.cancel()

    def _widen(self, principal: str) -> None:
        if self._held is not None:
            self._held.who = principal
            self._messages.widen(self._broker.settings.limits.token_bytes, self._held.take)

    def _give_back(self) -> None:
        """Give the place for what is large to others, where nothing large comes or is under way."""
        reads = self._session is not None and self._session.reads_large
        if self._held is not None and not (reads or self._paused or self._rest or self._messages.coming):
            self._held.leave()

    async def leave(self) -> None:
        """At shutdown: finish what is under way, then close with 1012; both bounded."""
        if self._session is not None:
            with trio.move_on_after(DRAIN_S):
                await self._session.drain()
        self.outbox.end(restart())

    async def _read(self, session: Session) -> None:
        """Read until the peer has closed its side."""
        if self._fd is not None and (watching := poller()) is not None:
            await self._watch(session, self._fd, watching)
            return
        while data := await self._receive():
            self._seen = trio.current_time()
            self._take(session, data)
            if self._rest or self.outbox.full:
                await self._wait(session)

    async def _receive(self) -> bytes:
        """What comes next; b"" at the end."""
        try:
            return bytes(await self._stream.receive_some(READ_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def _watch(self, session: Session, fd: int, watching: Poller) -> None:
        """Have what comes taken where it comes; this task does what has to wait, and nothing is read meanwhile."""
        stopped = trio.Event()
        over = False
        admission = self._broker.admission

        def ready() -> int:
            nonlocal over
            try:
                data = os.read(fd, READ_BYTES)
            except BlockingIOError:
                return 0
            except OSError:
                data = b""
            over = not data
            self._seen = watching.now
            admission.since = watching.since
            try:
                taken = self._take(session, data) if data else 0
            except BaseException:
                self._scope.cancel()
                raise
            finally:
                admission.since = None
            if over or self._rest or self.outbox.full:
                watching.remove(fd)
                stopped.set()
            return taken

        try:
            while not over:
                watching.add(fd, ready)
                await stopped.wait()
                stopped = trio.Event()
                await self._wait(session)
        finally:
            watching.remove(fd)

    def _take(self, session: Session, data: bytes) -> int:
        """Take what came as far as nothing has to be waited for, and keep the rest; how many messages it was."""
        outbox = self.outbox
        ending = outbox.closing is not None
        frames = self._messages.read(data)
        if self._messages.judged:
            self._messages.judged = False
            self._flush()
            if self._protocol.state is not State.OPEN:
                outbox.end(_GONE)  # the close frame itself waits in the outbox already
        if frames and not ending:  # also those before a close frame: END and close in one packet is usual
            self._rest = frames[session.take(frames) :]
        return len(frames)

    async def _wait(self, session: Session) -> None:
        """Do what has to wait: the rest of what came, and the room for answers (or for pongs that nobody reads)."""
        self._paused = True
        rest, self._rest = self._rest, []
        await session.receive(rest)
        await self.outbox.wait_room()
        self._paused = False
        self._seen = trio.current_time()

    def _flush(self) -> None:
        """Hand what the codec wants sent to the writer."""
        for data in self._protocol.data_to_send():
            if data == SEND_EOF:
                self._eof.set()
            else:
                self.outbox.put_raw(data)

    async def _write(self) -> None:
        """The one writer. Ends after the close frame, or when the connection is broken."""
        outbox, protocol = self.outbox, self._protocol
        try:
            while True:
                await outbox.wait_work()
                frames = outbox.take()
                if self._direct is not None and self._direct.rest:
                    frames.insert(0, self._direct.rest)
                    self._direct.rest = b""
                if frames:
                    await self._send(b"".join(frames))
                elif outbox.closing is not None and protocol.state is State.OPEN:
                    protocol.send_close(outbox.closing.code, outbox.closing.reason)
                    self._flush()
                elif outbox.closing is not None:
                    break
            await self._eof.wait()  # a far end that has answered our close waits for this alone
            await self._send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._scope.cancel()
        self._written.set()

    async def _send(self, data: bytes) -> None:
        """Send in pieces, each within `send_s`: who does not read is cut. Cancelling may cut a frame: only to end."""
        for start in range(0, len(data), TAKE_BYTES):
            with trio.move_on_after(self._bounds.send_s) as bound:
                await self._stream.send_all(data[start : start + TAKE_BYTES])  # no copy where it is the whole
            if bound.cancelled_caught:
                raise trio.BrokenResourceError("the far end does not read")

    async def _send_eof(self) -> None:
        """Close our side first, as a server should (RFC 6455, 7.1.1); TLS can only close both."""
        if isinstance(self._stream, trio.SSLStream):
            if self._protocol.close_rcvd is not None:
                await self._stream.aclose()
        else:
            await self._stream.send_eof()

    async def _guard(self) -> None:
        """Send pings; cut a peer that is silent; have what it holds given back; bound the close.

        A process that stood still (stopped, suspended, starved) has heard nobody and asked nobody: it asks again
        before it cuts, and what waits to be read is a sign of life.
        """
        streams = self._broker.settings.streams
        late_s = (streams.dead_s - streams.ping_s) / 2
        wake_at = ping_at = trio.current_time() + streams.ping_s
        while self.outbox.closing is None:
            now = trio.current_time()
            if now - wake_at >= late_s or (now >= self._seen + streams.dead_s and self._is_unread()):
                self._seen = ping_at = now
            dead_at = (now if self._paused else self._seen) + streams.dead_s
            if now >= dead_at:
                self._scope.cancel()
                return
            if now >= ping_at:
                self._protocol.send_ping(b"")
                self._flush()
                self._give_back()
                ping_at = now + streams.ping_s
            wake_at = min(ping_at, dead_at)
            with trio.move_on_at(wake_at):
                await self.outbox.ended.wait()
        self._scope.deadline = trio.current_time() + CLOSE_S

    def _is_unread(self) -> bool:
        """Whether something of the peer's waits in the kernel."""
        below = self._stream.transport_stream if isinstance(self._stream, trio.SSLStream) else self._stream
        if not isinstance(below, trio.SocketStream | DeadlineStream):
            return False
        waiting = select.poll()
        waiting.register(below.socket.fileno(), select.POLLIN)
        return bool(waiting.poll(0))


def text_frame(payload: bytes) -> bytes:
    """A server's unmasked text frame (RFC 6455, 5.2); five times as fast as the codec's own."""
    size = len(payload)
    if size < 126:
        return b"\x81%c%b" % (size, payload)
    if size < 65_536:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), payload)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), payload)
