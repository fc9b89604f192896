"""Tokens, and what other languages' signs mean here."""

import pytest

from broker.core.pieces import whole
from broker.core.plan.diagnostics import Diagnostic, Found, apply
from broker.core.plan.scan import scan


def scanned(text: str) -> tuple[list[str], list[Diagnostic]]:
    found = Found(text)
    return [str(each) for each in whole(scan(text, found))], found.listed()


@pytest.mark.requirement("plan.diagnostics", "plan.repairs")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1,000,000", "1000000"), ("1_000", "1000"), ("5k", "5000"), ("1.5m", "1500000"), ("2e3", "2000"),
        (".5", "0.5"), ("5.", "5"), ("1.25k", "1250"), ("1e2", "100"), ("0.0005k", "0.5"),
        ("==", "="), ("<>", "!="), ("≤", "<="),
        ("&&", "and"), ("!", "not"), ("−", "-"), ("WHEN", "when"), ("stand-down", "stand_down"),
        ("->", ":"), (";", ","),
    ],
)  # fmt: skip
def test_what_another_language_would_write_is_named_and_read_as_what_is_meant(text: str, meant: str) -> None:
    tokens, (only,) = scanned(text)
    assert tokens == [meant]
    assert only.repair is not None
    assert scanned(apply(text, [only])) == ([meant], [])


@pytest.mark.requirement("plan.language")
def test_what_is_of_the_language_is_left_alone() -> None:
    text = "on EUR/USD-1.x when mid[5]<=-2.5 and abs(size)!=3:buy 1 at avg(mid,200),cancel# 1,000 == é"
    tokens, found = scanned(text)
    assert found == []
    assert tokens[:3] == ["on", "EUR/USD-1.x", "when"]
    assert tokens[-4:] == ["200", ")", ",", "cancel"]


@pytest.mark.requirement("plan.diagnostics")
@pytest.mark.parametrize(
    ("text", "place", "repair"),
    [
        ("tick €€ 5", (1, 6, 2), " "),
        ("a\n  $b", (2, 3, 1), " "),
        ("x" * 33, (1, 1, 33), None),
        ("9" * 17, (1, 1, 17), None),
    ],
)
def test_what_means_nothing_is_named_with_its_place(
    text: str, place: tuple[int, int, int], repair: str | None
) -> None:
    _, (only,) = scanned(text)
    assert (only.line, only.column, only.length) == place
    assert only.repair == repair
