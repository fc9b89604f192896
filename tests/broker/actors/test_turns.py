"""So many in one turn of the loop, the others in the next, in their order."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.turns import Turns


class Count(trio.abc.Instrument):
    """Turns of the loop."""

    def __init__(self) -> None:
        self.turns = 0

    def after_io_wait(self, timeout: float) -> None:
        self.turns += 1


@pytest.mark.requirement("faults.resume-storm")
async def test_a_turn_has_so_many_places_and_who_waits_gets_the_next_ones_in_order() -> None:
    turns, count = Turns(3), Count()
    came, got = list[int](), list[tuple[int, int]]()

    async def take(number: int) -> None:
        came.append(number)
        await turns.wait()
        got.append((count.turns, number))

    trio.lowlevel.add_instrument(count)
    try:
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(take, number)
    finally:
        trio.lowlevel.remove_instrument(count)
    taken = [turn for turn, _ in got]
    assert max(taken.count(turn) for turn in taken) <= 6  # the first ones' turn may have begun in the middle
    assert len(set(taken)) >= 6
    turn_of = {number: turn for turn, number in got}
    assert [turn_of[number] for number in came] == sorted(taken)  # within a turn Trio shuffles


async def test_a_free_place_is_taken_without_a_checkpoint_and_turns_free_them_again() -> None:
    turns = Turns(2)
    for _ in range(5):
        for _ in range(2):
            with trio.CancelScope() as scope:
                scope.cancel()
                await turns.wait()
            assert not scope.cancelled_caught
        for _ in range(4):
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()


async def test_who_is_cancelled_leaves_the_line_and_holds_no_place() -> None:
    turns, got = Turns(1), list[str]()

    async def take(name: str) -> None:
        await turns.wait()
        got.append(name)

    async with trio.open_nursery() as nursery:
        await turns.wait()
        with trio.CancelScope() as scope:
            scope.cancel()
            await turns.wait()
        assert scope.cancelled_caught
        nursery.start_soon(take, "next")
        with trio.fail_after(5):
            while not got:
                await trio.lowlevel.checkpoint()
    assert got == ["next"]


async def test_at_rest_the_loop_is_not_asked_for_more_turns() -> None:
    turns, count = Turns(1), Count()
    for _ in range(3):
        await turns.wait()
    await wait_all_tasks_blocked()
    trio.lowlevel.add_instrument(count)
    try:
        await wait_all_tasks_blocked(0.05)
    finally:
        trio.lowlevel.remove_instrument(count)
    assert count.turns < 10
