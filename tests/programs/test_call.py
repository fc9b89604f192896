"""Programs of calls: whatever is sent, replayed, refused by the store, restarted or waited for, the law predicts it."""

import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.programs.call_world import Again, Dial, Land, Restart, Send, Step, Wait, World
from tests.programs.flaky import WAYS

ways = st.sampled_from([*[None] * 5, *WAYS])
call_faults = st.sampled_from(
    [*[None] * 12, "prev_sig", "skew", "edge", "sig", "wire", "desk", "taken", "taken"]
)
env_faults = st.sampled_from([*[None] * 12, "prev_sig", "ahead", "behind", "skew", "edge", "sig", "to"])
types = st.sampled_from([*[None] * 6, "CHAT", "END", "CALL", "PICKUP"])
who = st.sampled_from([*["turn"] * 6, "other", "other", "stranger"])
indexes = st.integers(0, 3)
times = st.sampled_from([0.25, 1.0, 4.0, 9.75, 10.0, 29.0, 31.0, 400.0, 3599.0])

steps = st.one_of(
    st.builds(Dial, st.booleans(), call_faults, ways),
    st.builds(Send, indexes),
    st.builds(Send, indexes),
    st.builds(Send, indexes, types, who, env_faults, ways),
    st.builds(Send, indexes, types, who, env_faults, ways),
    st.builds(Again, st.integers(0, 5), ways),
    st.builds(Land),
    st.builds(Wait, times),
    st.builds(Restart, st.sampled_from([0.0, 3.0, 40.0]), st.sampled_from([0, 0, 0, 5000, -5000])),
)
talk = st.builds(lambda call, times: [Send(call)] * times, indexes, st.integers(2, 4))
doubt = st.builds(  # a commit that lands after others have looked, or too late
    lambda first, between, then: [first, *between, Land(), then],
    st.builds(Send, indexes, way=st.just("late")) | st.builds(Dial, way=st.just("late")),
    st.lists(steps, max_size=2),
    st.builds(Again, st.integers(0, 2)) | st.builds(Send, indexes),
)
reused = st.builds(lambda call, swap: [Send(call, "END"), Dial(swap, "taken")], indexes, st.booleans())
opening = st.sampled_from([[Dial()], [Dial(), Send(0)], [Dial(), Send(0), Dial(True), Send(1)]])
# one_of would count a strategy that is given twice once
weights = [st.builds(lambda step: [step], steps)] * 8 + [talk] * 4 + [doubt] * 2 + [reused]
blocks = st.sampled_from(range(len(weights))).flatmap(weights.__getitem__)
EXAMPLES = (settings.default or settings()).max_examples
programs = st.builds(
    lambda first, then: [*first, *(step for block in then for step in block)],
    opening,
    st.lists(blocks, min_size=3, max_size=25),
)


EACH: list[Step] = [
    Dial(),
    *[Dial(True, fault) for fault in ("prev_sig", "skew", "edge", "sig", "wire", "desk", "taken")],
    Send(0),
    *[Send(0, fault=fault) for fault in ("prev_sig", "ahead", "behind", "skew", "sig", "to")],
    Wait(10.0),
    *[Send(0, type) for type in ("CALL", "PICKUP", "CHAT")],
    *[Send(0, who=party) for party in ("other", "stranger")],
    Send(0),
    *[Send(0, "END", "stranger", fault) for fault in (None, "prev_sig")],
    Send(0, "END"),
    Send(0),
    Dial(fault="taken"),
]
"""Each kind of fault once, whatever chance brings."""


async def run(program: list[Step], directory: Path | None = None) -> None:
    world = World(directory)
    await world.start()
    try:
        await world.open_desks()
        for step in program:
            await world.play(step)
        await world.finish()
    finally:
        await world.stop()


def play(program: list[Step], directory: Path | None = None) -> None:
    trio.run(run, program, directory, clock=MockClock(autojump_threshold=0))


@pytest.mark.requirement("retries.acknowledged-never-lost", "streams.no-gap", "order.predicted")
@settings(max_examples=4 * EXAMPLES)
@given(programs)
@example(EACH)
def test_every_answer_of_a_call_program_is_the_one_that_the_law_predicts(program: list[Step]) -> None:
    play(program)


@pytest.mark.requirement("retries.acknowledged-never-lost", "streams.no-gap", "order.predicted")
@settings(max_examples=max(8, EXAMPLES // 4))
@given(programs)
def test_the_same_holds_on_the_embedded_store_that_is_closed_and_opened_at_each_restart(
    program: list[Step],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        play(program, Path(directory) / "store")
