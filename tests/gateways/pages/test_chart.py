"""The chart of points: what is kept of many values, and SVG that a reader can rely on."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.pages.chart import GRID, HEIGHT, TOP, Summary, line, summary, ticks

POINTS = st.integers(0, 1_000_000)


@pytest.mark.requirement("pages.arena-chart")
def test_a_summary_names_the_first_place_of_each_extreme() -> None:
    values = [500] * 2_001
    values[7], values[8] = 900, 100
    assert summary(values) == Summary((0, 500), (8, 100), (7, 900), (2_000, 500))


@given(POINTS, POINTS)
def test_ticks_are_round_even_and_around_the_values(one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    found = ticks(low, high)
    steps = {b - a for a, b in pairwise(found)}
    assert len(steps) == 1
    step = steps.pop()
    assert str(step).rstrip("0") in ("1", "2", "5")
    assert found[0] <= low <= high <= found[-1]
    assert all(each % step == 0 for each in found)
    assert 2 <= len(found) <= GRID + 2


@pytest.mark.requirement("pages.arena-chart")
@pytest.mark.parametrize("values", [[0], [1_000], [1_000, 1_000], [1_000, 0, 5], list(range(2_001))])
def test_it_is_svg_with_a_title_a_description_and_a_line_within_its_place(values: list[int]) -> None:
    svg = ET.fromstring(line(values, "Points <b>", 'x & "y"', ("<i>", "action 2")))
    assert svg.attrib["role"] == "img"
    named = svg.attrib["aria-labelledby"].split()
    told = {each.attrib["id"]: each.text for each in svg if "id" in each.attrib}
    assert [told[name] for name in named] == ["Points <b>", 'x & "y"']
    assert [each.text for each in svg.findall("text")][-2:] == ["<i>", "action 2"]
    (path,) = svg.iter("path")
    places = [tuple(map(float, each.split())) for each in path.attrib["d"][1:].split("L")]
    assert (places[0][0], places[-1][0]) == (0, 1000)
    assert all(0 <= x <= 1000 and TOP <= y <= TOP + HEIGHT for x, y in places)
    assert min(places, key=lambda each: each[1])[1] <= max(places, key=lambda each: each[1])[1]
    if values[:1] < values[-1:]:
        assert places[0][1] > places[-1][1]  # more points stand higher


@pytest.mark.requirement("pages.arena-chart")
def test_no_value_is_no_chart_and_no_attribute_is_a_style() -> None:
    with pytest.raises(ValueError, match="one value"):
        line([], "", "", ("", ""))
    assert "style" not in line([1, 2], "", "", ("", ""))
