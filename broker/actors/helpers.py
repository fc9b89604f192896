"""Helper processes: signatures that the loop hands out in batches, so that it verifies on more than one core.

1. A helper is our own code, run by our own user: its verdict counts as ours. But it is held to its place: a verdict
   belongs to the oldest batch under way, whose number and size must match, and is one of two bytes. Anything else
   ends the helper.
2. One that ends, answers nonsense or lets a batch wait for `PATIENCE_S` is replaced, at ever longer intervals. What
   it owed is given back, to be verified by the loop: nothing is lost, and nothing is good unseen.
3. It gets its connection and where to find our modules: no other file, no secret in its arguments or environment.
4. It ends with its connection, hence with the broker, however that ends.
"""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import trio

from broker.actors.batches import DEPTH_MIN, Helper, Waiting

log = logging.getLogger("turret.verifier")

DEPTH_MAX: Final = 96
"""Signatures that all helpers together have at most: what follows their answers, told at once, is a few milliseconds
of the loop's. Each one's depth is fitted so that about a batch is left when answers are read: with less it would wait
for a busy loop, with more the loop would wait for it."""
PAUSE_S: Final = 0.5
"""Before a helper is replaced; twice as long for each that did not live for `PAUSE_MAX_S`."""
PAUSE_MAX_S: Final = 60.0
REAP_S: Final = 1.0
"""Within this a killed process is gone, or is left to the system."""
SOCKET_BYTES: Final = 262_144

Start = Callable[[socket.socket], AbstractAsyncContextManager[None]]
"""Starts a helper at that end of a connection, and closes the end here. Leaving ends the helper."""


@asynccontextmanager
async def process(theirs: socket.socket) -> AsyncIterator[None]:
    """A helper in a process of its own, in a session of its own: a terminal's interrupt is not for it.

    Leaving kills it: it holds nothing that would have to be finished. Raises OSError when none can be started.
    """
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    path = os.pathsep.join(map(os.path.abspath, sys.path))  # it finds the modules that we have found
    with theirs:
        child = await trio.lowlevel.open_process(
            [sys.executable, "-P", "-m", "broker.actors.helper"],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            env={**kept, "PYTHONPATH": path},
            start_new_session=True,
        )
    try:
        yield
    finally:
        child.kill()
        with trio.move_on_after(REAP_S, shield=True):
            await child.wait()


class Helpers:
    """`count` helpers. `answered` hears each verdict, `returned` what a helper that failed had owed, in order."""

    def __init__(
        self,
        count: int,
        answered: Callable[[Waiting, bool], None],
        returned: Callable[[list[Waiting]], None],
        room: Callable[[], None],
        start: Start = process,
    ) -> None:
        self._count = count
        self._answered = answered
        self._returned = returned
        self._room = room
        self._start = start
        self._alive: list[Helper] = []
        self._filling: Helper | None = None
        self.failed = 0
        """Helpers that had to be replaced."""

    def take(self, waiting: Waiting) -> bool:
        """Give it to the helper that has the least to do. False: all have enough, or none is ready."""
        filling = self._filling
        if filling is None or not filling.batch or not filling.ready:
            ready = [each for each in self._alive if each.ready]
            if not ready:
                return False
            filling = self._filling = min(ready, key=lambda each: each.owed)
        if filling.owed >= filling.depth:
            filling.full = True
            return False
        filling.take(waiting)
        return True

    def flush(self) -> None:
        """The tick is over: send what was given."""
        for each in self._alive:
            each.flush()

    @property
    def filling(self) -> bool:
        """Whether something was given and not sent."""
        return any(each.batch for each in self._alive)

    @property
    def ready(self) -> int:
        """Helpers that take work now."""
        return sum(each.ready for each in self._alive)

    async def run(self) -> None:
        """Keep the helpers alive, for ever. Cancelling ends them and gives back what they owe."""
        async with trio.open_nursery() as nursery:
            for index in range(self._count):
                nursery.start_soon(self._keep, index)

    async def _keep(self, index: int) -> None:
        pause = PAUSE_S
        while True:
            started = trio.current_time()
            try:
                reason = await self._live()
            except OSError as fault:  # no process, no descriptor left
                reason = f"could not be started ({fault})"
            self.failed += 1
            if trio.current_time() - started >= PAUSE_MAX_S:
                pause = PAUSE_S
            log.warning("verification helper %d %s; another one is started in %g s", index, reason, pause)
            await trio.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX_S)

    async def _live(self) -> str:
        """One helper's life; how it failed. Raises OSError when it has none."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
            ours.setblocking(False)
            helper = Helper(ours, max(DEPTH_MAX // self._count, DEPTH_MIN), self._answered, self._room)
            self._alive.append(helper)
            try:
                async with self._start(theirs):
                    return await helper.run()
            finally:
                self._alive.remove(helper)
                self._returned(helper.give_back())
