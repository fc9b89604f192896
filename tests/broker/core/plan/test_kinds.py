"""Kinds are found from where a number stands, and not mixed."""

import pytest

from broker.core.plan import tree
from broker.core.plan.kinds import Slot
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import HEAD


@pytest.mark.requirement("plan.kinds")
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("when spread > position: cancel", "can't be compared"),
        ("when spread + pnl > 1: cancel", "can't be added"),
        ("when mid - tick > 1: cancel", "can't be subtracted"),
        ("when position % spread > 1: cancel", "is a number or a let"),
        ("when position * spread > 1: cancel", "numbers and lets alone"),
        ("when tick / tick > 1: cancel", "what stands after / is a number or a let"),
        (
            "when tick > 1: buy spread at bid",
            "an order's size is a size (units), and this is a price (ticks)",
        ),
        ("when tick > 1: buy 1 at position", "an order's price is a price (ticks)"),
        ("when spread > x and position > x: cancel", "can't be compared"),
        ("when pnl > x: buy x at bid", "an order's size"),
        ("when spread > 1 and mid > avg(mid, edge) and edge < bid: cancel", "can't be compared"),
        ("when spred > 1: cancel", "there is no 'spred'"),
    ],
)
def test_kinds_are_not_mixed(rule: str, words: str) -> None:
    found = read_plan(f"{HEAD}let x = 3\nlet edge = 2\n{rule}\n")
    assert isinstance(found, list)
    assert words in found[0].message
    assert found[0].line == 6


@pytest.mark.requirement("plan.kinds")
def test_a_number_has_the_kind_of_where_it_stands() -> None:
    checked = read_plan(
        f"{HEAD}let x = -3.5\nlet y = 2\nlet z = 4\n"
        "when pnl * y - 1 < x and 2 * z = position: cancel\nwhen 5 > 3: cancel"
    )
    assert isinstance(checked, Checked), checked
    assert [each.value for each in checked.plan.let] == [tree.Money(-3_500_000), 2, 4]
    first = checked.plan.rules[0].when
    assert isinstance(first, tree.And)
    assert first.of[0] == tree.Compare(
        "<", tree.Calc("-", tree.Calc("*", "pnl", "y"), tree.Money(10**6)), "x"
    )
    assert checked.plan.rules[1].when == tree.Compare(">", 5, 3)


@pytest.mark.requirement("plan.kinds")
def test_slots_that_are_one_learn_together() -> None:
    one, other, third = Slot(), Slot(), Slot("money")
    assert one.unify(other)
    assert other.unify(third)
    assert (one.kind, other.kind) == ("money", "money")
    assert not one.unify(Slot("price"))
    assert one.kind == "money"
