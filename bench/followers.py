"""Followers of a stream, over a WebSocket or over SSE: connections that say what events have come, as whole texts.

Both read by hand, a few microseconds an event; neither is a client for use.
"""

import secrets
import socket
import time
from typing import Final
from urllib.parse import urlsplit

from bench.kit.parties import Dealer
from bench.kit.websocket import SILENCE_S, Lost, control, measure
from broker.wire.statement import build_statement
from gateways.caller import write_proof

READ_BYTES: Final = 65_536
FOLLOW_S: Final = 3600
"""Seconds for which a read capability is signed."""


class Follower:
    """One connection that follows one stream from now on."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.rest = b""

    def take(self) -> list[bytes]:
        """Read once; the texts of the events that are whole with it. Raises Lost where the stream ends."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise Lost("a follower's connection was closed")
        return self.split(self.rest + data)

    def split(self, data: bytes) -> list[bytes]:
        """The whole events in `data`; what is left waits in `rest`."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class WebSocketFollower(Follower):
    """Over the dealing port or the public port's /ws: the connection proves the key, then follows."""

    def __init__(self, url: str, dealer: Dealer) -> None:
        opened = Dealer(url, dealer.code, key=dealer.key).socket
        super().__init__(opened.socket)
        self.rest = opened.rest

    def split(self, data: bytes) -> list[bytes]:
        found: list[bytes] = []
        at = 0
        while at < len(data):
            start, end = measure(data, at)
            if not end or end > len(data):
                break
            if data[at] == 0x81:
                found.append(data[start:end])
            else:
                self.socket.sendall(control(data[at], data[start:end]))
            at = end
        self.rest = data[at:]
        return found


class SseFollower(Follower):
    """GET /rings/<code>, with a follow statement of the desk's key in the Authorization header; or another stream, with
    the authorization that it needs."""

    def __init__(self, http: str, dealer: Dealer) -> None:
        self.begin(http, f"/rings/{dealer.code}", f"Turret {proof(dealer)}")

    def begin(self, http: str, path: str, authorization: str) -> None:
        """Connect, ask, and take the resume. Raises Lost, OSError."""
        parts = urlsplit(http)
        Follower.__init__(self, socket.create_connection((parts.hostname, parts.port), SILENCE_S))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._text = b""
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: text/event-stream\r\n"
            f"Authorization: {authorization}\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._read()
        head, _, self.rest = head.partition(b"\r\n\r\n")
        if b" 200" not in head.split(b"\r\n", 1)[0] or b"transfer-encoding: chunked" not in head.lower():
            raise Lost(f"no stream: {head[:300]!r}")
        first = self.split(self.rest)
        while not first:
            first = self.split(self.rest + self._read())
        if not first[0].startswith(b"event: resume") or len(first) != 1:
            raise Lost(f"a stream began with {first[0][:100]!r}")

    def _read(self) -> bytes:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise Lost("the stream was closed before it began")
        return data

    def split(self, data: bytes) -> list[bytes]:
        self._text += self._unchunk(data)
        *whole, self._text = self._text.split(b"\n\n")
        found = [each for each in whole if not each.startswith(b":")]
        for each in found:
            if each.startswith(b"event: closed"):
                raise Lost(f"a stream was closed: {each!r}")
        return found

    def _unchunk(self, data: bytes) -> bytes:
        """The bodies of the whole chunks in `data` (RFC 9112, 7.1); what is left waits in `rest`."""
        found: list[bytes] = []
        at = 0
        while (line := data.find(b"\r\n", at)) > 0:
            size = int(data[at:line], 16)
            if len(data) < line + 2 + size + 2:
                break
            found.append(data[line + 2 : line + 2 + size])
            at = line + 2 + size + 2
        self.rest = data[at:]
        return b"".join(found)


def proof(dealer: Dealer) -> str:
    """What shows that a read of the desk's stream is its key's own."""
    now = int(time.time())
    text, sig = build_statement(
        "follow", dealer.key, dealer.wire, now, secrets.token_hex(16), code=dealer.code, until=now + FOLLOW_S
    )
    return write_proof(text, sig)
