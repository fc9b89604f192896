"""One after the other, by name."""

import pytest
import trio
import trio.testing

from broker.tools.lanes import Lanes


@pytest.mark.requirement("network.a2a.limits")
async def test_each_waits_for_those_of_its_own_name_and_nothing_stays() -> None:
    lanes, came, go = Lanes(), list[str](), trio.Event()

    async def take(name: str, number: int) -> None:
        async with lanes.turn(name):
            came.append(f"{name}{number}")
            await go.wait()

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(take, "a", number)
        nursery.start_soon(take, "b", 0)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(came)[-1] == "b0"
        assert len(came) == 2
        assert len(lanes) == 2
        assert [lanes.waiting(name) for name in "abc"] == [2, 0, 0]
        go.set()
    assert sorted(came) == ["a0", "a1", "a2", "b0"]
    assert len(lanes) == 0


async def test_who_gives_up_waiting_leaves_the_line() -> None:
    lanes = Lanes()
    async with lanes.turn("a"):
        with trio.move_on_after(0):
            async with lanes.turn("a"):
                raise AssertionError
        assert len(lanes) == 1
    assert len(lanes) == 0
