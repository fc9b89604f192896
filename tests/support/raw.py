"""A raw ASGI application that behaves by path, and the bytes of a client that has no library."""

import struct

import trio

from broker.config import Limits, Settings, Streams
from gateways.listen import Bounds, Receive, Scope, Send
from tests.support.network import Served
from tests.support.peers import exchange

UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: keep-alive, Upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
)
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
GET_ONCE = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
SMALL = Settings(limits=Limits(frame_bytes=1000))
LIVELY = Settings(limits=Limits(frame_bytes=1000), streams=Streams(ping_s=0.1, dead_s=0.8))
QUICK = Bounds(send_s=0.5, linger_s=0.5, orphan_s=1, grace_s=0.5)
HASTY = Bounds(header_s=0.4)
"""Short bounds make a busy machine look like a bad client: each stands only where it is what a test waits for."""


class App:
    """Answers `ok`, or misbehaves by path."""

    def __init__(self) -> None:
        self.started = 0
        self.ended = 0
        self.flooded = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.started += 1
        try:
            await self.http(scope, receive, send)
        finally:
            self.ended += 1

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/raise":
            raise RuntimeError("a fault")
        if path == "/cancelled":
            with trio.CancelScope() as done:
                done.cancel()
                await send({"type": "http.response.start", "status": 200, "headers": []})
        headers = [(b"content-length", b"2")] if path == "/" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if path == "/raise-late":
            raise RuntimeError("a fault")
        while path == "/flood":
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            self.flooded += 1
        if path == "/shield":
            with trio.CancelScope(shield=True):
                await send({"type": "http.response.body", "body": b"x" * 50_000_000, "more_body": True})
        if path == "/hang":
            await trio.sleep_forever()
        if path == "/follow":
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})


async def alive(served: Served) -> None:
    """A plain request is answered: whatever was done before did not end the server."""
    assert (await exchange(served.address, GET_ONCE)).endswith(b"\r\n\r\nok")


def frame(data: bytes, opcode: int = 1, *, fin: bool = True, mask: bytes = b"\0\0\0\0") -> bytes:
    """A client's WebSocket frame, masked with zeros so that its payload stands as it is."""
    first = (0x80 if fin else 0) | opcode
    if len(data) < 126:
        return struct.pack("!BB", first, 0x80 | len(data)) + mask + data
    return struct.pack("!BBH", first, 0x80 | 126, len(data)) + mask + data
