"""When agents last called something."""

import pytest
import trio

from broker.actors.activity import AWAY_S, Activity
from broker.clock import VirtualClock
from tests.support.broker import START_MS


@pytest.mark.requirement("identity.presence")
async def test_a_call_counts_for_a_quarter_of_an_hour_and_is_told_to_the_minute(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clock = VirtualClock(START_MS)
    activity = Activity(clock)
    assert not activity.is_about("ag_1")
    assert activity.last_seen("ag_1") is None
    activity.note("ag_1")
    await trio.sleep(AWAY_S - 1)
    assert activity.is_about("ag_1")
    await trio.sleep(1)
    assert not activity.is_about("ag_1")
    assert activity.last_seen("ag_1") == START_MS // 60_000 * 60_000


async def test_no_more_than_so_many_are_remembered() -> None:
    activity = Activity(VirtualClock(START_MS), kept=2)
    for name in ("ag_1", "ag_2", "ag_1", "ag_3"):
        activity.note(name)
    assert [activity.is_about(name) for name in ("ag_1", "ag_2", "ag_3")] == [True, False, True]
