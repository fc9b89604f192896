"""Looks at the past say what a search through the past says, and cost the same whatever their length."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.plan.windows import KINDS, Delay, Highest, Lowest, Mean

VALUES = st.lists(st.integers(-5, 5), min_size=1, max_size=40)


@pytest.mark.requirement("plan.windows")
@given(VALUES, st.integers(1, 8))
def test_a_window_is_what_its_last_values_say(values: list[int], ticks: int) -> None:
    mean, lowest, highest, delay = Mean(ticks), Lowest(ticks), Highest(ticks), Delay(ticks)
    for end, value in enumerate(values, 1):
        found = mean.push(value), lowest.push(value), highest.push(value), delay.push(value)
        if end >= ticks:
            last = values[end - ticks : end]
            assert found[:3] == (sum(last) // ticks, min(last), max(last))
        if end > ticks:
            assert found[3] == values[end - ticks - 1]


@pytest.mark.requirement("plan.windows")
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_window_costs_what_a_short_one_costs(kind: str) -> None:
    def cost(ticks: int) -> float:
        push, best = KINDS[kind](ticks).push, 1.0
        for _ in range(3):
            began = time.thread_time()
            for value in range(10_000):
                push(-value if kind == "max" else value)
            best = min(best, time.thread_time() - began)
        return best

    assert cost(4_000) < 20 * cost(2)
