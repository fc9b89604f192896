"""Diagnostics: places, closeness, repairs."""

import pytest

from broker.core.plan.diagnostics import MAX_SHOWN, Diagnostic, Found, Span, apply, closest


@pytest.mark.requirement("plan.diagnostics")
def test_a_place_is_a_line_and_a_column_from_1() -> None:
    found = Found("ab\ncd é f\n")
    found.add("syntax", Span(8, 9), "here", ("x", "y"), "z")
    found.add("syntax", Span(0, 2), "before")
    found.add("syntax", Span(0, 2), "before", ("only", "once"))
    first, second = found.listed()
    assert (first.line, first.column, first.length) == (1, 1, 2)
    assert (second.line, second.column, second.length) == (2, 6, 1)
    assert str(second) == "2:6: here; expected x or y; write 'z'"
    assert str(Diagnostic("syntax", 1, 1, 1, "here", (":", "or", "a name"))).endswith(
        "expected ':', 'or' or a name"
    )
    assert str(Diagnostic("syntax", 1, 1, 1, "here", ("z",), "z")) == "1:1: here; write 'z'"
    assert apply("ab\ncd é f\n", found.listed()) == "ab\ncd é z\n"


@pytest.mark.requirement("plan.diagnostics")
def test_no_more_are_kept_than_somebody_reads() -> None:
    found = Found("x" * 100)
    for at in range(100):
        found.add("syntax", Span(at, at), "again")
    assert found.full()
    assert [each.column for each in found.listed()] == list(range(1, MAX_SHOWN + 1))


@pytest.mark.requirement("plan.repairs")
@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("spred", "spread"),
        ("Spread", "spread"),
        ("sma", "avg"),
        ("orders-left", "orders_left"),
        ("ordrs_letf", "orders_left"),
        ("spr", "spread"),
        ("orders", "orders_left"),
        ("sped", "spread"),
        ("zzz", None),
        ("", None),
    ],
)
def test_what_was_meant_is_what_is_close(word: str, meant: str | None) -> None:
    assert closest(word, ["spread", "avg", "orders_left"]) == meant


@pytest.mark.requirement("plan.repairs")
def test_a_word_of_another_length_is_another_word() -> None:
    assert closest("rsi", ["resting"]) is None
    assert closest("flat", ["flatten"]) == "flatten", "but for one that is cut off"


@pytest.mark.requirement("plan.repairs")
def test_repairs_do_not_disturb_each_other() -> None:
    found = [
        Diagnostic("syntax", 1, 1, 1, "", repair="longer"),
        Diagnostic("syntax", 1, 3, 0, "", repair="!"),
    ]
    assert apply("a bc", found) == "longer !bc"
    twice = [Diagnostic("syntax", 1, 2, 0, "", repair=each) for each in (" first", " second")]
    assert apply("a bc", twice) == "a first second bc"
    assert apply("a bc", [Diagnostic("syntax", 1, 3, 2, "", repair=""), found[0]]) == "longer "
