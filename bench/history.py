"""A store with a long history, made without sockets: rows, documents and events as the broker itself writes them.

Envelopes are built and signed like any dealer's and given straight to the store, in the broker's own units: what an
envelope changes is one unit (tests/bench/test_history.py compares them with the broker's). Nothing verifies them on
the way in, so that a million takes a minute or two.
"""

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import trio
from nacl.bindings import crypto_sign

from bench.kit.parties import BODY, codes
from broker.actors.calls import ConvRow, log_name, pair_name, stream_name
from broker.clock import SystemClock
from broker.config import Settings
from broker.store.port import Append, Deliver, Put, Store, Unit
from broker.store.sqlite import SqliteStore
from broker.wire.call import Phase
from broker.wire.chain import chain_next, chain_start, row_text
from broker.wire.envelope import bootstrap
from broker.wire.keys import SigningKey
from gateways.wirekeys import open_keyring

EACH: Final = 100
"""Envelopes of a conversation, CALL, PICKUP and END among them."""
UNDER_WAY: Final = 512
"""Units that wait for the store at once: two of its batches."""
OPEN: Final = 16
"""Conversations, the last ones, that have not ended."""
ABREAST: Final = 16
"""Conversations that grow at the same time."""


class Party:
    """A key, its desk's code, and how its stream stands: `newest` position, and the last chains that it was told."""

    def __init__(self, code: str, kept: int, key: SigningKey | None = None) -> None:
        self.key = key or SigningKey.generate()
        self.code = code
        self.secret = bytes.fromhex(self.key.seed) + bytes.fromhex(self.key.pk)
        self.newest = 0
        self.chains: deque[bytes] = deque(maxlen=kept)
        """Of the newest events, in their order, each row's chain as hex."""


class Call:
    """One conversation as it grows: `next_unit` is what the broker would commit for its next envelope."""

    def __init__(self, caller: Party, called: Party, wire: str) -> None:
        self.conv = secrets.token_hex(8)
        self._parties = (caller, called)
        self._wire = wire
        self._n = -1
        self._sig = bootstrap(self.conv)
        self._chain = chain_start(self.conv)
        self._opened_at = 0
        self._answered_at: int | None = None
        self._version = 0

    @property
    def length(self) -> int:
        """Envelopes so far."""
        return self._n + 1

    def next_unit(self, at: int, *, end: bool = False, body: bytes = BODY) -> Unit:
        """The next envelope, accepted at `at` (wall ms): CALL, PICKUP, then QUOTEs; END where it is to `end`."""
        n = self._n = self._n + 1
        kind = "CALL" if n == 0 else "END" if end else "PICKUP" if n == 1 else "QUOTE"
        sender, to = self._parties[n % 2], self._parties[1 - n % 2]
        if n == 0:
            body = b'{"code_from":"%b","code_to":"%b","wire":"%b"}' % (
                sender.code.encode(), to.code.encode(), self._wire.encode(),
            )  # fmt: skip
        text = b'{"body":%b,"conv":"%b","from":"%b","n":%d,"prev_sig":"%b","to":"%b","ts":%d,"type":"%b"}' % (
            body, self.conv.encode(), sender.key.pk.encode(), n, self._sig.encode(), to.key.pk.encode(),
            at // 1000, kind.encode(),
        )  # fmt: skip
        self._sig = crypto_sign(text, sender.secret)[:64].hex()
        if n:
            self._chain = chain_next(self._chain, self._sig)
        chain = self._chain.hex()
        for party in self._parties:
            party.newest += 1
            party.chains.append(chain.encode())
        return Unit(
            append=Append(log_name(self.conv), n, row_text(self.conv, n, self._sig, chain, text), at),
            puts=(self._document(kind, at, body),) if kind != "QUOTE" else (),
            deliver=self._deliveries(kind, sender),
        )

    def _deliveries(self, kind: str, sender: Party) -> tuple[Deliver, ...]:
        name = "end" if kind == "END" else "env"
        caller, called = self._parties
        return (
            Deliver(stream_name(caller.key.pk), name, own=sender is caller),
            Deliver(stream_name(called.key.pk), "ring" if kind == "CALL" else name, own=sender is called),
        )

    def _document(self, kind: str, at: int, body: bytes) -> Put:
        caller, called = self._parties
        one, other = caller.key.pk, called.key.pk
        if kind == "CALL":
            self._opened_at = at
        elif kind == "PICKUP":
            self._answered_at = at
        answered, calls = self._answered_at is not None, Settings().calls
        row = ConvRow(
            conv=self.conv,
            caller=one,
            callee=other,
            code_from=caller.code,
            code_to=called.code,
            wire=self._wire,
            phase={"CALL": Phase.RINGING, "PICKUP": Phase.OPEN, "END": Phase.ENDED}[kind],
            opened_at=self._opened_at,
            answered_at=self._answered_at,
            ended_at=at if kind == "END" else None,
            end=msgspec.json.decode(body) if kind == "END" else None,
        )
        index: list[tuple[str, str | int]] = [("party", one), ("party", other)]
        if answered:
            index.append(("pair", pair_name(one, other)))
        if kind == "END":
            index.append(("ended", at))
        else:
            limit_s = calls.idle_s if answered else calls.ring_s
            index += [
                ("live", "1"),
                ("open", one),
                ("open" if answered else "ringing", other),
                ("due", at + round(limit_s * 1000)),
            ]
        self._version += 1
        return Put("conv", self.conv, self._version - 1, msgspec.json.encode(row), tuple(index))


def units(parties: Sequence[Party], wire: str, envelopes: int) -> Iterator[Unit]:
    """So many envelopes in conversations of EACH between neighbours; all but the last OPEN conversations have ended.

    ABREAST of them grow side by side, as on a busy day, so that a conversation's rows do not lie together.
    """
    calls = -(-envelopes // EACH)
    growing: deque[tuple[Call, bool]] = deque()
    dialled = 0
    for _ in range(envelopes):
        if dialled < calls and len(growing) < ABREAST:
            one, other = parties[dialled % len(parties)], parties[(dialled + 1) % len(parties)]
            growing.append((Call(one, other, wire), dialled < calls - OPEN))
            dialled += 1
        call, ends = growing.popleft()
        end = ends and call.length == EACH - 1
        yield call.next_unit(time.time_ns() // 1_000_000, end=end)
        if call.length < EACH:
            growing.append((call, ends))


async def write(store: Store, made: Iterable[Unit], tell: Callable[[int], None] = lambda count: None) -> int:
    """Commit units in their order, many under way at once; how many. `tell` hears now and then. Raises its faults."""
    fault: BaseException | None = None
    waiting, room, count = 0, trio.Event(), 0

    def landed(became: BaseException | None) -> None:
        nonlocal fault, waiting
        fault = fault or became
        waiting -= 1
        if waiting <= UNDER_WAY // 2:
            room.set()

    for unit in made:
        store.submit(unit, landed)
        waiting += 1
        count += 1
        if waiting >= UNDER_WAY:
            room = trio.Event()
            await room.wait()
        if count % 100_000 == 0:
            tell(count)
    while waiting:
        room = trio.Event()
        await room.wait()
    if fault is not None:
        raise fault
    return count


async def make(
    directory: Path, envelopes: int, parties: int, kept: int, tell: Callable[[int], None] = lambda count: None
) -> list[Party]:
    """A data directory with so many envelopes between so many keys, each knowing its last `kept` events."""
    free = codes()
    made = [Party(next(free), kept) for _ in range(parties)]
    store = await SqliteStore.open(directory)
    try:
        keyring = await open_keyring(directory, store, SystemClock().now_ms())
        await write(store, units(made, keyring.pk, envelopes), tell)
    finally:
        await store.aclose()
    return made
