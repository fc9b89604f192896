"""Streams without sockets, and real sockets on port 0, for tests of anything that listens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from trio.testing import memory_stream_pair

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
