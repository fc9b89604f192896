"""Requests that are being done."""

import pytest
import trio

from broker.tools.underway import Underway


@pytest.mark.requirement("idempotency.at-once")
async def test_who_waits_is_told_when_it_is_over_and_nothing_is_left() -> None:
    underway = Underway()
    await underway.wait_over("s", "k")  # nothing is being done
    over: list[str] = []

    async def wait() -> None:
        await underway.wait_over("s", "k")
        over.append("over")

    async with trio.open_nursery() as nursery:
        with underway.doing("s", "k", b"d"):
            assert underway.digest("s", "k") == b"d"
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert over == []
    assert over == ["over"]
    assert (underway.digest("s", "k"), len(underway)) == (None, 0)
