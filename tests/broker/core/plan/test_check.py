"""Is it all there, does it fit together, is it within the limits?"""

import functools

import pytest

from broker.core.plan.diagnostics import apply
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import FADE, HEAD

RULE = "when tick > 1: cancel\n"
PRODUCT = functools.reduce(lambda inner, _: f"({inner}*{inner})", range(8), "a")
"""Thousands of digits, where a is of fifteen."""
DIVIDED = "what is divided by is above 0"
CASES = [
    ("plan.bounds", FADE.replace(HEAD.splitlines(True)[2], ""), "bound", 3, "bound is missing"),
    ("plan.bounds", FADE.replace(", loss 2500", ""), "bound", 3, "the bound loss is missing"),
    ("plan.bounds", FADE.replace(", until 3600", ""), "bound", 3, "the bound until is missing"),
    ("plan.bounds", FADE.replace("orders 40", "loss 3"), "bound", 3, "the bound loss stands there twice"),
    ("plan.bounds", FADE.replace("orders 40", "orders 0"), "limit", 3, "the bound orders is from 1 to 10000"),
    ("plan.bounds", FADE.replace("loss 2500", "loss 0"), "limit", 3, "it is more than 0"),
    ("plan.bounds", FADE.replace("until 3600", "until 1000001"), "limit", 3, "the bound until is from 1 to 1000000"),
    ("plan.bounds", FADE.replace("buy 1000000", "buy 3000001"), "bound", 4, "more than the position may be (3000000)"),
    ("plan.bounds", f"{HEAD}let x = 2000000\nwhen tick > 1: sell x * 2 at bid", "bound", 5, "an order of 4000000"),
    ("plan.diagnostics", FADE.replace("on EURUSD\n", ""), "syntax", 2, "on is missing"),
    ("plan.diagnostics", FADE.replace("plan fade 1\n", ""), "syntax", 1, "plan is missing"),
    ("plan.diagnostics", HEAD, "syntax", 3, "when is missing"),
    ("plan.diagnostics", FADE.replace("on EURUSD\n", "on EURUSD\non USDSEK\n"), "syntax", 3, "on stands there twice"),
    ("plan.diagnostics", f"{HEAD}{RULE}let x = 1\n", "syntax", 5, "let stands after when"),
    ("plan.diagnostics", f"{HEAD}let x = 1\nlet x = 2\n{RULE}", "name", 5, "there is a let x already"),
    ("plan.diagnostics", f"{HEAD}when bid > 1.0842: cancel", "number", 4, "prices are whole ticks"),
    ("plan.diagnostics", f"{HEAD}when position > 1.5: cancel", "number", 4, "sizes are whole units"),
    ("plan.diagnostics", f"{HEAD}when tick > 1: buy 5 at bid for 2.5", "number", 4, "is a whole number"),
    ("plan.diagnostics", f"{HEAD}when pnl > 1.1234567: cancel", "number", 4, "at most six digits"),
    ("plan.diagnostics", f"{HEAD}when mid > mid[0]: cancel", "number", 4, "mid[1] is what mid was a tick ago"),
    ("plan.diagnostics", f"{HEAD}let k = -2\nwhen mid > mid[k]: cancel", "number", 5, "mid[1] is what mid was"),
    ("plan.diagnostics", f"{HEAD}when mid > avg(mid[9], 0): cancel", "number", 4, "a window has at least 1 tick"),
    ("plan.diagnostics", f"{HEAD}when tick / 0 > 1: cancel", "number", 4, DIVIDED),
    ("plan.diagnostics", f"{HEAD}let n = -3\nwhen tick % n > 1: buy 1 / n at 5", "number", 5, DIVIDED),
    ("plan.diagnostics", f"{HEAD}when tick > 1: buy 0 at bid", "number", 4, "an order's size is at least 1"),
    ("plan.diagnostics", f"{HEAD}when tick > 1: buy 1 at -3", "number", 4, "an order's price is at least 1"),
    ("plan.bounded", f"{HEAD}when mid > avg(mid[1], 4097): cancel", "limit", 4, "a rule looks back at most 4096 ticks"),
    ("plan.bounded", f"{HEAD}when tick > 1000000000000001: cancel", "limit", 4, "a number is at most"),
    ("plan.bounded", f"{HEAD}when pnl > 1000000001: cancel", "limit", 4, "money is at most 1000000000"),
    ("plan.bounded", f"{HEAD}when tick > 4 * 250000000000001: cancel", "limit", 4, "also one that is worked out"),
    ("plan.bounded", HEAD + f"let a = {10**15}\nwhen 0 < {PRODUCT}: cancel", "limit", 5, "also one that is worked out"),
    ("plan.bounded", f"{HEAD}when tick > 1: buy {PRODUCT.replace('a', '9' * 15)} at 1", "limit", 4, "worked out"),
    ("plan.bounded", HEAD + RULE * 65, "limit", 68, "a plan has at most 64 rules"),
    ("plan.bounded", HEAD + "".join(f"let x{n} = 1\n" for n in range(33)) + RULE, "limit", 36, "at most 32 lets"),
    ("plan.bounded", f"{HEAD}when tick{' + 1' * 15} > 1: cancel", "limit", 4, "at most 16 deep, and this one 17"),
    ("plan.bounded", f"{HEAD}when tick > 1: {'cancel, ' * 8}cancel", "limit", 4, "a rule has at most 8 actions"),
    ("plan.bounded", f"{HEAD}when {'tick > 1 and ' * 400}tick > 1: cancel", "limit", 4, "a tick takes 1206 steps"),
]  # fmt: skip


def found(text: str, code: str, line: int, words: str) -> bool:
    diagnostics = read_plan(text)
    assert isinstance(diagnostics, list)
    return any((each.code, each.line) == (code, line) and words in each.message for each in diagnostics)


@pytest.mark.requirement("plan.bounds")
@pytest.mark.parametrize(
    ("text", "code", "line", "words"), [each[1:] for each in CASES if each[0] == "plan.bounds"]
)
def test_a_plan_without_bounds_that_can_be_kept_is_none(text: str, code: str, line: int, words: str) -> None:
    assert found(text, code, line, words), read_plan(text)


@pytest.mark.requirement("plan.diagnostics")
@pytest.mark.parametrize(
    ("text", "code", "line", "words"), [each[1:] for each in CASES if each[0] == "plan.diagnostics"]
)
def test_what_does_not_fit_together_is_named(text: str, code: str, line: int, words: str) -> None:
    assert found(text, code, line, words), read_plan(text)


@pytest.mark.requirement("plan.bounded")
@pytest.mark.parametrize(
    ("text", "code", "line", "words"), [each[1:] for each in CASES if each[0] == "plan.bounded"]
)
def test_what_would_cost_too_much_is_no_plan(text: str, code: str, line: int, words: str) -> None:
    assert found(text, code, line, words), read_plan(text)


@pytest.mark.requirement("plan.bounded")
def test_what_is_just_within_the_limits_is_a_plan() -> None:
    for text in (
        HEAD + RULE * 64,
        HEAD + "".join(f"let x{n} = 1\n" for n in range(32)) + RULE,
        f"{HEAD}when tick{' + 1' * 14} > 1: cancel",
        f"{HEAD}when mid > avg(mid[1], 4096) or mid > mid[4096]: {'cancel, ' * 7}cancel",
    ):
        assert isinstance(read_plan(text), Checked), read_plan(text)


LEAST = {
    "plan": "plan unnamed 1",
    "on": "on INSTRUMENT",
    "bound": "bound position 1, loss 1, orders 1, until 1",
    "when": "when tick >= 0: stand_down",
}


@pytest.mark.requirement("plan.repairs")
@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("", " " + " ".join(LEAST.values())),
        ("# nothing", "# nothing\n" + "\n".join(LEAST.values())),
        ("plan fade 1 on EURUSD", f"plan fade 1 on EURUSD {LEAST['bound']} {LEAST['when']}"),
        (HEAD.replace("plan fade 1\non EURUSD\n", "") + RULE, None),
        (HEAD.replace("on EURUSD\n", "on EURUSD # so\n") + "# and no rule", None),
        (FADE.replace(", until 3600", ""), FADE.replace("3600", "1")),
        (FADE.replace(", loss 2500, orders 40", ""), None),
    ],
)
def test_a_repair_of_what_is_missing_makes_a_plan_that_risks_nothing(text: str, mended: str | None) -> None:
    diagnostics = read_plan(text)
    assert isinstance(diagnostics, list)
    assert all(each.repair is not None for each in diagnostics)
    repaired = apply(text, diagnostics)
    assert isinstance(read_plan(repaired), Checked), repaired
    assert mended is None or repaired == mended


@pytest.mark.requirement("plan.repairs")
@pytest.mark.parametrize(("old", "new"), [("spread >= 2", "spread >= 2.0"), ("mid - 1", "mid[0] - 1")])
def test_a_number_that_is_meant_is_the_repair(old: str, new: str) -> None:
    text = FADE.replace(old, new)
    diagnostics = read_plan(text)
    assert isinstance(diagnostics, list)
    assert isinstance(read_plan(apply(text, diagnostics)), Checked)
