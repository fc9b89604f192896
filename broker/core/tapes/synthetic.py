"""Tapes made by rule and seed: the same on every machine, for ever (docs/reference/trial.md, Catalog).

1. Chance is splitmix64, in whole numbers; a step is the sum of coins, so that no float rounds it.
2. A kind of market never changes once published: another rule is another name.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from broker.core.tapes.tape import About, Tape

_MASK: Final = (1 << 64) - 1
START: Final = 1_767_225_600_000
"""Of each of them: 2026-01-01, UTC."""
SEED: Final = 1
"""Where nobody names another: that of the catalog's."""


class Chance:
    """splitmix64 (Steele, Lea and Flood, 2014): 64 bits a word."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def word(self) -> int:
        """The next 64 bits."""
        self._state = state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
        return state ^ (state >> 31)

    def below(self, n: int) -> int:
        """From 0 to n - 1; n is small, so that the bias of the remainder (n / 2^64) shows nowhere."""
        return self.word() % n

    def coins(self, n: int) -> int:
        """The heads less the tails of n ≤ 64 coins: a bell of variance n around 0."""
        return 2 * (self.word() >> (64 - n)).bit_count() - n


class Kind(msgspec.Struct, frozen=True):
    """A kind of market: its name, title and instrument, its ticks by default, and how its middle moves."""

    name: str
    title: str
    instrument: str
    ticks: int
    base: int
    """The middle at tick 0, in half ticks."""
    tick: int
    fee: int
    moves: Callable[[Chance, int], Iterator[tuple[int, int, int]]]
    """From chance and the first middle, for ever: middle (half ticks), spread (ticks), size (0: none is kept)."""
    sized: bool


def make(kind: Kind, seed: int, ticks: int | None = None) -> Tape:
    """A tape of a kind of market. The same seed gives the same first ticks, however many there are."""
    count = kind.ticks if ticks is None else ticks
    bids, asks, sizes = array("q"), array("q"), array("q")
    moves = kind.moves(Chance(seed), kind.base)
    for _ in range(count):
        middle, spread, size = next(moves)
        bid = max(1, (middle - spread) // 2)
        bids.append(bid)
        asks.append(bid + spread)
        if kind.sized:
            sizes.append(size)
    return Tape(About(kind.instrument, START, 1000, kind.tick, kind.fee, kind.sized), bids, asks, sizes)


def _trend(chance: Chance, middle: int) -> Iterator[tuple[int, int, int]]:
    """A drift that lasts some hundred ticks, then turns."""
    drift, left = 0, 0
    while True:
        if not left:
            drift, left = chance.below(5) - 2, 200 + chance.below(600)
        left -= 1
        middle += chance.coins(8) + drift
        yield middle, 1 + chance.below(3), 0


def _mean_revert(chance: Chance, middle: int) -> Iterator[tuple[int, int, int]]:
    """Drawn back to where it began, the more the farther it is."""
    home = middle
    while True:
        away = middle - home
        middle += chance.coins(16) - (away // 32 if away >= 0 else -(-away // 32))
        yield middle, 1 + chance.below(3), 0


def _jump(chance: Chance, middle: int) -> Iterator[tuple[int, int, int]]:
    """Quiet, with a jump once in some five hundred ticks; the spread is wide after it, and narrows."""
    wide = 0
    while True:
        if chance.below(500) == 0:
            middle += (40 + chance.below(160)) * (1 if chance.below(2) else -1)
            wide = 12
        middle += chance.coins(4)
        yield middle, 1 + chance.below(2) + wide, 0
        wide -= wide > 0


def _thin(chance: Chance, middle: int) -> Iterator[tuple[int, int, int]]:
    """A thin book: wide spreads, and seldom much at the best price."""
    while True:
        middle += chance.coins(6)
        deep = chance.below(20) == 0
        yield middle, 2 + chance.below(6), (1_000_000 if deep else 25_000) + 25_000 * chance.below(12)


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("trend", "A market that trends, and turns", "EURUSD", 3_600, 216_840, 10, 2, _trend, False),
        Kind("mean-revert", "A market that comes back", "EURCHF", 3_600, 187_200, 10, 2, _mean_revert, False),
        Kind("jump", "A quiet market that jumps", "GBPUSD", 3_600, 254_000, 10, 2, _jump, False),
        Kind("thin", "A thin book", "USDSEK", 3_600, 2_103_000, 10, 5, _thin, True),
    )
}
"""The kinds of market, by name."""
