"""The sliding window: never more than the limit in any window, and waiting as told is enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.limits import wait_ms

STEPS = st.lists(st.floats(0, 4) | st.sampled_from([0.0, 0.1, 0.3334, 10.0]), min_size=1, max_size=80)


@pytest.mark.requirement("limits.window-exact")
def test_thirty_are_taken_and_the_next_waits_for_the_first_to_come_back() -> None:
    spent = [100.0 + each / 10 for each in range(30)]
    assert wait_ms(spent[:29], 103.0) == 0
    assert wait_ms(spent, 103.0) == 7000
    assert wait_ms(spent, 109.9999) == 1
    assert wait_ms(spent, 110.0) == 0
    assert wait_ms([*spent, 110.0], 110.0) == 100
    assert wait_ms([100.0] * 30, 100.0) == 10_000
    assert wait_ms([], 0.0) == 0
    assert wait_ms([0.0], 9.999_999_9, limit=1) == 0


@pytest.mark.requirement("limits.window-exact")
@given(STEPS, st.integers(1, 8), st.floats(0, 1e7))
def test_no_window_ever_holds_more_than_the_limit(steps: list[float], limit: int, start: float) -> None:
    now, spent = start, list[float]()
    for step in steps:
        now += step
        if wait_ms(spent, now, limit) == 0:
            spent.append(now)
    for first, beyond in zip(spent, spent[limit:], strict=False):
        assert beyond - first >= 10.0 - 2e-6


@pytest.mark.requirement("limits.retry-after")
@given(STEPS, st.integers(1, 8), st.floats(0, 1e7))
def test_waiting_as_told_is_enough_and_never_much_too_long(
    steps: list[float], limit: int, start: float
) -> None:
    now, spent = start, list[float]()
    for step in steps:
        now += step
        wait = wait_ms(spent, now, limit)
        assert 0 <= wait <= 10_000
        if wait:
            assert wait_ms(spent, now + wait / 1000, limit) == 0
            assert wait_ms(spent, now + (wait - 1.01) / 1000, limit) > 0
            now += wait / 1000
        spent.append(now)
