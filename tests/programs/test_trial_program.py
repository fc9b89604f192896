"""Programs of calls, failing commits and restarts: every answer is the one that the law predicts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.programs.flaky import WAYS
from tests.programs.trial_world import IDLE_S, MARKET, Again, Do, Open, Restart, Step, Wait, World

indexes = st.integers(0, 5)
ways = st.one_of(st.none(), st.none(), st.sampled_from(WAYS))
verbs = st.sampled_from(["start", "start", "advance", "advance", "advance", "revise", "submit", "finalize"])
doing = st.builds(
    Do,
    indexes,
    verbs,
    st.sampled_from(["fade", "quiet", "down"]),
    st.sampled_from([1, 7, 60, 400]),
    st.sampled_from([0, 0, 0, 1]),
    ways,
    st.booleans(),
    st.booleans(),
)
other = st.one_of(
    st.builds(Open, ways),
    st.builds(Again, st.integers(0, 20)),
    st.builds(Wait, st.sampled_from([5, 5, 5, IDLE_S + 100])),
    st.builds(Restart),
)
programs = st.lists(st.one_of(doing, doing, doing, other), min_size=4, max_size=25).map(
    lambda rest: [Open(), Do(0, "start"), *rest]
)


async def at_once(do: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """What a thread does, done here: while one works the virtual clock would jump, to the end of a trial's time."""
    await trio.lowlevel.checkpoint()
    return do(*args)


@pytest.fixture(autouse=True, scope="module")
def long() -> Iterator[None]:
    """Advances of some hundred ticks take long."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in (("INLINE", 6_000), ("STEPS", 2_000), ("PART", 6_000)):
            monkeypatch.setattr(f"broker.actors.trial.{name}", value)
        monkeypatch.setattr("trio.to_thread.run_sync", at_once)
        monkeypatch.setattr("broker.actors.tapes.make", lambda *_: MARKET)
        monkeypatch.setattr("broker.actors.tapes.made", lambda _: MARKET)
        yield


async def run(program: list[Step]) -> None:
    world = World()
    await world.start()
    try:
        for step in program:
            await world.play(step)
        await world.finish()
    finally:
        await world.stop()


@pytest.mark.requirement("trial.session-expect", "trial.session-once", "trial.session-killed")
@settings(max_examples=(settings.default or settings()).max_examples // 3)
@given(programs)
@example([Open(), Do(0, "start"), Do(0, "advance", ticks=400, patient=False), Restart(), Do(0, "advance")])
@example([Open(), Do(0, "start"), Do(0, "advance", ticks=400, way="applied", crash=True), Again(2), Again(0)])
@example([Open(), Do(0, "start", "down"), Do(0, "advance", ticks=7), Do(0, "submit"), Wait(IDLE_S + 100)])
@example([Open(), Do(0, "start"), Do(0, "advance", ticks=60, way="late"), Do(0, "finalize", way="doubt")])
def test_every_answer_of_a_program_of_trials_is_the_one_that_the_law_predicts(program: list[Step]) -> None:
    trio.run(run, program, clock=MockClock(autojump_threshold=0))
