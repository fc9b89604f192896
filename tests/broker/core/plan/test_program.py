"""What rules do at a tick: as the slow way says, in the order of the text, on what is past alone."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.plan import tree
from broker.core.plan.program import Action, Command, Program, Send, View, compile_plan
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import FADE, HEAD, Slow, plans, tapes


def program(text: str) -> Program:
    checked = read_plan(text)
    assert isinstance(checked, Checked), checked
    return compile_plan(checked.plan)


def once(rules: str, view: View) -> list[Action]:
    return program(HEAD + rules).step(view)


@pytest.mark.requirement("plan.meaning")
@given(plans(), tapes())
def test_a_program_does_what_the_slow_way_does(plan: tree.Plan, views: list[View]) -> None:
    fast, slow = compile_plan(plan), Slow(plan)
    for view in views:
        assert fast.step(view) == slow.step(view)


@pytest.mark.requirement("plan.meaning")
@given(plans(2), tapes(), st.integers(0, 20))
def test_the_last_ticks_are_enough_of_the_past(plan: tree.Plan, views: list[View], late: int) -> None:
    whole, joined = compile_plan(plan), compile_plan(plan)
    late = min(late, len(views) - 1)
    expected = [whole.step(view) for view in views][late:]
    for view in views[max(0, late - joined.reach) : late]:
        joined.warm(view)
    if late >= joined.reach or late == 0:
        assert [joined.step(view) for view in views[late:]] == expected


@pytest.mark.requirement("plan.meaning")
def test_the_plan_of_the_law_does_what_it_says() -> None:
    fade = program(FADE)
    assert fade.step(View(0, 100, 102)) == [Send("buy", 1_000_000, 100, "ioc", 0)]
    assert fade.step(View(1, 100, 101)) == []
    assert fade.step(View(2, 100, 103, pnl=-1_499_999_999)) == [Send("buy", 1_000_000, 101, "ioc", 0)]
    assert fade.step(View(3, 100, 101, pnl=-1_500_000_000)) == [Command("stand_down", 1)]
    assert fade.step(View(3500, 100, 102)) == [Send("buy", 1_000_000, 100, "ioc", 0), Command("flatten", 2)]


@pytest.mark.requirement("plan.meaning")
def test_all_rules_that_hold_fire_in_order_until_one_stands_down() -> None:
    rules = (
        "when tick = 0: cancel, buy 5 at 7\nwhen tick > 0: flatten\n"
        "when tick = 0: stand_down, cancel\nwhen tick = 0: cancel\n"
    )
    assert once(rules, View(0, 1, 2)) == [
        Command("cancel", 0),
        Send("buy", 5, 7, "ioc", 0),
        Command("stand_down", 2),
    ]


@pytest.mark.requirement("plan.halves")
def test_an_orders_price_rounds_to_the_rules_disadvantage_and_a_comparison_not_at_all() -> None:
    rules = "when mid > 100 and mid < 101: buy 1 at mid, sell 1 at mid, sell 1 at mid - spread / 2\n"
    assert once(rules, View(0, 100, 101)) == [
        Send("buy", 1, 101, "ioc", 0),
        Send("sell", 1, 100, "ioc", 0),
        Send("sell", 1, 100, "ioc", 0),
    ]
    assert once(rules, View(0, 100, 102)) == []


@pytest.mark.requirement("plan.halves")
@pytest.mark.parametrize(
    ("cond", "position"),
    [
        ("position % 5 = 3", -7),
        ("-position % 5 = 2", -7),
        ("position / 2 * 2 = -7", -7),
        ("abs(position) % 5 = 2", -7),
        ("-(position + 1) = 6", -7),
        ("position / 4 = -2", -7),
        ("position / 4 * 2 = 3", 7),
    ],
)
def test_what_is_below_0_is_divided_downwards(cond: str, position: int) -> None:
    held = View(0, 1, 2, position=position)
    assert once(f"when {cond}: cancel\n", held) == [Command("cancel", 0)]


@pytest.mark.requirement("plan.meaning")
def test_a_rule_that_looks_at_what_is_not_there_does_not_fire() -> None:
    for cond, there in (
        ("tick = 0 or fill > 1", View(0, 1, 2, fill=5, fill_age=0)),
        ("not fill_age > 9", View(0, 1, 2, fill=5, fill_age=3)),
        ("tick = 0 or size > 100", View(0, 1, 2, size=1)),
    ):
        assert once(f"when {cond}: cancel\n", View(0, 1, 2)) == []
        assert once(f"when {cond}: cancel\n", there) == [Command("cancel", 0)]
    back = program(f"{HEAD}when tick >= 0 or mid > mid[3]: cancel\nwhen mid >= min(mid[1], 2): flatten\n")
    assert [[each.rule for each in back.step(View(tick, 1, 2))] for tick in range(5)] == [
        [],
        [],
        [1],
        [0, 1],
        [0, 1],
    ]


@pytest.mark.requirement("plan.meaning")
def test_an_order_of_nothing_is_not_sent() -> None:
    rule = "when tick = 0: sell position at bid, sell position / 2 at bid - 10\n"
    assert once(rule, View(0, 20, 22, position=-5)) == []
    assert once(rule, View(0, 20, 22, position=1)) == [Send("sell", 1, 20, "ioc", 0)]
    assert once(rule, View(0, 10, 12, position=2)) == [Send("sell", 2, 10, "ioc", 0)]


@pytest.mark.requirement("plan.fast")
def test_a_tick_of_ten_rules_takes_microseconds() -> None:
    """A million ticks in 10 s are 10 µs each: bench/plan.py measures, this notices what would be far off."""
    ten = program(
        HEAD + "when mid > avg(mid, 50) and spread >= 2 and position < 1000: buy 1 at mid - 1\n" * 10
    )
    began = time.thread_time()
    for tick in range(5_000):
        ten.step(View(tick, 100, 102))
    assert time.thread_time() - began < 0.25
