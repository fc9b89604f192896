"""Programs of three agents: asked, accepted, declined, revoked, granted, suspended, written to, over days and
restarts, with commits that fail."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.programs.pair_world import (
    Ask,
    Cancel,
    Days,
    Grant,
    Mark,
    Respond,
    Restart,
    Revoke,
    Send,
    SetPolicy,
    Step,
    Suspend,
    Ungrant,
    World,
)

agents = st.integers(0, 2)
pairs = st.sampled_from([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (0, 1), (1, 0), (0, 0)])
scopes = st.sampled_from([frozenset({"message"}), frozenset({"message", "task"}), frozenset({"task"})])
days = st.sampled_from([1, 5, 30])
ways = st.sampled_from([*[None] * 7, "unavailable", "doubt", "applied"])
indexes = st.integers(0, 7)
whose = st.sampled_from([None, None, None, 0, 1, 2])
last = st.sampled_from([-1, -1, -1, 0, 1])

step = st.one_of(
    st.builds(lambda pair, *rest: Ask(*pair, *rest), pairs, scopes, days, ways),
    st.builds(Respond, last, whose, st.booleans(), st.none() | scopes, ways),
    st.builds(Respond, last, st.none(), st.just(True), st.none(), ways),
    st.builds(Cancel, last, whose, ways),
    st.builds(Revoke, last, whose, ways),
    st.builds(lambda pair, *rest: Grant(*pair, *rest), pairs, scopes, st.none() | days, ways),
    st.builds(lambda pair, way: Ungrant(*pair, way), pairs, ways),
    st.builds(lambda pair, way: Send(*pair, way), pairs, ways),
    st.builds(Mark, agents, indexes, ways),
    st.builds(SetPolicy, agents, st.sampled_from(["agent-decides", "owner-decides", "auto-accept", "deny"])),
    st.builds(Suspend, agents, st.sampled_from([False, False, True])),
    st.builds(Days, st.sampled_from([0.51, 3.13, 7.02, 31.01])),
    st.builds(Restart),
)
agreed = st.builds(  # two that agree, and write
    lambda pair, wanted, lasts, way: [
        Ask(*pair, wanted, lasts, way),
        Respond(-1, None, True, None),
        Send(*pair, way),
        Send(*reversed(pair)),
    ],
    pairs,
    scopes,
    days,
    ways,
)
declined = st.builds(  # asked again and again
    lambda pair, accepts: [
        each
        for accept in accepts
        for each in (Ask(*pair, frozenset({"task"}), 1), Respond(-1, None, accept, None), Days(7.02))
    ],
    pairs,
    st.lists(st.booleans(), min_size=2, max_size=5),
)
granted = st.builds(  # in place of each other, and taken back
    lambda pair, one, other, lasts, way: [
        Grant(*pair, one, lasts),
        Grant(*pair, other, None, way),
        Send(*pair),
        Ungrant(*pair, way),
    ],
    pairs,
    scopes,
    scopes,
    days,
    ways,
)
waited = st.builds(  # asked, and left alone
    lambda pair, wanted, lasts: [Ask(*pair, wanted, 30), Days(lasts), Respond(-1, None, True, None)],
    pairs,
    scopes,
    st.sampled_from([29.0, 31.01]),
)
blocks = st.one_of(st.builds(lambda one: [one], step), agreed, declined, granted, waited)
programs = st.lists(blocks, min_size=3, max_size=10)


async def run(program: list[list[Step]]) -> None:
    world = World()
    await world.start()
    try:
        for block in program:
            for each in block:
                await world.play(each)
            await world.judge()
    finally:
        await world.stop()


@pytest.mark.requirement("agreement.predicted")
@given(programs)
def test_every_answer_of_a_program_of_agents_is_the_one_that_the_law_predicts(
    program: list[list[Step]],
) -> None:
    trio.run(run, program, clock=MockClock(autojump_threshold=0))
