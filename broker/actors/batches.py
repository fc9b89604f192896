"""Signatures in batches to one helper, and its answers back: each verdict belongs to the oldest batch under way.

1. An answer counts when its number and size are those of that batch and each byte is one of two; nothing else does.
2. What was given and not answered is known at any moment, in order, so that it can be given back.
3. The connection's other side may be slow, cut short what it says, or end at any byte.
"""

import math
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from broker.actors.helper import BATCH, GOOD, LENGTH, PK, SIG, VERDICTS

BATCH_SIGNATURES: Final = 16
"""A batch is sent when it has these, or when the tick is over."""
DEPTH_MIN: Final = 16
DEPTH_STEP: Final = 8
"""By this the depth grows when a helper ran dry; when too much was left it shrinks by one."""
PATIENCE_S: Final = 1.0
"""Within this a helper answers its next batch; that is some milliseconds of work."""
START_S: Final = 30.0
"""Within this a new helper is ready."""
READ_BYTES: Final = 65_536
MALFORMED: Final = b"-" * (PK + SIG)
"""A key and a signature in no form: what is not 64 and 128 characters long is bad, whatever they are."""
NONSENSE: Final = "answered nonsense"


class Waiting:
    """A signature that is not answered, or whose answer was not told yet. Without `then` nobody wants to know."""

    __slots__ = ("answer", "came", "first", "message", "next", "pk", "sig", "then")

    def __init__(self, pk: str, message: bytes, sig: str, then: Callable[[bool], None]) -> None:
        self.pk = pk
        self.message = message
        self.sig = sig
        self.then: Callable[[bool], None] | None = then
        self.answer: bool | None = None
        self.came = trio.current_time()
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
