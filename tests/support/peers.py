"""Far ends that misbehave on purpose, over any Trio stream: slow, silent, cut, byte by byte."""

import socket as stdlib_socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import h11
import trio


@asynccontextmanager
async def dial(address: tuple[str, int]) -> AsyncIterator[trio.SocketStream]:
    """A plain connection to (host, port)."""
    stream = await trio.open_tcp_stream(*address)
    async with stream:
        yield stream


@asynccontextmanager
async def stalled(
    address: tuple[str, int], data: bytes, window: int = 4096
) -> AsyncIterator[trio.SocketStream]:
    """A client that asks and then never reads, with as small a receive window as the kernel allows."""
    socket = trio.socket.socket()
    socket.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_RCVBUF, window)
    await socket.connect(address)
    stream = trio.SocketStream(socket)
    async with stream:
        await stream.send_all(data)
        yield stream


async def read_all(stream: trio.abc.ReceiveStream, seconds: float = 5, *, clean: bool = False) -> bytes:
    """Everything until the far end closes or (unless `clean`) resets; TooSlowError when it does neither."""
    received = bytearray()
    with trio.fail_after(seconds):
        try:
            while data := await stream.receive_some(65_536):
                received += data
        except trio.BrokenResourceError:
            if clean:
                raise
    return bytes(received)


async def read_until(stream: trio.abc.ReceiveStream, mark: bytes, seconds: float = 5) -> bytes:
    """Everything up to and with `mark`, and whatever came in the same read; EOFError if it never comes."""
    received = bytearray()
    with trio.fail_after(seconds):
        while mark not in received:
            data = await stream.receive_some(65_536)
            if not data:
                raise EOFError(bytes(received))
            received += data
    return bytes(received)


async def exchange(address: tuple[str, int], data: bytes, seconds: float = 5) -> bytes:
    """Send raw bytes on a new connection and give all that comes back until it is closed."""
    async with dial(address) as stream:
        with suppress(trio.BrokenResourceError):
            await stream.send_all(data)
        return await read_all(stream, seconds)


async def trickle(stream: trio.abc.SendStream, data: bytes, pause_s: float = 0.0) -> None:
    """Send byte by byte, each in a packet of its own as far as the stream allows."""
    for place in range(len(data)):
        await stream.send_all(data[place : place + 1])
        await trio.sleep(pause_s)


async def eventually(seen: Callable[[], bool], seconds: float = 3) -> None:
    """Wait until something in this process has become true; for what gives no event to wait for."""
    for _ in range(round(seconds * 100)):
        if seen():
            return
        await trio.sleep(0.01)
    raise trio.TooSlowError


class Download:
    """An HTTP response read piece by piece, for streams: httpx's own generators can't be left half-way."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT)
        self.status = 0
        self.headers: dict[str, str] = {}

    async def ask(self, path: str, headers: Mapping[str, str]) -> None:
        """GET, and read the answer's head."""
        asked = [("host", "localhost"), *headers.items()]
        data = self._http.send(h11.Request(method="GET", target=path, headers=asked))
        await self._stream.send_all((data or b"") + (self._http.send(h11.EndOfMessage()) or b""))
        event = await self._event()
        assert isinstance(event, h11.Response)
        self.status = event.status_code
        self.headers = {name.decode(): value.decode() for name, value in event.headers}

    async def read(self) -> bytes:
        """The next piece of the body; b"" at its end in good order. EOFError when it is cut."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _event(self) -> h11.Event:
        with trio.fail_after(5):
            while (event := self._http.next_event()) is h11.NEED_DATA:
                data = await self._stream.receive_some(65_536)
                if not data:
                    raise EOFError
                self._http.receive_data(data)
        assert isinstance(event, h11.Event)
        return event
