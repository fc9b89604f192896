"""The opening handshake of a WebSocket: from an accepted stream to an open WebSocket, or a plain refusal.

1. The head is read whole and counted before the codec sees it; nothing may follow it before our answer.
2. Whoever is refused is told why in plain HTTP, and given a moment to read it. The caller bounds the time.
"""

import logging
from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Any, Final

import trio
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from broker.app import Broker, Caller
from broker.wire.refusals import Refusal
from gateways import render, requestid
from gateways.caller import identify
from gateways.gate import Gate, refused
from gateways.listen import Network

HEAD_BYTES: Final = 16_384
"""The largest request head; a signed Authorization header has about 700 bytes."""
LINGER_S: Final = 1.0
"""Seconds for a refused peer to read why."""
PATHS: Final = frozenset({"/", "/ws"})

Peer = tuple[str, int] | None
Stream = trio.SocketStream | trio.SSLStream[Any]

codec_log = logging.getLogger(f"{__name__}.codec")
codec_log.setLevel(logging.WARNING)  # the codec tells of each connection at INFO


async def shake_hands(
    broker: Broker,
    stream: Stream,
    peer: Peer,
    proxies: Sequence[Network],
    origins: Collection[str] | None,
    read: bytes = b"",
    *,
    gate: Gate | None = None,
) -> tuple[ServerProtocol, Caller] | None:
    """The codec of an open connection, with its answer still to be sent, and who asks; None: it was refused.

    A browser's Origin is refused unless it stands in `origins`; None: it was judged before. `read`: what was read
    from the stream already. `gate` takes tokens. Raises what the stream raises. Cancelling leaves the stream half-way:
    close it.
    """
    opened = await _negotiate(broker, stream, peer, proxies, origins, read, gate)
    if isinstance(opened, bytes):
        await _finish(stream, opened)
        return None
    return opened


async def turn_away(stream: Stream) -> None:
    """No place for another connection: say so where that takes no TLS handshake."""
    if not isinstance(stream, trio.SSLStream):
        await _finish(stream, _plain(503, [(b"retry-after", b"5")], b"too many connections\n"))


async def _negotiate(
    broker: Broker,
    stream: Stream,
    peer: Peer,
    proxies: Sequence[Network],
    origins: Collection[str] | None,
    read: bytes,
    gate: Gate | None,
) -> tuple[ServerProtocol, Caller] | bytes:
    """As `shake_hands`; bytes are the refusal to send."""
    head = await _read_head(stream, read)
    if isinstance(head, int):
        return _plain(head, [], b"not a WebSocket handshake\n")
    protocol = ServerProtocol(max_size=broker.settings.limits.frame_bytes, logger=codec_log)
    protocol.receive_data(head)
    events = protocol.events_received()
    if not events or not isinstance(request := events[0], Request):
        return b"".join(protocol.data_to_send()) or _plain(400, [], b"not HTTP/1.1\n")
    status = _judge(request, origins)
    if status is not None:
        return _plain(status, [], b"refused\n")
    scope = _scope(request, peer)
    caller = await identify(broker, scope, proxies, bearer=gate.admit if gate is not None else None)
    if isinstance(caller, Refusal):
        return _plain(*refused(caller, scope, gate))
    response = protocol.accept(request)
    response.headers["X-Request-Id"] = requestid.current()
    protocol.send_response(response)
    if protocol.state is not State.OPEN:
        return b"".join(protocol.data_to_send())
    return protocol, caller


def find_peer(transport: trio.SocketStream) -> Peer:
    """The far end's address and port; None where it has none (a Unix socket, a memory stream) or has left."""
    try:
        name = transport.socket.getpeername()
    except (AttributeError, OSError):
        return None
    return (name[0], name[1]) if isinstance(name, tuple) else None


async def _read_head(stream: Stream, read: bytes) -> bytes | int:
    """The request's head, or the status that refuses it. Nothing may follow it before our answer (RFC 6455, 4.1)."""
    head = bytearray(read)
    while (end := head.find(b"\r\n\r\n")) < 0:
        if len(head) > HEAD_BYTES:
            return 431
        data = await stream.receive_some(HEAD_BYTES)
        if not data:
            return 400
        head += data
    if end + 4 > HEAD_BYTES:
        return 431
    return bytes(head) if end + 4 == len(head) else 400


def _judge(request: Request, origins: Collection[str] | None) -> int | None:
    """The status with which a request is refused before the handshake is looked at."""
    try:
        origin = request.headers.get("Origin")
    except LookupError:  # several
        return 400
    if origin is not None and origins is not None and origin not in origins:
        return 403
    return None if request.path.partition("?")[0] in PATHS else 404


def _scope(request: Request, peer: Peer) -> dict[str, Any]:
    """What `identify` reads, in ASGI's form."""
    headers = [
        (name.lower().encode(), value.encode("latin-1")) for name, value in request.headers.raw_items()
    ]
    return {"type": "websocket", "client": peer, "headers": headers, "query_string": b""}


def _plain(status: int, headers: render.Headers, body: bytes) -> bytes:
    """A plain HTTP answer that ends the connection."""
    lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode())]
    lines += [b"%b: %b" % header for header in headers]
    lines += [b"connection: close", b"content-length: %d" % len(body), b"", body]
    return b"\r\n".join(lines)


async def _finish(stream: Stream, data: bytes) -> None:
    """Send the last words, and wait a moment for the peer to close: a reset would destroy them on the way."""
    with trio.move_on_after(LINGER_S):
        await stream.send_all(data)
        if isinstance(stream, trio.SSLStream):
            await stream.aclose()
            return
        await stream.send_eof()
        while await stream.receive_some(HEAD_BYTES):
            pass
