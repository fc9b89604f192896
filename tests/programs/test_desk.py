"""Programs of desks: opened, moved, closed, lapsed, screened, dialled; one code a key, never more than the limit."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.programs.desk_model import RECOVERY
from tests.programs.desk_world import (
    CODES,
    MODES,
    Change,
    Days,
    Dial,
    End,
    Move,
    Open,
    PickUp,
    Repeat,
    Restart,
    Screen,
    Step,
    Suspend,
    Wait,
    World,
)

keys = st.integers(0, 3)
holders = st.sampled_from([0, 0, 0, 1, 1, 2, 2, 3])
codes = st.sampled_from(CODES[:3])
ways = st.sampled_from([*[None] * 7, "unavailable", "doubt", "applied"])
indexes = st.integers(0, 5)

call = st.one_of(
    st.builds(Dial, holders, holders, ways),
    st.builds(PickUp, indexes, ways),
    st.builds(End, indexes, st.booleans(), ways),
    st.builds(Wait, st.sampled_from([1.0, 5.5, 31.0, 65.0])),
    st.builds(Restart),
)
busy = st.builds(  # many calls of one key, some answered: places run out
    lambda key, others, ways, index: [
        step
        for other, way in zip(others, ways, strict=False)
        for step in (Dial(key, other, way), PickUp(index))
    ],
    holders,
    st.lists(holders, min_size=2, max_size=6),
    st.lists(ways, min_size=2, max_size=6),
    indexes,
)
ringing = st.builds(  # many rings at one desk, unanswered: it is busy
    lambda key, others: [Dial(other, key) for other in others],
    holders,
    st.lists(holders, min_size=3, max_size=8),
)
statement = st.one_of(
    st.builds(Open, keys, st.sampled_from(CODES), st.booleans()),
    st.builds(Move, holders | st.just(RECOVERY), codes, keys),
    st.builds(Change, st.sampled_from(["close_desk", "cancel_move"]), holders, codes),
    st.builds(Screen, holders, codes, st.sampled_from(MODES), st.none() | keys),
    st.builds(Suspend, codes, st.booleans()),
    st.builds(Repeat),
    st.builds(Days, st.sampled_from([1.51, 31.13, 47.27, 92.41])),
)
recovery = st.builds(  # a recovery key's move, and what comes between
    lambda code, to, between, days: [Move(RECOVERY, code, to), *between, Days(days)],
    codes,
    keys,
    st.lists(statement | call, max_size=2),
    st.sampled_from([0.51, 1.51]),
)


def one(step: Step) -> list[Step]:
    return [step]


blocks = st.one_of(st.builds(one, call), st.builds(one, statement), busy, ringing, recovery)
opening: list[Step] = [Open(0, "ALFA"), Open(1, "BRAV"), Open(2, "CHAR")]
programs = st.builds(
    lambda some, blocks: [*opening[:some], *(step for block in blocks for step in block)],
    st.sampled_from([3, 3, 3, 1]),
    st.lists(blocks, min_size=3, max_size=14),
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


@pytest.mark.requirement("desk.predicted", "limits.never-more-than-eight")
@settings(max_examples=2 * (settings.default or settings()).max_examples)
@given(programs)
def test_every_answer_of_a_desk_program_is_the_one_that_the_law_predicts(program: list[Step]) -> None:
    trio.run(run, program, clock=MockClock(autojump_threshold=0))
