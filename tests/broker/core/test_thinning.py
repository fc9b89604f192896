"""What is kept of many values."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.thinning import PIECES, decimate

POINTS = st.integers(-1_000_000, 1_000_000)


@pytest.mark.requirement("pages.arena-chart")
@given(st.lists(POINTS, min_size=1, max_size=2_002))
def test_few_of_many_are_drawn_and_no_extreme_is_lost(values: list[int]) -> None:
    drawn = decimate(values)
    assert len(drawn) <= 4 * PIECES
    assert all(values[place] == value for place, value in drawn)
    assert all(one < other for (one, _), (other, _) in pairwise(drawn))
    shown = [value for _, value in drawn]
    assert (shown[0], shown[-1], min(shown), max(shown)) == (values[0], values[-1], min(values), max(values))
    assert (drawn[0][0], drawn[-1][0]) == (0, len(values) - 1)


@pytest.mark.requirement("pages.arena-chart")
@pytest.mark.parametrize("at", [1, 7, 1_000, 1_999])
def test_a_peak_of_one_action_among_two_thousand_is_seen(at: int) -> None:
    values = [500] * 2_001
    values[at] = 900
    values[at + 1] = 100
    assert {(at, 900), (at + 1, 100)} <= set(decimate(values))


def test_few_values_are_all_drawn() -> None:
    assert decimate([3, 1, 2]) == [(0, 3), (1, 1), (2, 2)]
    assert len(decimate(list(range(4 * PIECES)))) == 4 * PIECES
