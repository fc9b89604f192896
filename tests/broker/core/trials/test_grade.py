"""Grades of a run."""

import statistics
from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.plan.read import Checked, read_plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import MICRO
from broker.core.trials.account import Account, Fill
from broker.core.trials.grade import Grades, aside, drawdown, grade, hits, in_market, naive, sharpe
from broker.core.trials.run import Place, Run
from broker.wire.ids import MAX_SAFE
from tests.support.tapes import tape

FLAT = tape(*[(99, 101)] * 5)
PLAN = """plan fade 1 on EURUSD bound position 1000, loss 2500, orders 400, until 3000
when position = 0 and mid < avg(mid, 50): buy 1000 at ask
when position > 0 and mid > avg(mid, 50): sell 1000 at bid"""


def bought(tick: int, size: int, price: int, fee: int = 0) -> Fill:
    return Fill(tick, "buy", size, price, fee)


def sold(tick: int, size: int, price: int, fee: int = 0) -> Fill:
    return Fill(tick, "sell", size, price, fee)


@pytest.mark.requirement("trial.grades")
@pytest.mark.parametrize(
    ("curve", "deepest"), [([], 0), ([-5], 5), ([3, 9, 4, 8, 2], 7), ([1, 2, 3], 0), ([-1, -2, 5, 4], 2)]
)
def test_the_drawdown_is_the_deepest_fall_from_a_height(curve: list[int], deepest: int) -> None:
    assert drawdown(curve) == deepest


@pytest.mark.requirement("trial.grades")
@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=50))
def test_sharpe_is_mean_over_deviation(curve: list[int]) -> None:
    changes = [curve[0], *(after - before for before, after in pairwise(curve))]
    deviation = statistics.pstdev(changes)
    if deviation == 0:
        assert sharpe(curve) == 0
    else:
        assert sharpe(curve) == pytest.approx(statistics.fmean(changes) / deviation * MICRO, abs=1, rel=1e-6)


@pytest.mark.requirement("trial.session-money")
@pytest.mark.parametrize("sign", [1, -1])
def test_what_no_json_keeps_whole_is_told_as_the_most_that_it_does(sign: int) -> None:
    curve = [sign * (n * 10**12 + 1) for n in range(1, 4)]
    assert sharpe(curve) == sign * MAX_SAFE
    fills = [bought(n, 10**12, 100) for n in range(9_100)]
    assert grade(curve, fills, Place(), FLAT).turnover == MAX_SAFE
    assert grade(curve, fills[:9], Place(), FLAT).turnover == 9 * 10**12


@pytest.mark.requirement("trial.grades")
@pytest.mark.parametrize(
    ("fills", "told"),
    [
        ([bought(0, 10, 100)], (0, 0)),
        ([bought(0, 10, 100), sold(1, 10, 101)], (1, 1)),
        ([bought(0, 10, 100), sold(1, 10, 100)], (0, 1)),
        ([sold(0, 10, 100), bought(1, 4, 99), bought(2, 6, 101)], (1, 2)),
        (
            [bought(0, 5, 100), bought(1, 5, 90), sold(2, 5, 95), sold(3, 5, 95)],
            (1, 2),
        ),  # first in, first out
        ([bought(0, 5, 100), sold(1, 15, 101), bought(2, 10, 99)], (2, 2)),
    ],
)
def test_a_hit_is_a_trade_that_closed_with_a_gain(fills: list[Fill], told: tuple[int, int]) -> None:
    assert hits(fills, FLAT) == told


@pytest.mark.requirement("trial.grades")
@pytest.mark.parametrize(("fee", "told"), [(4, (2, 2)), (5, (0, 2)), (6, (0, 2))])
def test_a_hit_earns_both_the_fee_of_what_it_closes_and_its_own(fee: int, told: tuple[int, int]) -> None:
    fills = [bought(0, 10, 100, 10 * fee), sold(1, 25, 101, 25 * fee), bought(2, 15, 100, 15 * fee)]
    assert hits(fills, tape((99, 101), (99, 101), fee=fee)) == told  # a tick of a unit is worth 10


@pytest.mark.requirement("trial.grades")
def test_ticks_in_the_market_are_those_that_end_with_a_position() -> None:
    assert in_market([], 9) == 0
    assert in_market([bought(2, 5, 1)], 9) == 7
    assert in_market([bought(2, 5, 1), sold(4, 2, 1), sold(6, 3, 1), sold(8, 1, 1)], 9) == 5


@pytest.mark.requirement("trial.grades")
def test_a_run_is_graded_beside_two_others() -> None:
    checked = read_plan(PLAN)
    assert isinstance(checked, Checked)
    market = make(KINDS["mean-revert"], 5, 1_000)
    curve, place = array("q"), Place()
    fills = Run(market, checked.plan, place, curve).advance(10_000)
    made = grade(curve, fills, place, market)
    assert (made.ticks, made.fills, made.orders) == (1_000, len(fills), place.account.sent)
    assert made.pnl == curve[-1]
    assert made.turnover == 1000 * len(fills) > 0
    assert 0 < made.in_market < 1_000
    assert aside(1_000).pnl == 0
    maker = naive(market, checked.plan, 1_000)
    assert maker == naive(market, checked.plan, 1_000)
    assert maker.fills > 0
    assert maker.orders > 400  # the plan's bound of orders is none of its


@pytest.mark.requirement("trial.grades")
@pytest.mark.parametrize(
    ("bounds", "fills", "pnl", "in_market"),
    [
        ("position 1000, loss 1, orders 1, until 9", 3, 2_000, 2),
        ("position 1000, loss 1, orders 1, until 2", 2, 4_000, 1),
        ("position 1000, loss 0.001, orders 1, until 9", 2, 4_000, 1),
        ("position 5, loss 1, orders 1, until 9", 3, 20, 2),
    ],
)
def test_the_naive_maker_quotes_a_tenth_at_both_sides_within_the_bounds_but_for_that_of_orders(
    bounds: str, fills: int, pnl: int, in_market: int
) -> None:
    checked = read_plan(f"plan p 1 on EURUSD bound {bounds} when tick < 0: flatten")
    assert isinstance(checked, Checked)
    market = tape((99, 101), (99, 101), (97, 99), (103, 105), (101, 103))
    made = naive(market, checked.plan, 5)
    size = max(1, checked.plan.bound.position // 10)
    assert (made.fills, made.pnl, made.in_market) == (fills, pnl, in_market)
    assert made.turnover == fills * size


@pytest.mark.requirement("trial.grades")
def test_the_ticks_are_those_that_were_run_and_what_was_kept_back_is_counted() -> None:
    place = Place(tick=3, account=Account(sent=7, avoided=4))
    made = grade([1, 5, 2], [], place, FLAT)
    assert (made.ticks, made.orders, made.avoided, made.pnl, made.max_drawdown) == (3, 7, 4, 2, 3)
    assert aside(3) == Grades(0, 0, 0, (0, 0), 0, 0, 0, 0, 0, 3)
