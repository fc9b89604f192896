"""A WebSocket client of few microseconds: a blocking socket, frames built ahead and read by hand.

It is no client for use: the mask is fixed (so that frames can be masked ahead), nothing is fragmented, and what a
broker never sends is a fault.
"""

import json
import socket
from collections import deque
from typing import Any, Final
from urllib.parse import urlsplit

from websockets.utils import apply_mask

SILENCE_S: Final = 20.0
READ_BYTES: Final = 32_768
"""One read: beyond 128 KiB the allocator would ask the kernel for each."""
MASK: Final = b"\x5a\x0f\xc3\x96"
_HEAD: Final = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n"
)


class Lost(Exception):
    """The connection ended, or said something that it may not; a benchmark then fails."""


class Refused(Exception):
    """The answer was an error; the message is its JSON text."""


def frame(payload: bytes) -> bytes:
    """A client's text frame, masked."""
    size = len(payload)
    if size < 126:
        head = b"\x81%c" % (size | 0x80)
    elif size < 65_536:
        head = b"\x81\xfe" + size.to_bytes(2, "big")
    else:
        head = b"\x81\xff" + size.to_bytes(8, "big")
    return head + MASK + apply_mask(payload, MASK)


def request(id: int, method: str, params: Any) -> bytes:
    """A request's text. `params` is JSON text, or what json can write."""
    text = params if isinstance(params, bytes) else json.dumps(params, separators=(",", ":")).encode()
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, method.encode(), text)


def measure(data: bytes, at: int) -> tuple[int, int]:
    """Where the payload of the frame at `at` begins and ends; (0, 0) while its head is not there."""
    size = data[at + 1] if len(data) - at >= 2 else 127
    if size < 126:
        return at + 2, at + 2 + size
    if size == 126 and len(data) - at >= 4:
        return at + 4, at + 4 + (data[at + 2] << 8 | data[at + 3])
    if size == 127 and len(data) - at >= 10:
        return at + 10, at + 10 + int.from_bytes(data[at + 2 : at + 10], "big")
    return 0, 0


class Socket:
    """One open connection. `hello`: params of the server's first frame; `rest`: bytes read and not yet used."""

    def __init__(self, url: str) -> None:
        """Connect, upgrade and take the hello. Raises Lost, OSError."""
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), SILENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.events: deque[dict[str, Any]] = deque()
        """Notifications that came while `ask` waited."""
        self._id = 0
        self.socket.sendall(_HEAD.format(path=parts.path or "/", host=parts.netloc).encode())
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise Lost(f"no upgrade: {head[:200]!r}")
        self.hello: dict[str, Any] = self.receive()["params"]

    def ask(self, method: str, params: Any) -> Any:
        """One request and its result. Raises Refused, Lost, TimeoutError."""
        self._id += 1
        self.socket.sendall(frame(request(self._id, method, params)))
        while (answer := self.receive()).get("id") != self._id:
            self.events.append(answer)
        if "result" not in answer:
            raise Refused(json.dumps(answer["error"]))
        return answer["result"]

    def receive(self) -> dict[str, Any]:
        """The next message; pings are answered."""
        while True:
            start, end = measure(self.rest, 0)
            while not end or len(self.rest) < end:
                self._more()
                start, end = measure(self.rest, 0)
            kind, payload, self.rest = self.rest[0], self.rest[start:end], self.rest[end:]
            if kind == 0x81:
                message: dict[str, Any] = json.loads(payload)
                return message
            answer = control(kind, payload)
            if answer:
                self.socket.sendall(answer)

    def close(self) -> None:
        """Close the socket without a word."""
        self.socket.close()

    def _more(self) -> None:
        data = self.socket.recv(65_536)
        if not data:
            raise Lost("the broker closed the connection")
        self.rest += data


def control(kind: int, payload: bytes) -> bytes:
    """What answers a frame that is no whole text: a ping's pong, nothing for a pong. Raises Lost for a close."""
    if kind == 0x89:
        return b"\x8a%c" % (len(payload) | 0x80) + MASK + apply_mask(payload, MASK)
    if kind == 0x8A:
        return b""
    if kind == 0x88:
        raise Lost(f"closed: {int.from_bytes(payload[:2], 'big')} {payload[2:].decode(errors='replace')}")
    raise Lost(f"a frame of a kind that was not expected: {kind:#x}")
