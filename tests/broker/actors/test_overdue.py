"""Commits under way: late ones are settled at their time, landed ones are forgotten, at rest nothing waits."""

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.overdue import Flight, Overdue


class Late(Flight):
    """Notes its time when it expires."""

    def __init__(self, deadline: float, noted: list[float]) -> None:
        super().__init__(deadline)
        self.noted = noted

    def expire(self) -> None:
        if not self.over:
            self.over = True
            self.noted.append(trio.current_time())


async def test_a_commit_that_does_not_land_is_late_at_its_time_and_once(autojump_clock: Any) -> None:
    late: list[float] = []
    async with trio.open_nursery() as nursery:
        overdue = Overdue()
        nursery.start_soon(overdue.run)
        await wait_all_tasks_blocked()
        start = trio.current_time()
        for seconds in (5, 6):
            overdue.add(Late(start + seconds, late))
        await trio.sleep(10)
        assert late == [start + 5, start + 6]
        nursery.cancel_scope.cancel()


async def test_a_commit_that_has_landed_is_never_late(autojump_clock: Any) -> None:
    late: list[float] = []
    async with trio.open_nursery() as nursery:
        overdue = Overdue()
        nursery.start_soon(overdue.run)
        start = trio.current_time()
        first = Late(start + 5, late)
        overdue.add(first)
        overdue.add(Late(start + 6, late))
        first.over = True
        await trio.sleep(10)
        assert late == [start + 6]
        nursery.cancel_scope.cancel()


async def test_at_rest_nothing_is_scheduled(autojump_clock: Any) -> None:
    async with trio.open_nursery() as nursery:
        overdue = Overdue()
        nursery.start_soon(overdue.run)
        flight = Late(trio.current_time() + 5, [])
        overdue.add(flight)
        flight.over = True
        await trio.sleep(6)
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        nursery.cancel_scope.cancel()


def test_what_has_landed_is_not_kept() -> None:
    overdue = Overdue()
    for _ in range(1000):
        flight = Late(1.0, [])
        overdue.add(flight)
        flight.over = True
    assert list(overdue._flights) == [flight]
