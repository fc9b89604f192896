"""Seats at the arena: connections with one request under way, over a WebSocket or over MCP (Streamable HTTP).

Read by hand, a few microseconds an answer; neither is a client for use. Each frames what is asked of the arena, and
gives what comes back as the JSON-RPC message that it is.
"""

import json
import socket
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from bench.kit.server import Broker
from bench.kit.websocket import SILENCE_S, Lost, Socket, control, frame, measure, request
from bench.load import MODERN, message, whole

READ_BYTES: Final = 32_768
Over = Literal["ws", "mcp"]
OVER: Final[tuple[Over, ...]] = ("ws", "mcp")


class Account(msgspec.Struct, frozen=True):
    """A balance, and whose."""

    kind: str
    account_id: str
    balance: int


class Artifact(msgspec.Struct, frozen=True):
    """Where a finished session is read."""

    ref: str


class Session(msgspec.Struct, frozen=True):
    """What a player has to know of a session."""

    session_id: str
    status: str
    version: int
    account: Account
    net: int
    legal_actions: list[dict[str, Any]]
    artifact: Artifact | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What an action led to."""

    facts: dict[str, Any] | None
    change: int
    session: Session


class Seat:
    """One connection of one agent; one request under way."""

    socket: socket.socket

    def __init__(self) -> None:
        self.sent = b""
        """The last request, as it left."""
        self.told = b""
        """What answered it: the whole message."""

    def frame(self, id: int, tool: str, arguments: bytes) -> bytes:
        """A call of a tool, as it stands on the wire."""
        raise NotImplementedError

    def take(self) -> bytes | None:
        """Read once; the answer's message once it is there whole. Raises Lost."""
        raise NotImplementedError

    def read(self, message: bytes, kind: Any) -> tuple[int, Any]:
        """The id and the result of a message. Raises Lost where it is a refusal or something else."""
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        """Send a request as `frame` made it."""
        self.sent = data
        self.socket.sendall(data)

    def wait(self) -> bytes:
        """The answer to what was sent, however long it takes to come. Raises Lost, TimeoutError."""
        self.socket.settimeout(SILENCE_S)
        while (found := self.take()) is None:
            pass
        return found

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class _Answer(msgspec.Struct):
    id: int
    result: msgspec.Raw = msgspec.Raw()


class _Called(msgspec.Struct):
    structuredContent: msgspec.Raw = msgspec.Raw()
    isError: bool = False


class WebSocketSeat(Seat):
    """Over the public port's /ws, by the agent's token."""

    def __init__(self, broker: Broker, token: str) -> None:
        super().__init__()
        opened = Socket(broker.ws)
        opened.ask("authenticate", {"token": token})
        self.socket = opened.socket
        self._rest = opened.rest

    def frame(self, id: int, tool: str, arguments: bytes) -> bytes:
        return frame(request(id, tool, arguments))

    def take(self) -> bytes | None:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise Lost("the broker closed a connection")
        data, at, found = self._rest + data, 0, None
        while at < len(data):
            start, end = measure(data, at)
            if not end or end > len(data):
                break
            if data[at] != 0x81:
                self.socket.sendall(control(data[at], data[start:end]))
            elif found is None:
                found = data[start:end]
            else:
                raise Lost(f"two answers to one request: {data[start:end]!r}")
            at = end
        self._rest = data[at:]
        return found

    def read(self, message: bytes, kind: Any) -> tuple[int, Any]:
        answer = _ANSWERS.decode(message)
        if not answer.result:
            raise Lost(f"refused: {message!r}")
        return answer.id, kind.decode(answer.result)


class McpSeat(Seat):
    """Over POST /mcp, keep-alive, in the era without a handshake, by the agent's token."""

    def __init__(self, broker: Broker, token: str) -> None:
        super().__init__()
        parts = urlsplit(broker.http)
        self.socket = socket.create_connection((parts.hostname, parts.port), SILENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._heads = {name: self._head(parts.netloc, token, name) for name in TOOLS}

    def frame(self, id: int, tool: str, arguments: bytes) -> bytes:
        params = b'{"name":"%b","arguments":%b,"_meta":%b}' % (tool.encode(), arguments, _META)
        body = request(id, "tools/call", params)
        return self._heads[tool] + b"%d\r\n\r\n" % len(body) + body

    def take(self) -> bytes | None:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise Lost(f"the broker closed a connection: {self._received[:300]!r}")
        self._received += data
        found = whole(self._received)
        if found is None:
            return None
        self._received = b""
        return message(*found)

    def read(self, message: bytes, kind: Any) -> tuple[int, Any]:
        answer = _ANSWERS.decode(message)
        called = _CALLS.decode(answer.result) if answer.result else _Called(isError=True)
        if called.isError:
            raise Lost(f"refused: {message!r}")
        return answer.id, kind.decode(called.structuredContent)

    def _head(self, host: str, token: str, tool: str) -> bytes:
        lines = {
            "Host": host,
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST /mcp HTTP/1.1\r\n{head}Content-Length: ".encode()


SEATS: Final[dict[Over, type[WebSocketSeat | McpSeat]]] = {"ws": WebSocketSeat, "mcp": McpSeat}
TOOLS: Final = ("open_session", "submit_action")
_ANSWERS: Final = msgspec.json.Decoder(_Answer)
_CALLS: Final = msgspec.json.Decoder(_Called)
_META: Final = json.dumps(
    {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    }
).encode()
