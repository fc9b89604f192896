"""The canonical text: as few parentheses as the tree needs."""

import pytest

from broker.core.plan.printer import money, to_text
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import HEAD


@pytest.mark.requirement("plan.canonical")
@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("((tick)) > (1)", "tick > 1"),
        ("(tick > 1 and tick > 2) or tick > 3", "tick > 1 and tick > 2 or tick > 3"),
        ("tick > 1 and (tick > 2 or tick > 3)", "tick > 1 and (tick > 2 or tick > 3)"),
        ("(tick > 1 and tick > 2) and tick > 3", "(tick > 1 and tick > 2) and tick > 3"),
        ("not (not tick > 1)", "not not tick > 1"),
        ("not (tick > 1 and tick > 2)", "not (tick > 1 and tick > 2)"),
        ("tick - (1 - 2) > (tick - 1) - 2", "tick - (1 - 2) > tick - 1 - 2"),
        ("(tick * 2) / 3 > tick * (4 / 2)", "tick * 2 / 3 > tick * (4 / 2)"),
        ("(tick + 1) * 2 > -(tick + 1)", "(tick + 1) * 2 > -(tick + 1)"),
        ("-(-tick) > -(5) - -5", "-(-tick) > -(5) - -5"),
        ("avg(mid[0],20) > ( mid[007] )", "avg(mid, 20) > mid[7]"),
        ("pnl>=-1500.50", "pnl >= -1500.5"),
    ],
)
def test_a_condition_is_written_in_one_way(written: str, printed: str) -> None:
    checked = read_plan(
        f"{HEAD}when {written}: cancel, buy 5 at bid ioc, sell 5 at ask gtc, buy 1 at bid for 30"
    )
    assert isinstance(checked, Checked), checked
    assert to_text(checked.plan) == (
        f"{HEAD}when {printed}: cancel, buy 5 at bid, sell 5 at ask gtc, buy 1 at bid for 30\n"
    )


@pytest.mark.requirement("plan.canonical")
@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0"), (2_500_000_000, "2500"), (-500_000, "-0.5"), (1, "0.000001"), (-1_230_000, "-1.23")],
)
def test_money_is_written_as_short_as_it_can_be(micros: int, text: str) -> None:
    assert money(micros) == text
