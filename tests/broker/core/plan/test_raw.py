"""What the builder makes of the grammar's rules: places, depths, signs."""

from typing import Any

import pytest

from broker.core.plan import raw
from broker.core.plan.grammar import parser


def rule(text: str) -> Any:
    return parser().parse(f"when {text}", start="rule")


@pytest.mark.requirement("plan.language")
def test_a_sign_before_a_number_is_the_numbers_but_not_before_parentheses() -> None:
    for text, kind in (
        ("-5", raw.Number),
        ("-(5)", raw.Neg),
        ("- 5", raw.Number),
        ("--5", raw.Neg),
        ("-x", raw.Neg),
    ):
        assert type(rule(f"tick > {text}: cancel").when.right) is kind, text


@pytest.mark.requirement("plan.language")
def test_what_binds_more_strongly_is_nearer_to_its_numbers() -> None:
    first = rule("tick - 1 - 2 * 3 > 4 or not tick = 1 and tick = 2: cancel").when
    assert (first.word, first.of[1].word) == ("or", "and")
    assert isinstance(first.of[1].of[0], raw.Not)
    left = first.of[0].left
    assert (left.sign, left.left.sign, left.right.sign) == ("-", "-", "*")


@pytest.mark.requirement("plan.diagnostics")
@pytest.mark.parametrize("text", ["avg(mid, 20)", "mid[5]", "abs(bid - 1)", "bid + 1", "-(7)", "bid"])
def test_a_place_is_where_it_stands(text: str) -> None:
    source = f"when {text} > 3: cancel"
    at = rule(source.removeprefix("when ")).when.left.at
    assert source[at.start : at.end] in (text, text.removeprefix("-("), "7")


@pytest.mark.requirement("plan.bounded")
@pytest.mark.parametrize(
    ("text", "depth"),
    [("tick > 1", 2), ("tick > 1 and tick > 2", 4), ("not tick + 1 > (2)", 4), ("tick > ((1))", 2)],
)
def test_depth_is_that_of_the_json(text: str, depth: int) -> None:
    assert rule(f"{text}: cancel").depth == depth
