"""The position is within the bound that is in force, whatever is sent, revised and closed on a thin book. What comes of
it is written a second time here, from the law (docs/reference/trial.md: Fills, Bounds, Runs, Calls)."""

from fractions import Fraction
from functools import cache
from math import ceil, floor
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core.plan.read import Checked, read_plan
from broker.core.plan.tree import Plan
from broker.core.tapes.tape import Tape
from broker.core.trials.script import Advance, Revise, Start, Submit, Trial
from tests.support.tapes import tape

UNIT: Final = 10
"""Millionths that a unit is worth more a tick higher, on tapes of the tests."""
FEE: Final = 3
RULES: Final = (
    "buy abs(position) + 30 at mid + 1 gtc",
    "sell abs(position) + 30 at mid - 1 gtc",
    "buy abs(position) + 7 at ask + 2",
    "sell abs(position) + 45 at bid - 1 for 3",
    "buy abs(position) + 60 at mid - 4 for 2",
    "cancel",
    "flatten",
    "stand_down",
)


class Bound(NamedTuple):
    """What a plan of the test may, and its rules: every so many ticks, from which one on, which of RULES."""

    position: int
    loss: int
    orders: int
    until: int
    rules: tuple[tuple[int, int, int], ...]


@cache
def plan_of(bound: Bound) -> Plan:
    """The plan that says so."""
    rules = "".join(f"when tick % {every} = {first % every}: {RULES[n]}\n" for every, first, n in bound.rules)
    money = f"{bound.loss // 1_000_000}.{bound.loss % 1_000_000:06}"
    text = f"plan p 1 on EURUSD bound position {bound.position}, loss {money}, orders {bound.orders}, "
    checked = read_plan(f"{text}until {bound.until} {rules}")
    assert isinstance(checked, Checked), checked
    return checked.plan


class Model:
    """A trial by hand. An order is [side, left, price, dies]; a fill (tick, side, size, price, fee)."""

    def __init__(self, market: Tape, bound: Bound) -> None:
        self.market, self.bound = market, bound
        self.tick = self.position = self.money = self.sent = self.avoided = 0
        self.orders: list[list[Any]] = []
        self.fills: list[tuple[Any, ...]] = []
        self.closing = self.over = False

    def room(self, side: str, orders: list[list[Any]]) -> int:
        held = self.position if side == "buy" else -self.position
        return self.bound.position - held - sum(order[1] for order in orders if order[0] == side)

    def send(self, side: str, size: int, price: int | None, dies: int | None) -> None:
        wanted, size = size, min(size, self.room(side, self.orders))
        if self.sent >= self.bound.orders or size < wanted:
            self.avoided += 1
        if self.sent < self.bound.orders and size > 0:
            self.sent += 1
            self.orders.append([side, size, price, dies])

    def close(self) -> None:
        self.orders = []
        if self.position:
            self.orders = [["sell" if self.position > 0 else "buy", abs(self.position), None, None]]

    def end(self) -> None:
        self.close()
        self.closing, self.over = True, self.position == 0

    def revise(self, bound: Bound) -> bool:
        """What finds no room in the new bound is taken back, from the last order on; what is held must find it."""
        if abs(self.position) > bound.position:
            return False
        self.bound, orders, self.orders = bound, self.orders, []
        for side, size, price, dies in orders:
            left = min(size, self.room(side, self.orders))
            self.avoided += left < size
            if left:
                self.orders.append([side, left, price, dies])
        return True

    def run(self) -> None:
        """One tick."""
        tick, bid, ask = self.tick, self.market.bids[self.tick], self.market.asks[self.tick]
        there = dict.fromkeys(("buy", "sell"), self.market.sizes[tick])
        for order in self.orders:
            side, left, price, _ = order
            at, sign = (ask, 1) if side == "buy" else (bid, -1)
            size = min(left, there[side])
            if size and (price is None or sign * (price - at) >= 0):
                there[side] -= size
                order[1] -= size
                self.position += sign * size
                self.money -= sign * size * at * UNIT + size * FEE
                self.fills.append((tick, side, size, at, size * FEE))
        self.orders = [order for order in self.orders if order[1] and (order[3] is None or order[3] > tick)]
        self.tick += 1
        worth = self.money + self.position * UNIT * (bid if self.position > 0 else ask)
        if self.closing:
            self.over = self.position == 0
        elif worth <= -self.bound.loss or tick >= self.bound.until:
            self.end()
        else:
            self.rules(tick, bid, ask, abs(self.position))
        self.over = self.over or self.tick == len(self.market)

    def rules(self, tick: int, bid: int, ask: int, held: int) -> None:
        mid = Fraction(bid + ask, 2)
        for every, first, n in self.bound.rules:
            if tick % every != first % every:
                continue
            match n:
                case 0:
                    self.send("buy", held + 30, ceil(mid + 1), None)
                case 1:
                    self.send("sell", held + 30, floor(mid - 1), None)
                case 2:
                    self.send("buy", held + 7, ask + 2, tick + 1)
                case 3:
                    self.send("sell", held + 45, bid - 1, tick + 3)
                case 4:
                    self.send("buy", held + 60, ceil(mid - 4), tick + 2)
                case 5:
                    self.orders = []
                case 6:
                    self.close()
                case _:
                    self.end()
                    return


bounds = st.builds(
    Bound,
    st.sampled_from([1, 20, 40, 100]),
    st.sampled_from([5_000, 10**9, 10**9]),
    st.sampled_from([3, 12, 500]),
    st.sampled_from([9, 200, 200]),
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 4), st.sampled_from([*range(7), *range(7), 7])),
        min_size=1,
        max_size=5,
    ).map(tuple),
)
books = st.lists(
    st.tuples(st.integers(95, 105), st.integers(0, 3), st.sampled_from([0, 5, 17, 60, 300])),
    min_size=12,
    max_size=24,
)
calls = st.one_of(
    st.builds(
        Submit,
        st.sampled_from(["buy", "sell"]),
        st.integers(1, 250),
        st.sampled_from([None, 80, 97, 99, 102, 104, 120]),
        st.sampled_from(["ioc", "gtc", "gtc", 1, 4]),
    ),
    st.integers(1, 4),
    st.integers(1, 4),
    bounds,
)

WIDE, NARROW = (Bound(position, 10**9, 500, 200, ((5, 0, 5),)) for position in (100, 40))
DEEP = [(99, 2, 300)] * 12


@pytest.mark.requirement("trial.bounds", "trial.fills", "trial.calls")
@given(books, bounds, st.lists(calls, min_size=4, max_size=12))
@example(DEEP, WIDE, [Submit("buy", 80, 80, "gtc"), Submit("buy", 20, 80, "gtc"), NARROW, 3])
@example(
    DEEP,
    WIDE,
    [Submit("buy", 80, 120, "gtc"), 2, NARROW, Submit("sell", 45), 1, NARROW, Submit("buy", 60), 2],
)
def test_whatever_is_called_the_position_is_within_the_bound_in_force_and_the_fills_are_those_by_hand(
    book: list[tuple[int, int, int]], first: Bound, rest: list[Submit | int | Bound]
) -> None:
    market = tape(*[(bid, bid + wide, size) for bid, wide, size in book], fee=FEE)
    model, trial, fills = Model(market, first), Trial(market), list[tuple[Any, ...]]()
    trial.do(Start(plan_of(first)))
    for call in [*rest, len(market)]:
        if isinstance(call, int):
            for _ in range(call):
                if model.over:
                    break
                fills += [(f.tick, f.side, f.size, f.price, f.fee) for f in trial.do(Advance(1))]
                model.run()
                same(trial, model, fills)
        elif model.over or model.closing:
            assert trial.fault(Submit("buy", 1)) is not None
        elif isinstance(call, Submit):
            trial.do(call)
            lives = 1 if call.tif == "ioc" else call.tif
            dies = model.tick - 1 + lives if isinstance(lives, int) else None
            model.send(call.side, call.size, call.at, dies)
        elif model.revise(call):
            trial.do(Revise(plan_of(call)))
        else:
            assert trial.fault(Revise(plan_of(call))) is not None
        same(trial, model, fills)


def same(trial: Trial, model: Model, fills: list[tuple[Any, ...]]) -> None:
    """A trial stands where the model stands, within the bound of now."""
    place, account = trial.place, trial.place.account
    assert abs(account.position) <= model.bound.position
    assert fills == model.fills
    assert (account.position, account.cash) == (model.position, model.money)
    assert [[o.side, o.left, o.price, o.dies] for o in account.working] == model.orders
    assert (account.sent, account.avoided, place.over is not None) == (model.sent, model.avoided, model.over)
