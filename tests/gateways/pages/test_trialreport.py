"""The page of a trial: whole, escaped, and loading nothing."""

import re
from base64 import b64encode
from hashlib import sha256
from html import escape

import pytest
from msgspec.structs import replace

from broker.core.trials.grade import Grades
from gateways.pages.equity import alone, money
from gateways.pages.trialreport import body, page, policy, refused, style
from tests.support.html import Document
from tests.support.trials import report

SHOWN = report()
HOSTILE = "</style></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def sound(text: str) -> Document:
    """A page without faults; it has its styles in it."""
    found = Document(text)
    assert [each for each in found.faults if "<style>" not in each] == []
    return found


@pytest.mark.requirement("trial.report")
def test_it_says_what_was_done_and_what_it_was_worth() -> None:
    text = page(SHOWN)
    found = sound(text)
    assert [each.attributes.get("lang") for each in found.all("html")] == ["en"]
    for words in (
        SHOWN.ref, SHOWN.tape, SHOWN.about.instrument, "mean-revert, seed 5", "done: the tape’s end",
        escape(SHOWN.plans[0][1]), f"{SHOWN.grades.turnover:,}", f"{SHOWN.naive.turnover:,}", "advance 600",
    ):  # fmt: skip
        assert words in text
    assert "Prices in ticks of 0.00001<" in text
    whole = replace(SHOWN, about=replace(SHOWN.about, tick=10_000_000))
    assert "Prices in ticks of 10<" in page(whole)
    assert len(found.all("table")) == 3
    assert all(each.attributes.get("scope") in ("col", "row") for each in found.all("th"))


def rows_of(text: str) -> dict[str, list[str]]:
    """The rows of all tables that have a name of their own, by it."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text)
    return {name: re.findall(r'<td class="number">(.*?)</td>', cells) for name, cells in rows}


@pytest.mark.requirement("trial.report")
def test_each_grade_stands_in_its_row_and_in_the_column_of_whose_it_is() -> None:
    def grades(n: int) -> Grades:
        first = 1_000_000 * n
        return Grades(first, 2 * first, 3 * first, (n, 9), 10 + n, 20 + n, 30 + n, 40 + n, 50 + n, 60 + n)

    whose = {"grades": grades(1), "naive": grades(2), "aside": grades(3)}
    rows = rows_of(page(replace(SHOWN, curve=[(0, 0), (1, -5)], maker=[(2, 7), (3, 8)], **whose)))
    for name, first in (("Profit and loss", 1), ("Deepest fall", 2), ("Sharpe, a tick", 3)):
        assert rows[name] == [money(first * n * 1_000_000) for n in (1, 2, 3)], name
    assert rows["Closed with a gain"] == ["1 of 9", "2 of 9", "3 of 9"]
    counts = ("Turnover", "Fills", "Orders", "Kept back by a bound", "In the market", "Ticks")
    for at, name in enumerate(counts, 1):
        assert rows[name] == [str(10 * at + n) for n in (1, 2, 3)], name
    assert rows["a naive maker"] == [
        f"{money(made)} at {tick}" for tick, made in ((2, 7), (2, 7), (3, 8), (3, 8))
    ]
    assert rows["the plan"][2] == f"{money(0)} at 0"


@pytest.mark.requirement("trial.report")
def test_it_loads_nothing_runs_nothing_and_its_policy_says_so() -> None:
    text = page(SHOWN)
    found = sound(text)
    assert not any(found.all(tag) for tag in ("script", "img", "link", "iframe", "form", "a"))
    digest = b64encode(sha256(style().encode()).digest()).decode()
    (meta,) = [each for each in found.all("meta") if "http-equiv" in each.attributes]
    assert meta.attributes["content"] in policy()
    assert f"style-src 'sha256-{digest}'" in policy()
    assert {"default-src 'none'", "sandbox", "frame-ancestors 'none'"} <= set(policy().split("; "))
    assert f"<style>{style()}</style>" in text
    assert " style=" not in text
    assert "url(" not in style()
    assert "@import" not in style()


@pytest.mark.requirement("trial.report")
def test_what_an_agent_wrote_is_text_and_nothing_else() -> None:
    about = replace(SHOWN.about, instrument=HOSTILE + "\u202e\x00")
    shown = replace(
        SHOWN, about=about, plans=[(0, HOSTILE)], calls=[HOSTILE], fills_model=HOSTILE, kind=HOSTILE
    )
    text = page(shown)
    found = sound(text)
    assert not found.all("script")
    assert not found.all("img")
    assert text.count(escape(HOSTILE)) == 5
    assert "\u202e" not in text
    assert "\x00" not in text
    for line in ("pre", "dd"):
        assert all("<bdi>" in part for part in text.split(f"<{line}>")[1:])
    assert "alert" not in alone(shown)


@pytest.mark.requirement("trial.report")
def test_what_is_left_out_is_said_and_none_is_none() -> None:
    text = body(replace(SHOWN, plans=[(0, "p")] * 20, calls=["c"] * 200))
    assert "the first 20 plans" in text
    assert "the first 200 calls" in text
    assert f"{SHOWN.grades.fills - 3:,} more are in the artifact" in body(
        replace(SHOWN, fills=SHOWN.fills[:3])
    )
    assert "<p>None.</p>" in body(replace(SHOWN, fills=[]))
    imported = body(replace(SHOWN, kind=None, seed=None, over=None))
    assert "imported" in imported
    assert "finalized before" in imported


@pytest.mark.requirement("trial.report")
def test_a_document_that_refuses_escapes_its_words() -> None:
    text = refused(HOSTILE, HOSTILE)
    sound(text)
    assert text.count(escape(HOSTILE)) == 3
