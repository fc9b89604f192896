"""From tokens to statements: what one statement lacks hides nothing of the next, and one token is the repair."""

import pytest

from broker.core.plan.diagnostics import Diagnostic, apply
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import FADE, HEAD


def wrong(text: str) -> list[Diagnostic]:
    found = read_plan(text)
    assert isinstance(found, list)
    return found


MENDED = [
    ("paln fade 1", "plan fade 1", 1, 1),
    ("plan fade\n", "plan fade 1\n", 1, 10),
    ("bound postion 3000000", "bound position 3000000", 3, 7),
    ("position 3000000 loss", "position 3000000, loss", 3, 23),
    ("until 3600,\n", "until 3600\n", 3, 57),
    ("position = 0 buy", "position = 0: buy", 4, 34),
    ("bui 1000000", "buy 1000000", 4, 36),
    ("buy 1000000 mid", "buy 1000000 at mid", 4, 47),
    ("whne pnl", "when pnl", 5, 1),
    ("stand_donw", "stand_down", 5, 20),
    ("halt\n", "stand_down\n", 5, 20),
    ("when (tick >= 3500:", "when (tick >= 3500):", 6, 19),
    ("flatten,\n", "flatten\n", 6, 27),
    ("when tick >= 3500):", "when tick >= 3500:", 6, 18),
    ("tick >= 3500 then flatten", "tick >= 3500: flatten", 6, 19),
    ("plan fade v1", "plan fade 1", 1, 11),
    ("plan fa-de 1", "plan fade 1", 1, 6),
    ("symbol EURUSD", "on EURUSD", 2, 1),
    ('on "EURUSD"', "on EURUSD", 2, 4),
    ("position: 3000000", "position 3000000", 3, 15),
    ("orders=40", "orders 40", 3, 42),
    ("1000000 @ mid", "1000000 at mid", 4, 48),
    ("close\n", "flatten\n", 6, 20),
]


@pytest.mark.requirement("plan.repairs")
@pytest.mark.parametrize(("broken", "whole", "line", "column"), MENDED, ids=[each[0] for each in MENDED])
def test_one_token_is_the_repair(broken: str, whole: str, line: int, column: int) -> None:
    plain = whole if whole in FADE else whole.replace("(", "").replace(")", "")
    text = FADE.replace(plain, broken, 1)
    (only,) = wrong(text)
    assert (only.line, only.column) == (line, column)
    assert only.expected or not (only.repair or "x").strip()
    assert isinstance(read_plan(apply(text, [only])), Checked)


@pytest.mark.requirement("plan.repairs")
@pytest.mark.parametrize(
    ("broken", "words", "whole"),
    [
        ("mid > mid[-1]: cancel", "mid[1] is what mid was a tick ago", "mid > mid[1]: cancel"),
        ("1 < avg(bid, -5): cancel", "how many ticks a window has", "1 < avg(bid, 5): cancel"),
        ("position: flatten", "a condition compares two numbers", "position != 0: flatten"),
        ("not pnl and resting: cancel", "compares two numbers", "not pnl != 0 and resting != 0: cancel"),
        ("(resting or tick > 5): cancel", "compares two numbers", "resting != 0 or tick > 5: cancel"),
        ("pnl > 1: sell all at bid", "there is no 'all'", "pnl > 1: sell position at bid"),
        ("mid > ema(mid, 9): cancel", "'ema' is no function", "mid > avg(mid, 9): cancel"),
    ],
)
def test_what_is_meant_is_the_repair(broken: str, words: str, whole: str) -> None:
    text = f"{HEAD}when {broken}"
    found = wrong(text)
    assert words in found[0].message
    mended = read_plan(apply(text, found))
    assert isinstance(mended, Checked)
    assert mended.text == f"{HEAD}when {whole}\n"


@pytest.mark.requirement("plan.diagnostics")
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (
            "when mid > bid[tick - 1]: cancel",
            "looks go back, by a number or a let: bid[1] is what bid was a tick ago",
        ),
        ("when max(bid, ask) > 1: cancel", "how many ticks a window has is a number or a let: max(mid, 20)"),
        ("when mid: cancel", "a condition compares two numbers"),
        ("let x = mid", "a let is a number"),
        ("when bid > 1.0842: cancel", "prices are whole ticks (1.0842 is 108420 where a tick is 0.00001)"),
        (
            "when spread > tick: cancel",
            "'spread' is a price (ticks), 'tick' is a count: they can't be compared",
        ),
    ],
)
def test_what_only_its_author_can_mend_is_told_without_a_repair(broken: str, words: str) -> None:
    first = wrong(f"{HEAD}{broken}")[0]
    assert (first.message, first.repair) == (words, None)


@pytest.mark.requirement("plan.repairs")
def test_an_unknown_function_is_the_one_that_is_close() -> None:
    (only,) = wrong(f"{HEAD}when mid > sma(mid, 20): cancel")
    assert (only.code, only.repair, only.expected) == ("name", "avg", ("avg", "min", "max", "abs"))


@pytest.mark.requirement("plan.diagnostics")
def test_each_statement_tells_its_own() -> None:
    found = wrong(
        f"{HEAD}when tick > : cancel\nwhen 5: cancel\nlot x\nwhen 1 < tick < 3: cancel\nwhen pnl[3] > 1: cancel"
    )
    assert [(each.line, each.message) for each in found] == [
        (4, "':' is not what comes here"),
        (5, "a condition compares two numbers"),
        (6, "'lot' begins no statement"),
        (6, "let stands after when"),
        (6, "the statement ends too soon"),
        (7, "comparisons are not chained: a < b and b < c"),
        (8, "only bid, ask, mid, spread, size have a past that can be looked at"),
    ]


@pytest.mark.requirement("plan.diagnostics")
def test_what_was_expected_is_named_shortly() -> None:
    (only,) = wrong(f"{HEAD}when tick > , 5: cancel")
    assert only.expected == ("a number", "a quantity", "a name")
    (only,) = wrong(f"{HEAD}when tick > 5: jump 3 at 4")
    assert only.expected == ("buy", "sell", "cancel", "flatten", "stand_down")
