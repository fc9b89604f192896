"""The picture of a trial: sound SVG, true to the numbers, whatever they are."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from broker.core.thinning import decimate
from broker.core.trials.account import Fill
from broker.core.trials.report import Report, held, marked
from gateways.pages.equity import BAND, GAP, HEIGHT, LEFT, TITLE, TOP, WHOLE, alone, equity, money, words
from tests.support.trials import report

SHOWN = report()
NAME = "{http://www.w3.org/2000/svg}"


def with_curve(values: list[int], fills: list[Fill] | None = None, **more: Any) -> Report:
    grades = replace(SHOWN.grades, ticks=len(values), fills=len(fills or []), pnl=values[-1] if values else 0)
    return replace(
        SHOWN,
        curve=decimate(values),
        maker=[],
        grades=grades,
        position=held(fills or []),
        marks=marked(fills or [], len(values)),
        **more,
    )


def path(svg: ET.Element, kind: str) -> list[tuple[float, float]]:
    (found,) = [each for each in svg.iter("path") if each.get("class") == kind]
    places = [each.split() for each in re.split("[ML]", found.attrib["d"].rstrip("Z"))[1:]]
    return [(float(x), float(y)) for x, y in places]


@pytest.mark.requirement("trial.picture")
def test_it_is_an_image_with_a_title_a_description_and_no_style() -> None:
    svg = ET.fromstring(equity(SHOWN))
    assert (svg.get("role"), svg.get("width")) == ("img", "100%")
    told = {each.attrib["id"]: each.text for each in svg if "id" in each.attrib}
    assert [told[name] for name in svg.attrib["aria-labelledby"].split()] == [TITLE, words(SHOWN)]
    assert "style" not in equity(SHOWN)
    assert {each.get("class") for each in svg.iter("path")} >= {"curve", "maker", "aside", "fall", "held"}


@pytest.mark.requirement("trial.picture")
def test_the_three_curves_are_whose_they_say() -> None:
    svg = ET.fromstring(equity(replace(with_curve([0, 40, 80]), maker=[(0, 80), (2, -40)])))
    lines = {kind: path(svg, kind) for kind in ("curve", "maker", "aside")}
    level = {y: at for at, y in lines["curve"]}
    assert lines["aside"] == [(0, lines["curve"][0][1]), (1000, lines["curve"][0][1])], "nothing was made"
    assert lines["maker"][0] == (0, lines["curve"][2][1])
    assert lines["maker"][1][1] > lines["curve"][0][1], "a loss is below nothing"
    assert len(level) == 3


@pytest.mark.requirement("trial.picture")
def test_each_fill_is_marked_at_the_curve_by_its_side() -> None:
    svg = ET.fromstring(equity(SHOWN))
    marks = list(svg.iter("use"))
    assert len(marks) == len(SHOWN.marks) > 4
    curve = dict(path(svg, "curve"))
    for mark, fill in zip(marks, SHOWN.marks, strict=True):
        assert mark.attrib["href"] == f"#mark-{fill.side}"
        x = float(mark.attrib["x"].rstrip("%"))
        assert x == pytest.approx(fill.tick * 100 / (SHOWN.grades.ticks - 1), abs=0.01)
        near = min(curve, key=lambda each: abs(each - 10 * x))
        assert float(mark.attrib["y"]) == curve[near]


@pytest.mark.requirement("trial.picture")
@given(st.lists(st.integers(-(10**15), 10**15), max_size=700))
def test_whatever_was_made_the_line_is_in_its_place_and_more_stands_higher(values: list[int]) -> None:
    svg = ET.fromstring(equity(with_curve(values)))
    places = path(svg, "curve")
    assert all(0 <= x <= 1000 and TOP <= y <= TOP + HEIGHT for x, y in places)
    assert len(places) <= 602
    if len(values) > 1:
        assert (places[0][0], places[-1][0]) == (0, 1000)
        highest = min(places, key=lambda each: each[1])[1]
        kept = decimate(values)
        assert places[max(range(len(kept)), key=lambda n: kept[n][1])][1] == highest


@pytest.mark.requirement("trial.picture")
def test_what_is_below_its_height_is_shaded_from_the_height_to_the_curve() -> None:
    svg = ET.fromstring(equity(with_curve([5, 10, 2, 8, 20])))
    shade, curve = path(svg, "fall"), path(svg, "curve")
    assert shade[5:] == list(reversed(curve))
    heights = [y for _, y in shade[:5]]
    assert heights == [curve[0][1], curve[1][1], curve[1][1], curve[1][1], curve[4][1]]


@pytest.mark.requirement("trial.picture")
def test_what_is_held_is_a_step_at_each_fill() -> None:
    fills = [Fill(2, "buy", 10, 1, 0), Fill(5, "sell", 30, 1, 0)]
    svg = ET.fromstring(equity(with_curve([0] * 11, fills)))
    low, high = TOP + HEIGHT + GAP + BAND, TOP + HEIGHT + GAP
    zero = low - BAND * 2 / 3
    steps = path(svg, "held")
    assert [x for x, _ in steps] == [0, 0, 0, 200, 200, 500, 500, 1000, 1000]
    assert [y for _, y in steps] == pytest.approx([zero] * 4 + [high] * 2 + [low] * 2 + [zero], abs=0.1)
    assert "of 2 fills are marked" in words(with_curve([0] * 11, fills))


@pytest.mark.requirement("trial.picture")
def test_alone_it_is_a_file_with_its_styles_both_schemes_and_a_legend() -> None:
    text = alone(SHOWN)
    svg = ET.fromstring(text)
    assert svg.tag == f"{NAME}svg"
    (style,) = svg.iter(f"{NAME}style")
    assert "prefers-color-scheme: dark" in (style.text or "")
    assert ".equity .curve" in (style.text or "")
    said = [each.text for each in svg.iter(f"{NAME}text")]
    assert {"the plan", "a naive maker", "standing aside", "bought", "sold"} <= set(said)
    inner = svg[-1]
    assert (inner.get("x"), inner.get("height")) == (str(LEFT), str(WHOLE))
    assert not re.search(r"(?:href|src|url\()\s*[=(]?\s*[\"']?(?:https?:|//)", text)


@pytest.mark.requirement("trial.picture")
@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0"), (1, "0.000001"), (-1_500_000, "-1.50"), (1_234_000_000, "1,234"), (10**15, "1,000,000,000")],
)
def test_money_is_whole_and_said_to_its_last_digit(micros: int, text: str) -> None:
    assert money(micros) == text


def test_labels_of_large_money_are_short() -> None:
    for most, label in ((4 * 10**12, "4 M"), (4 * 10**9, "4 k"), (4 * 10**6, "4")):
        assert f">{label}<" in equity(with_curve([0, most]))
