"""How the two bots of the demo decide: a price that wanders by chance, and a limit (pure: seed in, prices out).

1. Prices are whole points (hundred thousandths) and leave as decimal strings: no floats in an envelope.
2. The same seed gives the same market, whatever the clocks and the processes do.
3. It ends for every seed: after ROUNDS quotes the taker hangs up.
"""

import random
from typing import Any, Final, Literal

import msgspec

POINT: Final = 100_000
ROUNDS: Final = 5
VALID_MS: Final = 5_000
"""How long a quote of the maker stands, milliseconds of the wire's clock."""

Side = Literal["buy", "sell"]


def price_text(points: int) -> str:
    """108412 → "1.08412"."""
    return f"{points // POINT}.{points % POINT:05d}"


def _chance(seed: int, who: str) -> random.Random:
    return random.Random(f"{seed}/{who}")  # noqa: S311  # a market for show: it must be repeatable


class Quote(msgspec.Struct, frozen=True):
    """What the maker stands for, in points."""

    bid: int
    ask: int

    def price(self, side: Side) -> int:
        """What the taker of this side would pay or get."""
        return self.ask if side == "buy" else self.bid


def opening_price(seed: int) -> int:
    """Where the market stands before anybody speaks: both know it."""
    return 108_000 + _chance(seed, "market").randrange(1_000)


class Maker:
    """Makes prices around a mid that wanders; each further request of a call narrows the spread a little."""

    def __init__(self, seed: int) -> None:
        self._chance = _chance(seed, "maker")
        self._mid = opening_price(seed)
        self._half = self._chance.randint(4, 9)

    def quote(self) -> Quote:
        """The next price."""
        self._mid += round(self._chance.gauss(0, 3))
        made = Quote(self._mid - self._half, self._mid + self._half)
        self._half = max(2, self._half - 1)
        return made


class Taker:
    """Wants one side, up to a limit; with each round it gives in a little, but only so far."""

    def __init__(self, seed: int) -> None:
        chance = _chance(seed, "taker")
        self.side: Side = chance.choice(("buy", "sell"))
        self.qty = chance.randint(1, 20) * 500_000
        self.rounds = 0
        distance = chance.randint(1, 6)
        self._limit = opening_price(seed) + (distance if self.side == "buy" else -distance)

    @property
    def limit(self) -> int:
        """The worst price that it takes now, points."""
        given_in = self.rounds if self.side == "buy" else -self.rounds
        return self._limit + given_in

    def takes(self, quote: Quote) -> bool:
        """Whether it deals at this price; the next one is judged a little more kindly."""
        price = quote.price(self.side)
        good = price <= self.limit if self.side == "buy" else price >= self.limit
        self.rounds += 1
        return good

    @property
    def patient(self) -> bool:
        """Whether it asks once more."""
        return self.rounds < ROUNDS


def read_quote(body: dict[str, Any]) -> Quote | None:
    """A QUOTE's body; None where it is not two sound prices, the bid below the ask."""
    bid, ask = (read_price(body.get(name)) for name in ("bid", "ask"))
    return Quote(bid, ask) if bid is not None and ask is not None and 0 < bid < ask else None


def read_price(text: object) -> int | None:
    """ "1.08412" → 108412; None for anything else."""
    if not isinstance(text, str):
        return None
    whole, dot, fraction = text.partition(".")
    if not dot or not (whole + fraction).isdecimal() or not text.isascii() or len(fraction) != 5:
        return None
    return int(whole) * POINT + int(fraction)
