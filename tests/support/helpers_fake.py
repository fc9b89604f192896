"""Helpers that live in the test's own loop, at the other end of a socket pair, and do as they are told."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.batches import Waiting
from broker.actors.helper import BATCH, LENGTH, PK, READY, SIG
from broker.actors.helpers import Helpers

GOOD_SIG = "good".ljust(SIG, "0")
BAD_SIG = "bad".ljust(SIG, "0")

Answer = Callable[[int, list[bytes]], bytes | None]
"""(number, the signatures' texts) → what is sent back; None: the helper ends."""


def pk(name: str) -> str:
    """A text of a key's length."""
    return name.ljust(PK, "0")


def honest(number: int, sigs: list[bytes]) -> bytes:
    """Good is what begins with "good"."""
    return BATCH.pack(number, len(sigs)) + b"".join(
        b"1" if each.startswith(b"good") else b"0" for each in sigs
    )


class FakeHelpers:
    """Give `start` to what starts helpers. `gate` holds answers back while it is not set."""

    def __init__(self, answer: Answer = honest, first: bytes = READY) -> None:
        self.answer = answer
        self.first = first
        self.gate = trio.Event()
        self.gate.set()
        self.started: list[float] = []
        self.alive = 0
        self.batches: list[list[bytes]] = []
        """The signatures' texts of each batch that came whole."""

    @asynccontextmanager
    async def start(self, theirs: socket.socket) -> AsyncIterator[None]:
        self.started.append(trio.current_time())
        self.alive += 1
        theirs.setblocking(False)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._live, trio.SocketStream(trio.socket.from_stdlib_socket(theirs)))
                yield
                nursery.cancel_scope.cancel()
        finally:
            self.alive -= 1

    async def _live(self, stream: trio.SocketStream) -> None:
        received = bytearray()
        async with stream:
            if self.first:
                await stream.send_all(self.first)
            async for chunk in stream:
                received += chunk
                while len(received) >= BATCH.size:
                    number, length = BATCH.unpack_from(received)
                    if len(received) < BATCH.size + length:
                        break
                    sigs = list(_sigs(bytes(received[BATCH.size : BATCH.size + length])))
                    del received[: BATCH.size + length]
                    self.batches.append(sigs)
                    await self.gate.wait()
                    answer = self.answer(number, sigs)
                    if answer is None:
                        return
                    await stream.send_all(answer)


def _sigs(records: bytes) -> list[bytes]:
    sigs = []
    at = 0
    while at < len(records):
        (length,) = LENGTH.unpack_from(records, at)
        at += LENGTH.size + PK
        sigs.append(records[at : at + SIG])
        at += SIG + length
    return sigs


class Asked:
    """Helpers, and what came of what they were given: answers and what was returned, by message."""

    def __init__(self, fake: FakeHelpers, count: int = 1) -> None:
        self.answers: list[tuple[bytes, bool]] = []
        self.returned: list[bytes] = []
        self.rooms = 0
        self.helpers = Helpers(count, self._answer, self._return, self._room, fake.start)

    def _answer(self, waiting: Waiting, good: bool) -> None:
        self.answers.append((waiting.message, good))

    def _return(self, owed: list[Waiting]) -> None:
        self.returned += [each.message for each in owed]

    def _room(self) -> None:
        self.rooms += 1

    def give(self, name: str, sig: str = GOOD_SIG) -> bool:
        return self.helpers.take(Waiting(pk("key"), name.encode(), sig, lambda _: None))


@asynccontextmanager
async def asked(fake: FakeHelpers, count: int = 1) -> AsyncIterator[Asked]:
    it = Asked(fake, count)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(it.helpers.run)
        await wait_all_tasks_blocked()
        yield it
        nursery.cancel_scope.cancel()
