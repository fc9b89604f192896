"""Streams without sockets, and real sockets on port 0, for tests of anything that listens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

from broker.config import Settings
from gateways.http import serve_http
from gateways.listen import App, Bounds

MemoryStream = trio.StapledStream[trio.abc.SendStream, trio.abc.ReceiveStream]


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """A listener whose far ends are made by `connect`: no port, no kernel, virtual time."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[trio.abc.Stream](64)

    async def connect(self) -> trio.abc.Stream:
        """A new connection's client end. Raises BrokenResourceError when the listener is closed."""
        ours, theirs = memory_stream_pair()
        await self._send.send(theirs)
        return ours

    async def accept(self) -> trio.abc.Stream:
        """The next connection's server end."""
        try:
            return await self._receive.receive()
        except trio.ClosedResourceError:
            raise
        except trio.EndOfChannel as error:
            raise trio.ClosedResourceError from error

    async def aclose(self) -> None:
        self._receive.close()
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def listening(
    handler: Callable[[trio.SocketStream], Awaitable[object]],
) -> AsyncIterator[tuple[str, int]]:
    """Serve `handler` on a port of the kernel's choice; gives the address, stops on leaving."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        yield listeners[0].socket.getsockname()[:2]
        nursery.cancel_scope.cancel()


def refused_port() -> int:
    """A port of loopback where, a moment ago, nobody listened."""
    with trio.socket.socket() as probe:
        probe.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_REUSEADDR, 1)
        probe._sock.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """A server that `serving` runs: its address and its shutdown."""

    def __init__(self, address: tuple[str, int], shutdown: trio.Event) -> None:
        self.address = address
        self.shutdown = shutdown
        self.ended = trio.Event()
        self.url = f"http://{address[0]}:{address[1]}"


@asynccontextmanager
async def serving(
    app: App,
    settings: Settings = Settings(),  # noqa: B008  # frozen
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
    **options: Any,
) -> AsyncIterator[Served]:
    """An ASGI application behind the real HTTP server on a real port; shut down on leaving."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    served = Served(listeners[0].socket.getsockname()[:2], trio.Event())

    async def run(task_status: trio.TaskStatus[None]) -> None:
        await serve_http(
            app,
            listeners,
            settings,
            bounds=bounds,
            shutdown=served.shutdown,
            task_status=task_status,
            **options,
        )
        served.ended.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        try:
            yield served
        finally:
            served.shutdown.set()
            with trio.CancelScope(shield=True), trio.move_on_after(0.5):
                await served.ended.wait()
            nursery.cancel_scope.cancel()


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where connections would go; none gets there."""
    addresses: list[Any] = []

    async def connect(self: Any, address: Any) -> None:
        addresses.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr("trio._socket._SocketType.connect", connect)
    return addresses
