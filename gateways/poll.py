"""Many sockets, one registration each: what has come is read where the kernel says so, without a task's turn.

1. Trio arms a socket anew for each wait, and wakes a task for each answer: 10 µs a read. Here one task waits for one
   epoll set, which keeps its sockets armed, and calls whose socket has something to read.
2. In one turn about FAIR messages are taken, from the sockets that have waited longest.
3. What `ready` raises is logged, and costs nobody else anything.

Linux alone has epoll; elsewhere `poller()` is None, and each connection's own task reads.
"""

import logging
import select
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

log = logging.getLogger(__name__)

FAIR: Final = 64
"""Messages that are taken before the loop turns to everything else."""
Ready = Callable[[], int]
"""Reads what there is, once, without waiting; how many messages it took."""


class Poller:
    """The sockets of one run of the loop that are read as soon as there is something. From `poller()`."""

    def __init__(self) -> None:
        assert sys.platform == "linux"
        self._epoll = select.epoll()
        self._ready: dict[int, Ready] = {}
        self.now = trio.current_time()
        """Trio's clock when this turn began, for who is called in it."""
        self.since = self.now
        """Since when who is called now could have read."""
        trio.lowlevel.spawn_system_task(self._run, name="poller")

    def add(self, fd: int, ready: Ready) -> None:
        """Call `ready` whenever there is something to read, the end of the stream included. Raises OSError."""
        assert sys.platform == "linux"
        self._epoll.register(fd, select.EPOLLIN)
        self._ready[fd] = ready

    def remove(self, fd: int) -> None:
        """Call it no more; before the socket is closed. One that is not there is fine."""
        if self._ready.pop(fd, None) is not None:
            with suppress(OSError):  # it was closed, and so removed
                self._epoll.unregister(fd)

    async def _run(self) -> None:
        """Serve until the run ends."""
        line: deque[tuple[int, float]] = deque()
        waiting: set[int] = set()
        try:
            while True:
                if line:
                    await trio.lowlevel.checkpoint()
                else:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
                now = self.now = trio.current_time()
                for fd, _ in self._epoll.poll(0):
                    if fd not in waiting:
                        waiting.add(fd)
                        line.append((fd, now))
                taken = 0
                while line and taken < FAIR:
                    fd, self.since = line.popleft()
                    waiting.discard(fd)
                    taken += 1 + self._call(fd)
        finally:
            self._epoll.close()

    def _call(self, fd: int) -> int:
        ready = self._ready.get(fd)
        if ready is None:  # removed meanwhile
            return 0
        try:
            return ready()
        except Exception:
            log.exception("a connection could not be read")
            self.remove(fd)
            return 0


_poller: Final[trio.lowlevel.RunVar[Poller]] = trio.lowlevel.RunVar("poller")


def poller() -> Poller | None:
    """The poller of this run of the loop, made at the first asking; None where there is no epoll."""
    if sys.platform != "linux":
        return None
    try:
        return _poller.get()
    except LookupError:
        made = Poller()
        _poller.set(made)
        return made
