"""One question, one answer: a tool of the wire asked without a stream, for commands and scripts.

1. Nothing is asked twice: what the wire says, or its silence, is the answer. Bots use a Desk instead.
2. A statement is signed for the pinned wire, by the wire's time, after the other end has shown that key.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec
import trio

from gateways.client.clockwork import WireClock
from gateways.client.errors import Disconnected
from gateways.client.link import ANSWER_S, Hello, read_hello
from gateways.client.mcp_link import ToolCaller
from gateways.client.pins import address, another_wire
from gateways.client.signer import join_params
from gateways.client.socket import Socket, open_socket


class Asker(Protocol):
    """An open line for single questions."""

    async def ask(self, tool: str, params: dict[str, Any]) -> bytes:
        """The tool's result as JSON text. Raises Refused, Disconnected, WireFault. Cancelling is safe for reads;
        the outcome of a change is then unknown."""
        ...

    async def greet(self) -> tuple[str, int]:
        """The wire's pk and its clock (Unix milliseconds), as the other end shows them."""
        ...

    async def bear(self, token: str) -> None:
        """Ask by an access token from now on. Raises as `ask`, where it is looked at at once."""
        ...


@asynccontextmanager
async def open_asker(url: str, *, ssl_context: ssl.SSLContext | None = None) -> AsyncIterator[Asker]:
    """A line to the broker at `url`: ws(s)://, http(s)://…/mcp, or its plain address. Raises Disconnected."""
    address(url)
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and parts.path.rstrip("/"):
        async with ToolCaller(url, ssl_context=ssl_context) as mcp:
            yield _OverMcp(mcp)
        return
    greeting = _Greeting()
    async with open_socket(websocket_url(url), greeting.notify, ssl_context=ssl_context) as socket:
        yield _OverWebSocket(socket, greeting)


def websocket_url(url: str) -> str:
    """The WebSocket of a broker's plain address is its /ws; a ws or wss URL stays as it is."""
    parts = urlsplit(url)
    if parts.scheme in ("ws", "wss"):
        return url
    return urlunsplit(("wss" if parts.scheme == "https" else "ws", parts.netloc, "/ws", "", ""))


async def check_wire(asker: Asker, wire: str, clock: WireClock) -> None:
    """See that the other end shows the pinned wire's key, and take over its time. Raises WireFault."""
    shown, now_ms = await asker.greet()
    if shown != wire:
        raise another_wire(shown, wire)
    clock.correct(now_ms)


class _OverMcp:
    def __init__(self, mcp: ToolCaller) -> None:
        self._mcp = mcp

    async def ask(self, tool: str, params: dict[str, Any]) -> bytes:
        wait_ms = params.get("wait_ms", 0)
        return await self._mcp.call(tool, join_params(params), ANSWER_S + wait_ms / 1000)

    async def bear(self, token: str) -> None:
        await trio.lowlevel.checkpoint()
        self._mcp.token = token

    async def greet(self) -> tuple[str, int]:
        info = msgspec.json.decode(await self.ask("wire_info", {}), type=dict[str, Any])
        return str(info.get("wire")), int(info.get("time", 0))


class _Greeting:
    """Keeps the hello; other notifications belong to streams, and there is none."""

    def __init__(self) -> None:
        self.hello: Hello | None = None
        self.came = trio.Event()

    def notify(self, method: str, params: bytes) -> None:
        if method == "hello":
            self.hello = read_hello(params)
            self.came.set()


class _OverWebSocket:
    def __init__(self, socket: Socket, greeting: _Greeting) -> None:
        self._socket = socket
        self._greeting = greeting

    async def ask(self, tool: str, params: dict[str, Any]) -> bytes:
        wait_ms = params.get("wait_ms", 0)
        return await self._socket.request(tool, join_params(params), ANSWER_S + wait_ms / 1000)

    async def bear(self, token: str) -> None:
        await self._socket.request("authenticate", join_params({"token": token}), ANSWER_S)

    async def greet(self) -> tuple[str, int]:
        with trio.move_on_after(ANSWER_S):
            await self._greeting.came.wait()
        if (hello := self._greeting.hello) is None:
            raise Disconnected(f"no greeting in {ANSWER_S:g} s: is that a wire?")
        return hello.wire, hello.time
