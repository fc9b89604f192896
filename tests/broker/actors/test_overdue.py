"""Commits under way: late ones are settled at their time, landed ones are forgotten, at rest nothing waits."""

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.overdue import Flight, Overdue


async def test_a_commit_that_does_not_land_is_late_at_its_time_and_once(autojump_clock: Any) -> None:
    late: list[float] = []
    async with trio.open_nursery() as nursery:
        overdue = Overdue()
        nursery.start_soon(overdue.run)
        await wait_all_tasks_blocked()
        start = trio.current_time()
        flights = [
            overdue.add(start + seconds, lambda: late.append(trio.current_time() - start))
            for seconds in (5, 6)
        ]
        await trio.sleep(10)
        assert late == [5, 6]
        assert all(flight.over for flight in flights)
        flights[0].expire()
        assert late == [5, 6]
        nursery.cancel_scope.cancel()


async def test_a_commit_that_has_landed_is_never_late(autojump_clock: Any) -> None:
    late: list[str] = []
    async with trio.open_nursery() as nursery:
        overdue = Overdue()
        nursery.start_soon(overdue.run)
        start = trio.current_time()
        first = overdue.add(start + 5, lambda: late.append("first"))
        overdue.add(start + 6, lambda: late.append("second"))
        first.over = True
        await trio.sleep(10)
        assert late == ["second"]
        nursery.cancel_scope.cancel()


async def test_at_rest_nothing_is_scheduled(autojump_clock: Any) -> None:
    async with trio.open_nursery() as nursery:
        overdue = Overdue()
        nursery.start_soon(overdue.run)
        overdue.add(trio.current_time() + 5, lambda: None).over = True
        await trio.sleep(6)
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        nursery.cancel_scope.cancel()


def test_what_has_landed_is_not_kept() -> None:
    overdue = Overdue()
    for _ in range(1000):
        overdue.add(1.0, lambda: None).over = True
    kept: list[Flight] = list(overdue._flights)
    assert len(kept) == 1
