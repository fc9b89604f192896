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
import math
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import trio

from broker.actors.helper import BATCH, GOOD, LENGTH, PK, SIG, VERDICTS

log = logging.getLogger("turret.verifier")

BATCH_SIGNATURES: Final = 16
"""A batch is sent when it has these, or when the tick is over."""
DEPTH_MIN: Final = 16
DEPTH_MAX: Final = 96
"""Signatures that all helpers together have at most: what follows their answers, told at once, is a few milliseconds
of the loop's. Each one's depth is fitted so that about a batch is left when answers are read: with less it would wait
for a busy loop, with more the loop would wait for it."""
DEPTH_STEP: Final = 8
"""By this the depth grows when a helper ran dry; when too much was left it shrinks by one."""
PATIENCE_S: Final = 1.0
"""Within this a helper answers its next batch; that is some milliseconds of work."""
START_S: Final = 30.0
"""Within this a new helper is ready."""
PAUSE_S: Final = 0.5
"""Before a helper is replaced; twice as long for each that did not live for `PAUSE_MAX_S`."""
PAUSE_MAX_S: Final = 60.0
REAP_S: Final = 1.0
"""Within this a killed process is gone, or is left to the system."""
READ_BYTES: Final = 65_536
SOCKET_BYTES: Final = 262_144
MALFORMED: Final = b"-" * (PK + SIG)
"""A key and a signature in no form: what is not 64 and 128 characters long is bad, whatever they are."""
NONSENSE: Final = "answered nonsense"

Start = Callable[[socket.socket], AbstractAsyncContextManager[None]]
"""Starts a helper at that end of a connection, and closes the end here. Leaving ends the helper."""


class Waiting:
    """A signature that is not answered, or whose answer was not told yet. Without `then` nobody wants to know."""

    __slots__ = ("answer", "first", "message", "next", "pk", "sig", "then")

    def __init__(self, pk: str, message: bytes, sig: str, then: Callable[[bool], None]) -> None:
        self.pk = pk
        self.message = message
        self.sig = sig
        self.then: Callable[[bool], None] | None = then
        self.answer: bool | None = None
        self.first = True  # no earlier one of its key waits
        self.next: Waiting | None = None  # of its key


class Helper:
    """One helper, as long as it lives: what it was given and has not answered, in order.

    `connection` does not block; `depth_max` is in signatures. `answered` is called for each verdict, `room` when
    some were read.
    """

    def __init__(
        self,
        connection: socket.socket,
        depth_max: int,
        answered: Callable[[Waiting, bool], None],
        room: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._depth_max = depth_max
        self._answered = answered
        self._room = room
        self._patience = trio.CancelScope()
        self._number = 0
        self._batches: deque[tuple[int, list[Waiting]]] = deque()
        self._unsent = bytearray()
        self._blocked = trio.Event()
        self.batch: list[Waiting] = []
        """What goes out next."""
        self.ready = False
        self.owed = 0
        """Signatures given and not answered."""
        self.depth = DEPTH_MIN
        self.full = False
        """It was asked for more than its depth since it ran dry."""

    def take(self, waiting: Waiting) -> None:
        """Put it in the next batch, and send that when it is large enough."""
        self.batch.append(waiting)
        self.owed += 1
        if len(self.batch) >= BATCH_SIGNATURES:
            self.flush()

    def flush(self) -> None:
        """Send the next batch, if there is any."""
        if not self.batch:
            return
        self._number = self._number % 0xFFFFFFFF + 1
        if not self._batches:
            self._patience.deadline = trio.current_time() + PATIENCE_S
        self._batches.append((self._number, self.batch))
        records: list[bytes] = []
        for each in self.batch:
            formed = len(each.pk) == PK and len(each.sig) == SIG
            records.append(LENGTH.pack(len(each.message)))
            records.append((each.pk + each.sig).encode("ascii", "replace") if formed else MALFORMED)
            records.append(each.message)
        self.batch = []
        body = b"".join(records)
        self._send(BATCH.pack(self._number, len(body)) + body)

    def give_back(self) -> list[Waiting]:
        """All that it owes, in order; it is asked no more."""
        owed = [each for _, batch in self._batches for each in batch] + self.batch
        self._batches.clear()
        self.batch = []
        self.ready = False
        self.owed = 0
        return owed

    async def run(self) -> str:
        """Serve until it fails; says how. Cancelling leaves what it owes to `give_back`."""
        reason = "did not answer in time"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_rest)
            self._patience.deadline = trio.current_time() + START_S
            with self._patience:
                reason = await self._read()
            nursery.cancel_scope.cancel()
        return reason

    async def _read(self) -> str:
        received = bytearray()
        while True:
            await trio.lowlevel.wait_readable(self._connection)
            try:
                chunk = self._connection.recv(READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                chunk = b""
            if not chunk:
                return "ended"
            received += chunk
            if not self._take_answers(received):
                return NONSENSE
            self._fit()
            self._room()
            if not self._batches:
                self.flush()

    def _fit(self) -> None:
        """Answers were read. Fit the depth to how long that took, measured by what is left."""
        if self.owed > BATCH_SIGNATURES:
            self.depth = max(self.depth - 1, DEPTH_MIN)
        elif not self._batches:
            if self.full:
                self.depth = min(self.depth + DEPTH_STEP, self._depth_max)
            self.full = False

    def _take_answers(self, received: bytearray) -> bool:
        """Take the whole answers off the front and tell them. False: they are not what can be answered now."""
        while len(received) >= BATCH.size:
            number, count = BATCH.unpack_from(received)
            due, batch = self._batches[0] if self._batches else (0, [])
            if number != due or count != len(batch) or (self.ready and not batch):
                return False
            end = BATCH.size + count
            if len(received) < end:
                return True
            verdicts = bytes(received[BATCH.size : end])
            if verdicts.translate(None, VERDICTS):
                return False
            del received[:end]
            self.ready = True
            if batch:
                self._batches.popleft()
            self.owed -= count
            self._patience.deadline = trio.current_time() + PATIENCE_S if self._batches else math.inf
            for each, verdict in zip(batch, verdicts, strict=True):
                self._answered(each, verdict == GOOD)
        return True

    def _send(self, data: bytes) -> None:
        if not self._unsent:
            try:
                data = data[self._connection.send(data) :]
            except BlockingIOError:
                pass
            except OSError:
                return  # it has ended, as `_read` will see
        if data:
            self._unsent += data
            self._blocked.set()

    async def _send_rest(self) -> None:
        while True:
            await self._blocked.wait()
            while self._unsent:
                await trio.lowlevel.wait_writable(self._connection)
                try:
                    del self._unsent[: self._connection.send(self._unsent)]
                except BlockingIOError:
                    continue
                except OSError:
                    return
            self._blocked = trio.Event()


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
