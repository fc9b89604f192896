"""Slices of an advance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.plan.limits import cost
from broker.core.trials.account import Fill, Working
from broker.core.trials.script import Advance, Start, Trial
from broker.core.trials.slices import RESTING, TICK, advance_slice
from tests.broker.core.trials.test_session import MARKET, read
from tests.support.rehearsals import FADE, QUIET

PLAN = read(FADE)
COST = cost(PLAN)


def begun(plan: str = FADE) -> Trial:
    trial = Trial(MARKET)
    trial.do(Start(read(plan)))
    return trial


@pytest.mark.requirement("trial.session-slices")
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=20), st.integers(1, 2_600))
def test_slices_of_any_size_fill_what_one_advance_fills(sizes: list[int], ticks: int) -> None:
    parted, whole, ran, fills = begun(), begun(), 0, list[Fill]()
    while ran < ticks and parted.place.over is None:
        more, _, filled = advance_slice(parted, ticks - ran, 10**9, COST, sizes[ran % len(sizes)])
        assert more >= 1
        ran, fills = ran + more, fills + filled
    assert (ran, fills) == (ticks, whole.do(Advance(ticks)))
    assert parted.place == whole.place


@pytest.mark.requirement("trial.session-slices")
@given(st.integers(1, 200), st.lists(st.integers(1, 30_000), min_size=1, max_size=4))
def test_a_limit_of_fills_ends_at_the_same_tick_however_it_is_cut(most: int, sizes: list[int]) -> None:
    parted, whole, fills = begun(), begun(), list[Fill]()
    while len(fills) < most and parted.place.over is None:
        fills += advance_slice(parted, 2_600, most - len(fills), COST, sizes[len(fills) % len(sizes)])[2]
    assert fills == whole.advance(2_600, most)
    assert parted.place == whole.place


@pytest.mark.requirement("trial.session-fair")
def test_a_slice_is_the_shorter_the_more_rests() -> None:
    trial = begun(QUIET)
    steps = 100 * (TICK + COST)
    assert advance_slice(trial, 2_600, 10**9, COST, steps)[0] == 100
    trial.place.account.working = [Working("buy", 1, 1, None)] * 50
    assert advance_slice(trial, 2_600, 10**9, COST, steps)[0] == -(-steps // (TICK + COST + 50 * RESTING))
