"""What a plan costs is known before it runs, and is never less than what it takes."""

import pytest
from hypothesis import given

from broker.core.plan import tree
from broker.core.plan.limits import PAST_STEPS, WINDOW_STEPS, calculated, cost, fixed, lets, looks, reach
from broker.core.plan.program import View
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import HEAD, Slow, plans, tapes


def taken(rules: str) -> Checked:
    checked = read_plan(HEAD + rules)
    assert isinstance(checked, Checked), checked
    return checked


@pytest.mark.requirement("plan.bounded")
@given(plans(), tapes())
def test_no_tick_takes_more_steps_than_the_plan_costs(plan: tree.Plan, views: list[View]) -> None:
    slow, most = Slow(plan), cost(plan)
    for view in views:
        slow.step(view)
        assert slow.steps <= most


@pytest.mark.requirement("plan.bounded")
def test_a_look_at_the_past_is_paid_once() -> None:
    one = taken("when avg(mid, 20) > mid[5]: cancel\n")
    assert one.cost == 1 + 1 + 2 + 1 + WINDOW_STEPS + PAST_STEPS
    two = taken("when avg(mid, 20) > mid[5]: cancel\nwhen avg(mid, 20) > mid[5]: cancel\n")
    assert two.cost == one.cost + 5
    assert len(looks(two.plan)) == 2


@pytest.mark.requirement("plan.bounded")
@pytest.mark.parametrize(
    ("cond", "back"),
    [("tick > 1", 0), ("mid > mid[5]", 5), ("mid > avg(mid, 20)", 19), ("mid > max(mid[k], n)", 6)],
)
def test_how_far_it_looks_back_is_known(cond: str, back: int) -> None:
    assert taken(f"let k = 3\nlet n = 4\nwhen {cond} and k + n > tick: cancel\n").reach == back


@pytest.mark.requirement("plan.halves")
@pytest.mark.parametrize(
    ("sign", "left", "right", "value"),
    [("+", 3, 4, 7), ("-", 3, 4, -1), ("*", 3, 4, 6), ("*", 3, 3, 4),
     ("/", 6, 4, 3), ("/", 3, 4, 1), ("/", -3, 4, -2), ("%", 7, 4, 3)],
)  # fmt: skip
def test_arithmetic_is_in_halves(sign: str, left: int, right: int, value: int) -> None:
    assert calculated(sign, left, right) == value


@pytest.mark.requirement("plan.halves")
def test_what_sees_nothing_has_a_value() -> None:
    plan = taken("let k = 3\nlet m = 0.5\nwhen pnl > m: buy k at bid\n").plan
    values = lets(plan)
    assert values == {"k": 3, "m": 500_000}
    assert fixed(tree.Abs(tree.Neg(tree.Calc("/", "k", 2))), values) == 3
    assert fixed(tree.Calc("+", "k", "bid"), values) is None
    assert reach(plan) == 0
