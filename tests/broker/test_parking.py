"""One task waits until it is woken, as often as it likes; who is not there is not woken."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.parking import Parked


async def test_who_waits_goes_on_when_it_is_woken_once_for_each_wait() -> None:
    parked, woken = Parked(), 0

    async def waits() -> None:
        nonlocal woken
        for _ in range(3):
            await parked.park()
            woken += 1

    parked.wake()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits)
        for number in range(3):
            await wait_all_tasks_blocked()
            assert (woken, parked.task is None) == (number, False)
            parked.wake()
            assert parked.task is None
            parked.wake()


@pytest.mark.parametrize("again", [False, True])
async def test_who_was_cancelled_is_not_woken_and_may_wait_again(again: bool) -> None:
    parked = Parked()
    with trio.CancelScope() as scope:
        scope.cancel()
        await parked.park()
    assert scope.cancelled_caught
    assert parked.task is None
    parked.wake()
    if again:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(parked.park)
            await wait_all_tasks_blocked()
            parked.wake()
