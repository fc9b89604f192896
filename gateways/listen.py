"""Accepted sockets made safe for any protocol: deadlines on writes, bounds on connections, dead peers found.

1. A write that makes no progress breaks the connection: a client that stops reading holds up nobody.
2. The number of connections is bounded, in all and from one address; loopback and our own proxies are exempt
   from the second bound.
3. What one address is, is the broker's to say (an IPv4 address, an IPv6 /64); who is exempt from counting at a
   port is said here, once for all ports.
"""

import ipaddress
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec
import trio

from broker.actors.guard import place_of as client_of

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application, as every door here has it (ASGI 3.0)."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

EXEMPT: Final = ""
"""The place of all those to whom the bound on one address does not apply."""
PIECE: Final = 65_536
"""Bytes that must leave within the deadline; also how much is written at once."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a listening port allows. Seconds, and numbers of connections."""

    header_s: float = 10.0
    """From accepting to the end of the first request's headers, a TLS handshake included (slow loris)."""
    body_s: float = 30.0
    """For the whole body of one request."""
    send_s: float = 10.0
    """For 64 KiB to leave; beyond it the connection is broken."""
    keep_alive_s: float = 75.0
    """How long an idle connection is kept: longer than the clients' pools keep theirs."""
    linger_s: float = 2.0
    """For the far end to read an answer given before its whole request."""
    orphan_s: float = 30.0
    """How long work may go on after its client has gone."""
    grace_s: float = 7.5
    """From the shutdown to the end of the last connection, whatever clients do."""
    connections: int = 4096
    per_address: int = 256


class DeadlineStream(trio.abc.Stream):
    """A socket stream whose writes have a deadline of their own, and that asks the kernel first.

    `socket` is the Trio socket below. `on_break` is called once when a write fails or its deadline passes;
    the stream is then closed. What the kernel takes or gives at once costs a quarter less than trio.SocketStream's,
    and is no checkpoint where it is a write: who writes without end has to yield by itself.
    """

    def __init__(
        self, stream: trio.SocketStream, send_s: float, on_break: Callable[[], None] = lambda: None
    ) -> None:
        self.stream = stream
        self.socket = stream.socket
        self.send_s = send_s
        self._on_break = on_break
        self._broken = False
        self._waiting = False
        """Whether a write waits for the kernel: another in between would tear it."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send everything. Raises BrokenResourceError when a piece takes longer than `send_s`.

        Cancelling one that waits closes the stream: nobody knows which part was sent.
        """
        if self._broken:
            raise trio.BrokenResourceError("an earlier write failed")
        if self._waiting:
            raise trio.BusyResourceError("another write is under way")
        view = memoryview(data)
        for start in range(0, len(view), PIECE):
            piece = view[start : start + PIECE]
            sent = self._write(piece)
            if sent < len(piece):
                await self._send_rest(piece[sent:])

    def _write(self, piece: memoryview) -> int:
        """What the kernel takes now. The descriptor is asked for each time: a closed one's number is soon another's."""
        try:
            return os.write(self.socket.fileno(), piece)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.abort()
            raise trio.BrokenResourceError(error.strerror) from error

    async def _send_rest(self, piece: memoryview) -> None:
        self._waiting, whole = True, False
        try:
            with trio.fail_after(self.send_s):
                await self.stream.send_all(piece)
            whole = True
        except trio.TooSlowError:
            raise trio.BrokenResourceError("the far end does not read") from None
        finally:
            self._waiting = False
            if not whole:
                self.abort()

    async def wait_send_all_might_not_block(self) -> None:
        """As the socket stream's, without a deadline."""
        await self.stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Some bytes, b"" at the end. Raises BrokenResourceError, ClosedResourceError. Cancelling loses nothing."""
        while (descriptor := self.socket.fileno()) >= 0:
            await trio.lowlevel.wait_readable(descriptor)
            try:
                return os.read(self.socket.fileno(), max_bytes or PIECE)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError(error.strerror) from error
        raise trio.ClosedResourceError("the stream is closed")

    async def send_eof(self) -> None:
        """Say that nothing more will be sent."""
        await self.stream.send_eof()

    async def aclose(self) -> None:
        """Close the socket."""
        await self.stream.aclose()

    def abort(self) -> None:
        """Close the socket now, under any write or read that waits. Never blocks."""
        if not self._broken:
            self._broken = True
            self.socket.close()
            self._on_break()


def tune(stream: trio.SocketStream, dead_s: float) -> None:
    """Have the kernel find a dead peer: unacknowledged data or unanswered probes for `dead_s` seconds."""
    probe_s = max(1, round(dead_s / 3))
    options = [("SO_KEEPALIVE", socket.SOL_SOCKET, 1)]
    options += [(name, socket.IPPROTO_TCP, value) for name, value in _tcp_options(dead_s, probe_s).items()]
    for name, level, value in options:
        number = getattr(socket, name, None)
        if number is not None:
            with suppress(OSError):
                stream.socket.setsockopt(level, number, value)


def _tcp_options(dead_s: float, probe_s: int) -> dict[str, int]:
    return {
        "TCP_KEEPIDLE": probe_s,
        "TCP_KEEPINTVL": probe_s,
        "TCP_KEEPCNT": 2,
        "TCP_USER_TIMEOUT": round(dead_s * 1000),
    }


@lru_cache(maxsize=1024)  # the peer, the Host and ourselves are read again at each request
def read_hop(text: str) -> Address | None:
    """The address of one hop: `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]`, `[::1]:80`; None for anything else.

    An IPv4 address mapped into IPv6 is the IPv4 address, and a zone is dropped.
    """
    text = text.strip()
    if text.startswith("["):
        text, closed, port = text[1:].partition("]")
        if not closed or (port and not _is_port(port)):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not _is_port(f":{port}"):
            return None
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6


def values_of(scope: Scope, header: bytes) -> list[bytes]:
    """All values of a header, which is named in small letters, as they came."""
    return [value for name, value in scope["headers"] if name.lower() == header]


def peer_of(scope: Scope) -> Address | None:
    """Who is at the other end of the connection, a proxy maybe; None where that is not known."""
    client = scope.get("client")
    return read_hop(client[0]) if client else None


def is_proxy(address: Address, proxies: Sequence[Network]) -> bool:
    """Whether an address is a proxy of ours."""
    return any(address in network for network in proxies)


def place_of(address: str | None, proxies: Sequence[Network]) -> str:
    """What a connection from `address` is counted by; EXEMPT for loopback, our proxies and what has no address."""
    hop = read_hop(address) if address is not None else None
    if hop is None or hop.is_loopback or is_proxy(hop, proxies):
        return EXEMPT
    return client_of(str(hop)) or EXEMPT


class Places:
    """The connections that a port has room for."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._by_place: Counter[str] = Counter()
        self.taken = 0

    def take(self, place: str) -> bool:
        """Take room for a connection from a `place_of`; False: there is none."""
        if self.taken >= self._bounds.connections:
            return False
        if place != EXEMPT and self._by_place[place] >= self._bounds.per_address:
            return False
        self.taken += 1
        self._by_place[place] += 1
        return True

    def leave(self, place: str) -> None:
        """Give the room back."""
        self.taken -= 1
        self._by_place[place] -= 1
        if not self._by_place[place]:
            del self._by_place[place]
