"""The load: keep-alive connections that call `echo` one after the other, each answer checked.

Requests are built beforehand but for the id, which also stands in the text: an answer that belongs to another
request can't pass. Sockets and a selector alone, so that the load costs little beside what it measures.
"""

import json
import selectors
import socket
import time
from typing import Any, Final
from urllib.parse import urlsplit

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
ERAS: Final = (MODERN, LEGACY)
CONNECTIONS: Final = 8
SILENCE_S: Final = 20.0
FIRST_ID: Final = 100_000_000
"""Ids have nine digits, so that all requests of a connection are of one length."""
_MARK: Final = "999999999"
_CLIENT: Final = {"name": "bench", "version": "1"}


class Connection:
    """One keep-alive connection with one request under way."""

    def __init__(self, url: str, era: str) -> None:
        parts = urlsplit(url)
        self._host, self._path = parts.netloc, parts.path
        self.socket = socket.create_connection((parts.hostname, parts.port), SILENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._id = 0
        names = {"MCP-Protocol-Version": era}
        if era == MODERN:
            names |= {"Mcp-Method": "tools/call", "Mcp-Name": "echo"}
        else:
            names["Mcp-Session-Id"] = self._handshake(era)
        self._before, self._between, self._after = self._call(era, names)

    def send(self, id: int) -> None:
        """The next call; its answer must have been taken by `receive` before."""
        self._id = id
        digits = b"%d" % id
        self.socket.sendall(self._before + digits + self._between + digits + self._after)

    def receive(self) -> bool:
        """Read what there is; True once the answer is whole and right. Raises RuntimeError for a wrong one."""
        data = self.socket.recv(65_536)
        if not data:
            raise RuntimeError(f"the server closed the connection: {self._received[:500]!r}")
        self._received += data
        found = whole(self._received)
        if found is None:
            return False
        head, body = found
        self._received = b""
        answer: dict[str, Any] = json.loads(message(head, body))
        result = answer.get("result", {})
        right = {"result": f"echo {self._id}"}
        if (
            answer.get("id") != self._id
            or result.get("isError", False)
            or result.get("structuredContent") != right
        ):
            raise RuntimeError(f"call {self._id} was answered {head[:40]!r} {answer}")
        return True

    def close(self) -> None:
        """Close the socket; what is under way is dropped."""
        self.socket.close()

    def _call(self, era: str, names: dict[str, str]) -> tuple[bytes, bytes, bytes]:
        params: dict[str, Any] = {"name": "echo", "arguments": {"text": f"echo {_MARK}"}}
        if era == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": era,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": _CLIENT,
            }
        request = {"jsonrpc": "2.0", "id": int(_MARK), "method": "tools/call", "params": params}
        before, between, after = self._post(request, names).split(_MARK.encode())
        return before, between, after

    def _post(self, message: dict[str, Any], names: dict[str, str]) -> bytes:
        body = json.dumps(message, separators=(",", ":")).encode()
        lines = {
            "Host": self._host,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **names,
            "Content-Length": str(len(body)),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {self._path} HTTP/1.1\r\n{head}\r\n".encode() + body

    def _handshake(self, era: str) -> str:
        """A session of its own; the name that the server gave it."""
        params = {"protocolVersion": era, "capabilities": {}, "clientInfo": _CLIENT}
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        head = self._exchange(self._post(opening, {}))
        lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
        session = next((value.strip() for name, _, value in lines if name.lower() == "mcp-session-id"), "")
        if not session:
            raise RuntimeError(f"no session was given: {head!r}")
        names = {"MCP-Protocol-Version": era, "Mcp-Session-Id": session}
        self._exchange(self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, names))
        return session

    def _exchange(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        received = b""
        while (found := whole(received)) is None:
            data = self.socket.recv(65_536)
            if not data:
                raise RuntimeError(f"the server closed the connection: {received[:500]!r}")
            received += data
        return found[0]


def drive(url: str, era: str, seconds: float, first_id: int) -> tuple[int, float]:
    """Call for so long on CONNECTIONS connections; the number of right answers, and the seconds that they took.

    Ids count from `first_id` (FIRST_ID or more). Raises RuntimeError for a wrong answer or a silent server.
    """
    connections = [Connection(url, era) for _ in range(CONNECTIONS)]
    try:
        with selectors.DefaultSelector() as selector:
            for each in connections:
                selector.register(each.socket, selectors.EVENT_READ, each)
            return _drive(selector, connections, seconds, first_id)
    finally:
        for each in connections:
            each.close()


def _drive(
    selector: selectors.BaseSelector, connections: list[Connection], seconds: float, first_id: int
) -> tuple[int, float]:
    began = time.perf_counter()
    end = began + seconds
    next_id, done, under_way = first_id, 0, len(connections)
    for each in connections:
        each.send(next_id)
        next_id += 1
    while under_way:
        ready = selector.select(SILENCE_S)
        if not ready:
            raise RuntimeError(f"no answer for {SILENCE_S:.0f} s")
        for key, _ in ready:
            if not key.data.receive():
                continue
            done += 1
            if time.perf_counter() < end:
                key.data.send(next_id)
                next_id += 1
            else:
                under_way -= 1
    return done, time.perf_counter() - began


def whole(received: bytes) -> tuple[bytes, bytes] | None:
    """Head and body of a response, once it is there whole: by its length or its last chunk."""
    head, found, rest = received.partition(b"\r\n\r\n")
    if not found:
        return None
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        return (head, _unchunked(rest)) if rest.endswith(b"0\r\n\r\n") else None
    _, found, after = lower.partition(b"content-length:")
    size = int(after.split(b"\r\n", 1)[0]) if found else 0
    return (head, rest) if len(rest) >= size else None


def _unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
    return body


def message(head: bytes, body: bytes) -> bytes:
    """The text of a response's JSON-RPC message: its body, or the data of its last event."""
    if b"text/event-stream" in head.lower():
        return [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()][-1]
    return body
