"""The end of a tick: what was asked for is done once its tasks have run, in order, whatever fails."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.tick import tick_end


async def test_what_a_ticks_tasks_ask_for_is_done_in_order_when_they_have_run() -> None:
    seen: list[str] = []

    async def ask(name: str) -> None:
        tick_end().add(lambda: seen.append(f"end {name}"))
        seen.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "a")
        nursery.start_soon(ask, "b")
        assert seen == []
        await wait_all_tasks_blocked()
    assert sorted(seen[:2]) == ["a", "b"]
    assert seen[2:] == [f"end {name}" for name in seen[:2]]


async def test_what_is_asked_for_at_the_end_of_a_tick_is_done_there_too() -> None:
    seen: list[str] = []
    tick_end().add(lambda: tick_end().add(lambda: seen.append("later")))
    await trio.lowlevel.checkpoint()
    assert seen == ["later"]


async def test_one_that_fails_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    tick_end().add(lambda: 1 / 0)
    tick_end().add(lambda: seen.append("same tick"))
    await trio.lowlevel.checkpoint()
    tick_end().add(lambda: seen.append("next tick"))
    await trio.lowlevel.checkpoint()
    assert seen == ["same tick", "next tick"]
    assert "at the end of a tick failed" in caplog.text


async def test_a_run_has_one() -> None:
    assert tick_end() is tick_end()


def test_what_all_would_wait_for_ends_the_run_where_it_fails() -> None:
    async def run() -> None:
        tick_end().add(lambda: 1 / 0, vital=True)
        with trio.fail_after(5):
            await trio.sleep_forever()

    with pytest.raises(trio.TrioInternalError):
        trio.run(run)
