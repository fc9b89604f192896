"""What a run was worth, in whole numbers (docs/reference/trial.md, Grades).

1. All of it follows from the profit and loss of each tick, the fills and the bounds: the same on every machine.
2. A ratio is a numerator over a denominator, or a number of millionths rounded down; there are no floats. What is
   beyond ±(2^53−1) is told as that.
3. Beside it stand two that had the same tape: one that stood aside, one that quoted both sides whatever came.
"""

from array import array
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Final

import msgspec

from broker.core.plan.tree import Bound, Cancel, Compare, Order, Plan, Rule
from broker.core.tapes.tape import MICRO, Tape
from broker.core.trials.account import Fill
from broker.core.trials.run import Place, Run
from broker.wire.ids import MAX_SAFE

NAIVE_PART: Final = 10
"""The naive maker quotes this part of the position bound on each side."""


class Grades(msgspec.Struct, frozen=True):
    """Money in millionths of the quote currency, times in ticks, sizes in units."""

    pnl: int
    max_drawdown: int
    """The most that was lost from a height of the profit and loss, which begins with 0."""
    sharpe: int
    """Mean over deviation of what a tick brings, in millionths, rounded towards nothing; 0 where nothing varies."""
    hits: tuple[int, int]
    """Of the trades that made a position smaller those that earned by it, and how many there were."""
    turnover: int
    """Units that were bought and sold."""
    fills: int
    orders: int
    avoided: int
    """Orders, or parts of them, that a bound kept back."""
    in_market: int
    """Ticks at whose end a position was held."""
    ticks: int


def grade(curve: Sequence[int], fills: Sequence[Fill], place: Place, tape: Tape) -> Grades:
    """The grades of a run that stands at `place`; `curve`: its profit and loss at each tick."""
    return Grades(
        pnl=curve[-1] if curve else 0,
        max_drawdown=drawdown(curve),
        sharpe=sharpe(curve),
        hits=hits(fills, tape),
        turnover=min(MAX_SAFE, sum(fill.size for fill in fills)),
        fills=len(fills),
        orders=place.account.sent,
        avoided=place.account.avoided,
        in_market=in_market(fills, len(curve)),
        ticks=len(curve),
    )


def drawdown(curve: Sequence[int]) -> int:
    """The deepest fall from a height before it; the first height is 0."""
    height = deepest = 0
    for made in curve:
        height = max(height, made)
        deepest = max(deepest, height - made)
    return deepest


def sharpe(curve: Sequence[int]) -> int:
    """Millionths of mean / deviation of the changes from tick to tick (the first from 0), the deviation over all of
    them. With n changes of sum s and of squares q it is s / √(n·q - s²)."""
    changes = [after - before for before, after in pairwise([0, *curve])]
    count, total, squares = len(changes), sum(changes), sum(change * change for change in changes)
    spread = count * squares - total * total
    if spread <= 0:
        return 0
    size = min(MAX_SAFE, isqrt(total * total * MICRO * MICRO // spread))
    return size if total >= 0 else -size


def hits(fills: Sequence[Fill], tape: Tape) -> tuple[int, int]:
    """How many trades that made the position smaller earned by it, fees of both ends and all, and how many there were.
    What was bought first is sold first."""
    lots = deque[list[int]]()  # of a long tape there may be hundreds of thousands
    earned = closed = 0
    for fill in fills:
        sign = 1 if fill.side == "buy" else -1
        left, brought, closes = fill.size, 0, bool(lots) and lots[0][0] * sign < 0
        while left and lots and lots[0][0] * sign < 0:
            part = min(left, abs(lots[0][0]))
            brought -= part * (sign * (fill.price - lots[0][1]) * tape.about.tick + 2 * tape.about.fee)
            lots[0][0] += sign * part
            left -= part
            if not lots[0][0]:
                lots.popleft()
        if left:
            lots.append([sign * left, fill.price])
        closed += closes
        earned += closes and brought > 0
    return earned, closed


def in_market(fills: Sequence[Fill], ticks: int) -> int:
    """Ticks at whose end a position was held."""
    position = held = 0
    since = 0
    for fill in fills:
        if position:
            held += fill.tick - since
        position += fill.size if fill.side == "buy" else -fill.size
        since = fill.tick
    return held + (ticks - since if position else 0)


def aside(ticks: int) -> Grades:
    """The one that stood aside."""
    return Grades(0, 0, 0, (0, 0), 0, 0, 0, 0, 0, ticks)


def naive(tape: Tape, plan: Plan, ticks: int) -> Grades:
    """The grades of the naive maker on the same ticks."""
    curve, place = array("q"), Place()
    fills = Run(tape, maker(plan, ticks), place, curve).advance(ticks)
    return grade(curve, fills, place, tape)


def maker(plan: Plan, ticks: int) -> Plan:
    """The maker that at each tick quotes a tenth of the position bound at the bid and at the ask, within the same
    bounds but for that of orders."""
    size = max(1, plan.bound.position // NAIVE_PART)
    quotes = (Cancel(), Order("buy", size, "bid", "gtc"), Order("sell", size, "ask", "gtc"))
    bound = Bound(plan.bound.position, plan.bound.loss, 2 * ticks + 2, plan.bound.until)
    return Plan("naive", 1, plan.on, bound, (Rule(Compare(">=", "tick", 0), quotes),))
