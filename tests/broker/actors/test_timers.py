"""Timers: exact to the virtual second, from the store, in bulk, and again after a refusal."""

from typing import Any

import pytest
import trio

from broker.store.memory import MemoryStore
from broker.store.port import Unavailable
from tests.support.broker import Bench, open_bench


async def states(bench: Bench, convs: list[str]) -> set[str]:
    return {(await bench.call("read_conv", conv=conv))["state"] for conv in convs}


async def test_an_earlier_due_time_wakes_the_loop(bench: Bench, autojump_clock: Any) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    await bench.connect(alfa, brav)
    await trio.sleep(5)
    line = await bench.dial(alfa, brav)
    await trio.sleep(29.5)
    assert await states(bench, [line.conv]) == {"ringing"}
    await trio.sleep(0.6)
    assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("call.restart-ends-nothing")
async def test_many_overdue_calls_are_all_ended_after_a_restart(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        called = [await bench.open("BRAV"), await bench.open("CHAR")]
        convs = []
        for i in range(60):
            caller = await bench.open(f"AA{chr(65 + i // 26)}{chr(65 + i % 26)}")
            convs.append((await bench.dial(caller, called[i % 2])).conv)
    await trio.sleep(3600)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        await trio.sleep(1)
        assert await states(again, convs) == {"ringing"}
        await trio.sleep(30)
        assert await states(again, convs) == {"ended"}


async def test_a_due_time_that_the_store_refused_is_tried_again(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    assert isinstance(bench.store, MemoryStore)
    for _ in range(3):
        bench.store.gate.fail_next(Unavailable(), when=lambda unit: unit.append is not None)
    await trio.sleep(31)
    assert await states(bench, [line.conv]) == {"ringing"}
    await trio.sleep(5)
    assert await states(bench, [line.conv]) == {"ended"}


async def test_a_wall_clock_stepped_forward_ends_no_call_early(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(5)
    bench.clock.step(3_600_000)
    await trio.sleep(20)
    assert await states(bench, [line.conv]) == {"ringing"}
    await trio.sleep(6)
    assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("call.no-answer")
async def test_a_wall_clock_set_back_does_not_lengthen_a_ring(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(5)
    bench.clock.step(-3_600_000)
    await trio.sleep(24)
    assert await states(bench, [line.conv]) == {"ringing"}
    await trio.sleep(2)
    assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("call.no-answer", "call.restart-ends-nothing")
async def test_a_wall_clock_set_back_over_a_restart_does_not_lengthen_a_ring(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    bench.clock.step(-3_600_000)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        await trio.sleep(29)
        assert await states(again, [line.conv]) == {"ringing"}
        await trio.sleep(2)
        assert await states(again, [line.conv]) == {"ended"}
