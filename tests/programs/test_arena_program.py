"""Programs of sessions: opened, played, repeated, lost, raced, left alone. Each answer is what the law predicts."""

from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.programs.arena_model import AGENTS
from tests.programs.arena_world import (
    Act,
    Again,
    Clash,
    Land,
    Open,
    Race,
    Restart,
    Step,
    Wait,
    World,
    appends,
)
from tests.programs.flaky import FlakyMemory
from tests.support.agents import make_agent
from tests.support.arena import first_legal, open_session, submit
from tests.support.broker import code, open_bench

agents = st.integers(0, AGENTS - 1)
indexes = st.integers(0, 6)
who = st.sampled_from(["agent", "agent", "agent", "owner", "other"])
ways = st.sampled_from([*[None] * 8, "unavailable", "doubt", "applied", "late"])
opening = st.builds(
    Open,
    agents,
    who,
    st.sampled_from(["hilo", "rfq"]),
    st.sampled_from(["persistent", "persistent", "simulation"]),
    st.sampled_from(["next", "none", "none", "past"]),
    ways,
)
what = st.sampled_from(["plain", "plain", "plain", "big", "big", "all", "bad", "stop"])
acting = st.builds(Act, indexes, what, who, st.sampled_from([0, 0, 0, 1]), ways, st.booleans())
other = st.one_of(
    st.builds(Again, indexes),
    st.builds(Clash, indexes),
    st.builds(Race, indexes, st.booleans()),
    st.builds(Wait, st.sampled_from([1_130, 2_570])),
    st.builds(Land),
    st.builds(Restart),
)
steps = st.one_of(acting, acting, acting, opening, other)
programs = st.builds(
    lambda first, rest: [*first, *rest],
    st.sampled_from([[Open(0), Open(0, mode="simulation")], [Open(1, game="rfq"), Open(1)], [Open(2)]]),
    st.lists(steps, min_size=4, max_size=30),
)


async def run(program: list[Step]) -> None:
    world = World()
    await world.start()
    try:
        for step in program:
            await world.play(step)
        await world.finish()
    finally:
        await world.stop()


@pytest.mark.requirement("arena.program")
@settings(max_examples=(settings.default or settings()).max_examples // 2)
@given(programs)
@example(
    [Open(0), Act(0, "bad", way="applied", crash=True), Act(0, "bad"), Restart(), Act(0, behind=1), Again(1)]
)
@example(
    [Open(2), *[Act(0, "all")] * 9, Open(2), Open(2, mode="simulation"), Act(1, way="applied"), Again(1)]
)
@example([Open(0), Open(0), Act(0, "big", way="late"), Act(1, way="late"), Land(), Wait(2_570), Wait(1_130)])
def test_every_answer_of_an_arena_program_is_the_one_that_the_law_predicts(program: list[Step]) -> None:
    trio.run(run, program, clock=MockClock(autojump_threshold=0))


@pytest.mark.requirement("arena.late-commit")
async def test_who_knows_of_a_late_commit_is_not_answered_by_who_does_not() -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        asked: dict[str, Any] = {"action": first_legal(session), "idempotency_key": "k"}
        store.fail("late", appends)
        assert code(await submit(bench, ann, session, **asked)) == "in_doubt"
        shown = await bench.call("get_session", ann, session_id=session["session_id"])
        assert shown["session"]["version"] == 0  # an actor has read the log without it
        assert await store.land()
        shown = await bench.call("get_session", ann, session_id=session["session_id"])
        assert shown["session"]["version"] == 1
        outcome = await submit(bench, ann, session, **asked)
        assert outcome["session"]["version"] == 1


@pytest.mark.requirement("arena.late-commit")
async def test_an_action_on_the_version_of_a_late_commit_is_no_conflict() -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        asked: dict[str, Any] = {"action": first_legal(session), "idempotency_key": "k"}
        store.fail("late", appends)
        assert code(await submit(bench, ann, session, **asked)) == "in_doubt"
        await bench.call("get_session", ann, session_id=session["session_id"])
        assert await store.land()
        outcome = await submit(bench, ann, session, **asked)
        assert code(await submit(bench, ann, outcome["session"])) == "accepted"


@pytest.mark.requirement("arena.late-commit")
async def test_the_commit_that_is_shown_after_a_late_opening_opens_the_next_session() -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        await open_session(bench, ann)
        store.fail("late", appends)
        asked: dict[str, Any] = {"game": "hilo", "idempotency_key": "k"}
        assert code(await bench.call("open_session", ann, **asked)) == "in_doubt"
        lost = {"game": "hilo", "config": {"commit": "0" * 64}, "idempotency_key": "l"}
        assert code(await bench.call("open_session", ann, **lost)) == "CONFLICT"  # an actor has read
        assert await store.land()
        shown = await bench.call("get_agent", ann, agent_id=ann.agent)
        session = await open_session(bench, ann, config={"commit": shown["arena"]["next_commit"]})
        assert session["games"] == 2
