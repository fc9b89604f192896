"""A connection in memory that can be slow, silent, or cut: what a network does to a byte stream.

Bytes of a stream are not lost or doubled one by one (TCP sees to that): they come late, stop coming, or the
connection is cut. Each way holds a bounded number of bytes, so that who does not read holds up who sends.
"""

from collections import deque

import trio

ROOM = 65_536
"""Bytes that one way holds before its sender waits, as a socket's buffers would."""


class _Way:
    """One direction."""

    def __init__(self) -> None:
        self.latency_s = 0.0
        self.silent = False
        """Whether what is sent reaches nobody."""
        self.cut = False
        self.eof = False
        self.left = False
        """Whether the reader is gone."""
        self._chunks: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._moved = trio.lowlevel.ParkingLot()

    def wake(self) -> None:
        self._moved.unpark_all()

    async def send(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        while self._size >= ROOM and not (self.cut or self.left or self.silent):
            await self._moved.park()
        if self.cut or self.left:
            raise trio.BrokenResourceError("the connection is gone")
        if self.silent:
            return
        due = trio.current_time() + self.latency_s
        if self._chunks:
            due = max(due, self._chunks[-1][0])
        self._chunks.append((due, data))
        self._size += len(data)
        self.wake()

    async def receive(self, most: int) -> bytes:
        await trio.lowlevel.checkpoint()
        while True:
            if self.cut:
                raise trio.BrokenResourceError("the connection was cut")
            if self.left:
                raise trio.ClosedResourceError("closed here")
            if self._chunks and not self.silent:
                due, data = self._chunks[0]
                if due <= trio.current_time():
                    return self._take(data, most)
                with trio.move_on_at(due):
                    await self._moved.park()
            elif self.eof and not self.silent:
                return b""
            else:
                await self._moved.park()

    def _take(self, data: bytes, most: int) -> bytes:
        due, _ = self._chunks.popleft()
        if len(data) > most:
            self._chunks.appendleft((due, data[most:]))
            data = data[:most]
        self._size -= len(data)
        self.wake()
        return data


class PipeEnd(trio.abc.HalfCloseableStream):
    """One end of a pipe."""

    def __init__(self, pipe: "Pipe", out: _Way, back: _Way) -> None:
        self.pipe = pipe
        self._out = out
        self._back = back
        self._closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._closed or self._out.eof:
            raise trio.ClosedResourceError("closed here")
        await self._out.send(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        self._out.eof = True
        self._out.wake()
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._closed:
            raise trio.ClosedResourceError("closed here")
        return await self._back.receive(max_bytes or ROOM)

    async def aclose(self) -> None:
        self._closed = True
        self._out.eof = True
        self._back.left = True
        self._out.wake()
        self._back.wake()
        await trio.lowlevel.checkpoint()


class Pipe:
    """A connection: its two ends, and what happens to it."""

    def __init__(self) -> None:
        one, other = _Way(), _Way()
        self._ways = (one, other)
        self.near = PipeEnd(self, one, other)
        self.far = PipeEnd(self, other, one)

    def cut(self) -> None:
        """Both ends are broken from now on; what was under way is lost."""
        for way in self._ways:
            way.cut = True
            way.wake()

    def silence(self) -> None:
        """Nothing arrives any more, and nobody is told: a cable pulled, a peer without power."""
        for way in self._ways:
            way.silent = True
            way.wake()

    def delay(self, seconds: float) -> None:
        """What is sent from now on takes this long; order is kept."""
        for way in self._ways:
            way.latency_s = seconds


class PipeListener(trio.abc.Listener[trio.abc.HalfCloseableStream]):
    """A listener that pipes are dialled to."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[PipeEnd](1024)

    def dial(self) -> Pipe:
        """A new connection; its `near` end is the client's."""
        pipe = Pipe()
        self._send.send_nowait(pipe.far)
        return pipe

    async def accept(self) -> PipeEnd:
        """The next connection's far end."""
        try:
            return await self._receive.receive()
        except trio.EndOfChannel as error:
            raise trio.ClosedResourceError from error

    async def aclose(self) -> None:
        self._receive.close()
        await trio.lowlevel.checkpoint()
