"""What waits to be sent on one WebSocket connection (wire.md, Streams: a bounded queue a connection).

1. Many put, one writer takes: whole frames, in order. Nothing here ever cuts a frame.
2. It is bounded by those who put: each waits while it is `full`, so that it holds one answer more at most, and an
   acknowledgement for each envelope that was under way. Nobody is closed for having asked for much; who does not read
   is cut by the writer's deadline.
3. After the end has been said, nothing more is put: the peer gets a prefix of what it was to get.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from broker.config import Streams
from broker.parking import Parked
from gateways import render

TAKE_BYTES: Final = 32_768
"""What the writer takes at once; with the deadline of a send (10 s) the slowest link that is kept: 3 KB/s."""
OVERHEAD: Final = 64
"""What a waiting frame costs beside its bytes; without it a flood of tiny frames would weigh nothing."""


class Outbox:
    """What waits to be sent on one connection, as whole frames in order.

    `room`: the weight (bytes, and OVERHEAD for each frame) above which it is `full`. `frame` gives a text payload
    the form in which the carrier's writer takes it.
    """

    def __init__(self, room: int, frame: Callable[[bytes], bytes] = bytes) -> None:
        self.closing: render.Close | None = None
        """How the connection ends once what waits is sent. Set once; text that comes later is dropped."""
        self.ended = trio.Event()
        """Set together with `closing`."""
        self.notify: Callable[[], None] = self.wake
        """Called when something is put while the writer sleeps: wakes it, unless a carrier knows a shorter way."""
        self.frame = frame
        self._room = room
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._writer = Parked()
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def size(self) -> int:
        """The weight of what waits."""
        return self._size

    @property
    def full(self) -> bool:
        """Whether more has to wait (`wait_room`)."""
        return self._size > self._room and self.closing is None

    def put(self, payload: bytes) -> None:
        """Append one text frame. Never waits: look at `full` before, and at `wait_room`."""
        if self.closing is None:
            frame = self.frame(payload)
            self._waiting.append(frame)
            self._size += len(frame) + OVERHEAD
            if self._writer.task is not None:
                self.notify()

    def put_frame(self, frame: bytes) -> None:
        """As `put`, for a text frame that was made before."""
        if self.closing is None:
            self._waiting.append(frame)
            self._size += len(frame) + OVERHEAD
            if self._writer.task is not None:
                self.notify()

    def put_raw(self, data: bytes) -> None:
        """Append bytes that are frames already (control frames)."""
        self._waiting.append(data)
        self._size += len(data) + OVERHEAD
        if self._writer.task is not None:
            self.notify()

    def end(self, close: render.Close, *, at_once: bool = False) -> None:
        """End the connection after what waits, or `at_once` instead of it. The first end stands.

        Either way the peer gets whole frames, a prefix of what was put, then the close.
        """
        if self.closing is not None:
            return
        if at_once:
            self._waiting.clear()
            self._size = 0
        self.closing = close
        self.ended.set()
        self.wake()
        self._lot.unpark_all()

    async def wait_work(self) -> None:
        """For the writer: wait until something waits or the end has come. Cancelling loses nothing."""
        if self._waiting or self.closing is not None:
            await trio.lowlevel.checkpoint()
        else:
            await self._writer.park()

    async def wait_room(self) -> None:
        """Wait while `full`. Cancelling is safe."""
        while self.full:
            await self._lot.park()

    def take(self) -> list[bytes]:
        """For the writer: the next frames, about TAKE_BYTES and at least one; [] when none waits."""
        waiting, taken, size = self._waiting, [], 0
        if self._size <= TAKE_BYTES:
            taken = list(waiting)
            waiting.clear()
            self._size = 0
        else:
            while waiting and size < TAKE_BYTES:
                taken.append(waiting.popleft())
                size += len(taken[-1]) + OVERHEAD
            self._size -= size
        if self._lot and self._size <= self._room // 2:
            self._lot.unpark_all()
        return taken

    @property
    def sleeping(self) -> bool:
        """Whether the writer waits for work, and nothing was said about an end."""
        return self._writer.task is not None and self.closing is None

    def wake(self) -> None:
        """Have the writer look."""
        self._writer.wake()


def open_outbox(settings: Streams, frame: Callable[[bytes], bytes] = bytes) -> Outbox:
    """An outbox by the settings: room for a quarter of `queue_bytes`; a stream's reader has a queue before it."""
    return Outbox(settings.queue_bytes // 4, frame)
