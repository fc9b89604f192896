"""What a plan holds on a tape, its orders and its fills: fill model v1 (docs/reference/trial.md, Fills).

1. An order that is sent at a tick acts from the next one on, against that tick's own bid or ask, up to its size. What
   is left rests, or dies by its time in force.
2. The bounds are kept here, whatever a rule wants: an order is cut to what the position may become if all that rests is
   filled, and one beyond the number of orders is not sent. To close a position is always allowed.
3. Profit and loss is the money paid and taken, and what the position would bring if it were closed now.
4. No number that is shown is one that some JSON does not keep whole, however large prices and sizes are.
"""

from typing import Final, Literal

import msgspec

from broker.core.tapes.tape import Tape
from broker.wire.ids import MAX_SAFE

MODEL: Final = "fills/1"
"""The name of the fill model, in every artifact."""
Side = Literal["buy", "sell"]
SIDES: Final[tuple[Side, ...]] = ("buy", "sell")
UNBOUNDED: Final = 1 << 62
"""The size of a tick whose tape keeps none."""
MAX_PNL: Final = MAX_SAFE // 2
"""The most profit, or loss, that is told, millionths: the fall from one to the other is kept whole too."""


class Bounds(msgspec.Struct, frozen=True):
    """What the runtime keeps: units held, millionths of money lost, orders sent, the last tick."""

    position: int
    loss: int
    orders: int
    until: int


class Working(msgspec.Struct, gc=False):
    """An order that acts. `price` None: at any price; `dies`: the last tick at which it acts, None: it rests."""

    side: Side
    left: int
    price: int | None
    dies: int | None


class Fill(msgspec.Struct, frozen=True, gc=False):
    """A trade: at which tick, how much, at which price (ticks), for which fee (millionths)."""

    tick: int
    side: Side
    size: int
    price: int
    fee: int


class Account(msgspec.Struct, kw_only=True):
    """The state of a run between two ticks, as it is kept and gone on with."""

    position: int = 0
    cash: int = 0
    """Millionths: what was taken less what was paid, fees too. It is shown nowhere, and may be of any size."""
    sent: int = 0
    working: list[Working] = []
    avoided: int = 0
    """Orders, or parts of them, that a bound kept from being sent."""
    fill: int = 0
    """The price of the last fill, ticks."""
    filled_at: int = -1
    """Its tick; -1: there was none."""


def pnl(account: Account, tape: Tape, tick: int) -> int:
    """Profit and loss at a tick, millionths: as if the position were closed at the other side, without its fee. More
    than ±MAX_PNL is told as that."""
    position = account.position
    price = tape.bids[tick] if position > 0 else tape.asks[tick]
    made = account.cash + position * price * tape.about.tick
    if -MAX_PNL <= made <= MAX_PNL:
        return made
    return MAX_PNL if made > 0 else -MAX_PNL


def send(
    account: Account,
    bounds: Bounds,
    side: Side,
    size: int,
    price: int | None,
    dies: int | None,
    held: int | None = None,
) -> bool:
    """Send an order, cut to the bounds. False: a bound (or a size below 1) keeps it from being sent. `held`: what
    `exposed` gives, where that is known: it looks at all that rests. No price is above MAX_SAFE: nor is a tape's."""
    if size < 1:
        return False
    if account.sent >= bounds.orders:
        account.avoided += 1
        return False
    held = exposed(account, side) if held is None else held
    room = bounds.position - held
    if room < 1:
        account.avoided += 1
        return False
    if size > room:
        account.avoided += 1
        size = room
    account.sent += 1
    account.working.append(Working(side, size, None if price is None else min(price, MAX_SAFE), dies))
    return True


def fit(account: Account, bounds: Bounds) -> None:
    """Cut what rests to other bounds, which the position is within: an order that was sent before another keeps its
    room before it. How many orders were sent is no matter any more."""
    resting, account.working = account.working, []
    room = {side: bounds.position - exposed(account, side) for side in SIDES}
    for order in resting:
        left = min(order.left, room[order.side])
        room[order.side] -= left
        account.avoided += left < order.left
        if left:
            account.working.append(Working(order.side, left, order.price, order.dies))


def close(account: Account) -> None:
    """Take back what rests, and close the position at any price. It counts as no order: no bound keeps a plan in."""
    account.working = []
    if account.position:
        side: Side = "sell" if account.position > 0 else "buy"
        account.working.append(Working(side, abs(account.position), None, None))


def exposed(account: Account, side: Side) -> int:
    """The position in a side's direction if all that rests on that side is filled."""
    held = account.position if side == "buy" else -account.position
    return held + sum(order.left for order in account.working if order.side == side)


def trade(account: Account, tape: Tape, tick: int) -> list[Fill]:
    """Let what was sent before act at a tick, in the order in which it was sent; each side has the tick's size once. A
    fill's fee is at most MAX_SAFE: what is more of an order waits."""
    if not account.working:
        return []
    fills: list[Fill] = []
    rest: list[Working] = []
    about = tape.about
    size = tape.sizes[tick] if about.sized else UNBOUNDED
    most = MAX_SAFE // about.fee if about.fee > 0 else UNBOUNDED
    there = {"buy": size, "sell": size}
    for order in account.working:
        price = tape.asks[tick] if order.side == "buy" else tape.bids[tick]
        part = min(order.left, there[order.side], most) if _trades(order, price) else 0
        if part:
            there[order.side] -= part
            order.left -= part
            fills.append(_filled(account, tape, tick, order.side, part, price))
        if order.left and (order.dies is None or order.dies > tick):
            rest.append(order)
    account.working = rest
    return fills


def _trades(order: Working, price: int) -> bool:
    if order.price is None:
        return True
    return price <= order.price if order.side == "buy" else price >= order.price


def _filled(account: Account, tape: Tape, tick: int, side: Side, size: int, price: int) -> Fill:
    signed = size if side == "buy" else -size
    fee = size * tape.about.fee
    account.position += signed
    account.cash -= signed * price * tape.about.tick + fee
    account.fill, account.filled_at = price, tick
    return Fill(tick, side, size, price, fee)
