"""How fast a channel may be written to: no window ever holds more than the limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.machine import Now
from broker.core.pace import PACE, Pace, Seen, Spent, recount, wait

CHANNEL_LIMIT, MEMBER_LIMIT, WINDOW_S = 200, 30, 60.0
pytestmark = pytest.mark.requirement("channel.limits")


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 4)), max_size=600))
def test_no_minute_holds_more_than_the_limits(asked: list[tuple[str, float]]) -> None:
    spent: list[Spent] = []
    mono = 0.0
    for agent, later in asked:
        mono += later
        if not wait(spent[-CHANNEL_LIMIT:], agent, mono):
            spent.append(Spent(len(spent) + 1, agent, mono))
    for at, first in enumerate(spent):
        window = [each for each in spent[at:] if each.mono < first.mono + WINDOW_S - 1e-5]
        assert len(window) <= CHANNEL_LIMIT
        assert sum(each.agent_id == first.agent_id for each in window) <= MEMBER_LIMIT


def test_the_channel_has_a_limit_of_its_own_and_waiting_as_told_is_enough() -> None:
    spent = [Spent(at, f"ag{at % 10}", at * 0.1) for at in range(CHANNEL_LIMIT)]
    left = wait(spent, "new", 20.0)
    assert left == 40_000
    assert wait(spent, "new", 20.0 + left / 1000) == 0
    assert wait(spent[1:], "new", 20.0) == 0


def test_a_member_has_a_limit_of_its_own() -> None:
    spent = [Spent(at, "one", float(at)) for at in range(MEMBER_LIMIT)]
    assert wait(spent, "one", 30.0) == 30_000
    assert wait(spent, "other", 30.0) == 0
    assert wait(spent[1:], "one", 30.0) == 0


def test_the_limits_are_the_laws_and_can_be_set() -> None:
    assert Pace(CHANNEL_LIMIT, MEMBER_LIMIT, WINDOW_S) == PACE
    spent = [Spent(1, "one", 0.0)]
    assert wait(spent, "one", 1.0, Pace(2, 1, 10.0)) == 9000
    assert wait(spent, "other", 1.0, Pace(2, 1, 10.0)) == 0
    assert wait(spent, "other", 1.0, Pace(1, 1, 10.0)) == 9000


def test_what_is_read_back_is_as_old_as_the_wall_says_and_never_older_than_the_process_where_it_lies_behind() -> (
    None
):
    started, now = Now(1_000_000, 50.0), Now(1_090_000, 140.0)
    rows = [(1, "a", 990_000), (2, "a", 1_500_000)]
    assert [each.mono for each in recount(rows, None, started, now)] == [40.0, 50.0]


def test_what_this_process_saw_stays_measured_on_its_own_clock() -> None:
    started, now = Now(1_000_000, 50.0), Now(9_000_000, 60.0)  # the wall has stepped ahead
    seen = Seen(2, (Spent(2, "a", 58.0),))
    rows = [(1, "a", 999_000), (2, "a", 1_008_000), (3, "a", 9_000_000)]
    assert [(each.seq, each.mono) for each in recount(rows, seen, started, now)] == [
        (1, 49.0),
        (2, 58.0),
        (3, 60.0),  # was in doubt, and landed
    ]
    behind = recount([(2, "a", 1), (3, "a", 2)], seen, started, Now(900_000, 61.0))
    assert behind[1].mono >= behind[0].mono
