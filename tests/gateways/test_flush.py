"""What is put in a tick leaves at its end; what a socket does not take is the writer's, whole and in order."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateways.flush import Direct
from gateways.outbox import Outbox
from gateways.render import CLOSE


class Line:
    """An outbox, its direct way, and a writer that notes what was left to it."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.outbox = Outbox(10**9)
        self.far = far
        self.broken = trio.Event()
        self.direct = Direct(near.fileno(), self.outbox, self.broken.set)
        self.written: list[bytes] = []

    async def write(self) -> None:
        while True:
            await self.outbox.wait_work()
            if self.direct.rest:
                self.written.append(self.direct.rest)
                self.direct.rest = b""
            frames = self.outbox.take()
            if not frames and self.outbox.closing is not None:
                return
            self.written += frames

    def arrived(self) -> bytes:
        try:
            return self.far.recv(2**20)
        except BlockingIOError:
            return b""


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        made = Line(near, far)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.write)
            await wait_all_tasks_blocked()
            yield made
            nursery.cancel_scope.cancel()


async def test_all_that_a_tick_puts_leaves_at_its_end_and_the_writer_sleeps_on() -> None:
    async with line() as made:
        made.outbox.put(b"a")
        made.outbox.put(b"b")
        assert made.arrived() == b""
        await wait_all_tasks_blocked()
        assert (made.arrived(), made.written) == (b"ab", [])


@pytest.mark.requirement("ws.whole-frames")
async def test_what_the_socket_does_not_take_is_the_writers_before_all_that_follows() -> None:
    async with line() as made:
        much = b"".join(b"%07d|" % n for n in range(2**17))
        made.outbox.put(much)
        await trio.lowlevel.checkpoint()
        made.outbox.put(b"behind")
        await wait_all_tasks_blocked()
        sent = b""
        while piece := made.arrived():
            sent += piece
        assert 0 < len(sent) < len(much)
        assert sent + b"".join(made.written) == much + b"behind"


async def test_a_far_end_that_is_gone_is_told_once_and_nothing_is_raised() -> None:
    async with line() as made:
        made.far.close()
        made.outbox.put(b"a")
        with trio.fail_after(5):
            await made.broken.wait()


async def test_after_the_end_and_after_its_close_nothing_goes_this_way() -> None:
    async with line() as made:
        made.outbox.put(b"first")
        made.outbox.end(CLOSE["restart"])
        await wait_all_tasks_blocked()
        assert (made.arrived(), made.written) == (b"", [b"first"])
    async with line() as made:
        made.outbox.put(b"a")
        made.direct.close()
        await wait_all_tasks_blocked()
        assert made.arrived() == b""
