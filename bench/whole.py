"""The whole way of an envelope in one process, without the kernel's sockets: frames in, frames out, all checked.

64 conversations between 128 dealers. Each has what a connection of the dealing port has: the reader of frames, the
session and the outbox, emptied at the end of each tick; it follows its own stream. In each round every conversation
sends its next envelope, masked and signed ahead; the round ends when all answers and both parties' events are there.
"""

import gc
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import trio
from websockets.protocol import State
from websockets.server import ServerProtocol

from bench.kit.parties import Dealer, Line, codes
from bench.kit.websocket import Lost, frame, request
from broker.app import Broker, Caller, open_broker
from broker.clock import SystemClock
from broker.config import Actors, Limits, Settings, raise_limits
from broker.store.memory import MemoryStore
from broker.store.port import Store
from broker.store.sqlite import SqliteStore
from broker.tick import tick_end
from broker.wire.chain import verify_transcript
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from broker.wire.statement import build_statement
from gateways.dealing import text_frame
from gateways.frames import Messages
from gateways.outbox import open_outbox
from gateways.session import Session

CONVERSATIONS: Final = 64
ROUND_S: Final = 10.0
"""A round that takes longer has lost something."""
NONCE: Final = "0" * 32


class Party:
    """A key with a desk, and its connection: what bench.kit.parties.Line asks of a dealer, without a socket."""

    def __init__(self, wire: str, code: str) -> None:
        self.key = SigningKey.generate()
        self.secret = bytes.fromhex(self.key.seed) + bytes.fromhex(self.key.pk)
        self.wire, self.code = wire, code
        self.got: list[bytes] = []
        """Frames that its peer was sent, as the writer takes them: several in one."""

    async def connect(self, broker: Broker, nursery: trio.Nursery, arrived: "Arrivals") -> None:
        """Open the desk and the session, and follow the stream."""
        text, sig = build_statement("open_desk", self.key, self.wire, int(time.time()), NONCE, code=self.code)
        params = msgspec.json.encode({"statement": msgspec.Raw(text), "sig": sig})
        opened = await broker.call(Caller(), "open_desk", params)
        if isinstance(opened, Refusal):
            raise Lost(f"open_desk: {opened}")
        caller = Caller(pk=self.key.pk, authenticated=True)
        self._outbox = open_outbox(broker.settings.streams, text_frame)
        self._outbox.notify = self._notify
        self._arrived, self._due, self._at_end = arrived, False, tick_end().add
        self._messages = Messages(ServerProtocol(state=State.OPEN), broker.settings.limits.frame_bytes)
        self.session = Session(broker, caller, self._outbox, nursery)
        nursery.start_soon(self._sleep)
        await self.send(frame(request(0, "follow", {})))

    async def send(self, data: bytes) -> None:
        """What the connection's reader does with the bytes that have come."""
        await self.session.receive(self._messages.read(data))

    async def _sleep(self) -> None:
        """The connection's writer, which has nothing to do as long as its peer reads."""
        while True:
            await self._outbox.wait_work()

    def _notify(self) -> None:
        """Something was put: it leaves at the tick's end, as gateways.flush has it."""
        if not self._due:
            self._due = True
            self._at_end(self._leave)

    def _leave(self) -> None:
        self._due = False
        taken = self._outbox.take()
        self.got += taken
        self._arrived.add(len(taken))


class Arrivals:
    """Counts the frames that have come to all parties together."""

    def __init__(self) -> None:
        self.count = 0
        self._due = 0
        self._there = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def add(self, count: int) -> None:
        """So many more. At the end of a tick, where the loop takes nothing but callbacks for a reason to go on."""
        self.count += count
        if self.count >= self._due:
            self._token.run_sync_soon(self._there.set)

    async def wait(self, more: int) -> None:
        """Wait until so many have come since the last wait. Raises Lost."""
        self._due += more
        self._there = trio.Event()
        if self.count < self._due:
            with trio.move_on_after(ROUND_S):
                await self._there.wait()
        if self.count != self._due:
            raise Lost(f"{self.count} frames had come where {self._due} were due")


class Whole:
    """The conversations of one broker, dialled and picked up."""

    def __init__(self, broker: Broker) -> None:
        free = codes()
        self.parties = [Party(broker.pk, next(free)) for _ in range(2 * CONVERSATIONS)]
        dealers = cast("list[Dealer]", self.parties)  # Line asks for nothing that a Party has not
        self.lines = [Line(at, *dealers[2 * at : 2 * at + 2]) for at in range(CONVERSATIONS)]
        self.n = 0
        self._broker = broker
        self._arrived = Arrivals()

    async def open(self, nursery: trio.Nursery) -> None:
        """Connect all, dial, pick up. Raises Lost."""
        for party in self.parties:
            await party.connect(self._broker, nursery, self._arrived)
        await self._arrived.wait(len(self.parties))
        await self.run(2)

    async def run(self, rounds: int) -> tuple[int, float]:
        """So many rounds; the envelopes, and the CPU seconds of the whole process. Raises Lost."""
        for line in self.lines:
            line.rewind(self.n)
            line.sign(rounds)
        for party in self.parties:
            party.got.clear()
        first = self.n
        gc.collect()
        gc.disable()
        try:
            cpu = time.process_time()
            for _ in range(rounds):
                for line in self.lines:
                    await cast("Party", line.parties[self.n % 2]).send(line.frames[self.n])
                self.n += 1
                await self._arrived.wait(3 * len(self.lines))
            cpu = time.process_time() - cpu
        finally:
            gc.enable()
        self._check(first)
        return rounds * len(self.lines), cpu

    def _check(self, first: int) -> None:
        """Each answer is to its own request, and each party has got every event, in order, with its chain."""
        for line in self.lines:
            for side, party in enumerate(cast("Sequence[Party]", line.parties)):
                told = [each for each in party.got if b'"id":' not in each[:32]]
                acks = [each for each in party.got if b'"id":' in each[:32]]
                own = [line.chains[n] for n in range(first, self.n) if n % 2 == side]
                if not _hold(told, line.chains[first : self.n]) or not _hold(acks, own):
                    raise Lost(f"what came to a party of {line.conv} is not what was signed")

    async def prove(self) -> None:
        """Read one transcript back and verify it whole. Raises Lost."""
        line = self.lines[-1]
        params = msgspec.json.encode({"conv": line.conv, "limit": 500})
        answer = await self._broker.call(Caller(), "read_conv", params)
        rows: list[Any] = msgspec.json.decode(msgspec.json.encode(answer))["rows"]
        verdict = verify_transcript(rows)
        if not verdict.ok or rows[-1]["chain"].encode() != line.chains[len(rows) - 1]:
            raise Lost(f"{line.conv}: {verdict.broken}")


def _hold(texts: Sequence[bytes], chains: Sequence[bytes]) -> bool:
    return len(texts) == len(chains) and all(chain in text for text, chain in zip(texts, chains, strict=True))


@asynccontextmanager
async def opened(directory: Path | None) -> AsyncIterator[Whole]:
    """All of it over the embedded store in a directory, or over the one in memory."""
    store: Store = MemoryStore() if directory is None else await SqliteStore.open(directory)
    clock = SystemClock()
    keyring = Keyring((WireKey(SigningKey.generate(), clock.now_ms()),))
    patient = Actors(
        late_s=60.0
    )  # all of a round comes in one turn of the loop: no overload to a broker in use
    settings = Settings(limits=raise_limits(Limits()), actors=patient)
    try:
        async with (
            open_broker(settings, store, clock, keyring) as broker,
            trio.open_nursery() as nursery,
        ):
            whole = Whole(broker)
            await whole.open(nursery)
            yield whole
            nursery.cancel_scope.cancel()
    finally:
        await store.aclose()
