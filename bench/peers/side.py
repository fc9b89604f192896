"""One party's connection as the load generator sees it, and the two carriers that most peers use."""

import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from bench.kit.websocket import SILENCE_S, control, frame, measure
from bench.peers.chains import Chain

READ_BYTES: Final = 65_536
ACK, ARRIVED = 0, 1
"""What a connection tells: our envelope n is acknowledged, or envelope n of the other party has come."""


class Told(NamedTuple):
    """One thing that a connection told, already checked against what was signed."""

    what: int
    n: int


class Side(Protocol):
    """What the load needs of a connection. Whatever is wrong raises RuntimeError: then the run has failed."""

    socket: socket.socket

    def send(self, n: int) -> None:
        """Send our envelope n."""

    def receive(self) -> list[Told]:
        """Read what there is; called when the socket can be read."""

    def close(self) -> None:
        """Close the socket."""


class Client(NamedTuple):
    """How to speak with a peer."""

    open: Callable[[str, Chain, int], Side]
    """(url, chain, party): connect, authenticate, subscribe; blocking. Party 0 is the caller, 1 the desk called."""
    missing: Callable[[str, Path, Sequence[Chain], Sequence[int]], list[str]]
    """(url, data, chains, sent): of each chain the first so many were acknowledged; what of it is not in the peer's
    store, read as another client or process would, while the server runs. [] when nothing is missing."""


def compare(
    found: Mapping[str, Mapping[int, str]], chains: Sequence[Chain], sent: Sequence[int]
) -> list[str]:
    """Conversation → n → signature as stored, beside what was acknowledged: nothing less, nothing else."""
    wrong: list[str] = []
    for chain, count in zip(chains, sent, strict=True):
        stored = found.get(chain.conv, {})
        lost = [n for n in range(count) if stored.get(n) != chain.sigs[n]]
        if lost or len(stored) != count:
            wrong.append(f"{chain.conv}: {count} acknowledged, {len(stored)} stored, not as sent: {lost[:5]}")
    return wrong


def connect(url: str) -> socket.socket:
    """A TCP connection to the URL's host, with TCP_NODELAY."""
    parts = urlsplit(url)
    found = socket.create_connection((parts.hostname, parts.port), SILENCE_S)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


class WebSocket:
    """A client's WebSocket that is there for any server: text frames alone, pings are answered."""

    def __init__(self, url: str) -> None:
        self.socket = connect(url)
        self._rest = b""
        parts = urlsplit(url)
        self.socket.sendall(
            f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._some()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"no WebSocket: {head[:300]!r}")

    def send_text(self, text: bytes) -> None:
        """Send one text frame."""
        self.socket.sendall(frame(text))

    def texts(self) -> list[bytes]:
        """The text frames that are there whole, after one read. Raises RuntimeError at the connection's end."""
        self._rest += self._some()
        return self._whole()

    def wait_text(self) -> bytes:
        """The next text frame, and there must be no other behind it: for the opening alone."""
        found = self._whole()
        while not found:
            found = self.texts()
        if len(found) > 1:
            raise RuntimeError(f"one frame was expected: {found!r}")
        return found[0]

    def close(self) -> None:
        """Close the socket; no closing handshake."""
        self.socket.close()

    def _whole(self) -> list[bytes]:
        data, at = self._rest, 0
        found: list[bytes] = []
        while True:
            start, end = measure(data, at)
            if not end or end > len(data):
                break
            if data[at] == 0x81:
                found.append(data[start:end])
            else:
                self.socket.sendall(control(data[at], data[start:end]))
            at = end
        self._rest = data[at:]
        return found

    def _some(self) -> bytes:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


class Http:
    """One keep-alive HTTP/1.1 connection with one request under way; answers by length or in chunks."""

    def __init__(self, url: str) -> None:
        self.socket = connect(url)
        parts = urlsplit(url)
        self._start = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        )
        self._received = b""

    def post(self, body: bytes, headers: str = "") -> None:
        """Send a request; its answer must be taken before the next."""
        self.socket.sendall(f"{self._start}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def answer(self) -> bytes | None:
        """The body of the answer after one read; None while it is not there whole. Raises RuntimeError."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise RuntimeError(f"the server closed the connection: {self._received[:300]!r}")
        self._received += data
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return None
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            if not rest.endswith(b"0\r\n\r\n"):
                return None
            rest = _unchunked(rest)
        else:
            size = int(lower.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or b"0")
            if len(rest) < size:
                return None
        self._received = b""
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head[:100]!r} {rest[:500]!r}")
        return rest

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


def _unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
    return body
