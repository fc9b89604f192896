"""Timers: exact to the virtual second, from the store, in bulk, and again after a refusal."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.actors.timers import LOOKED_AT
from broker.store import stored
from broker.store.complaints import Complaints
from broker.store.memory import MemoryStore
from broker.store.port import Unavailable
from broker.store.sqlite import SqliteStore
from tests.support.broker import Bench, code, open_bench, tuned


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


@pytest.mark.requirement("call.restart-ends-nothing")
async def test_what_is_overdue_is_asked_page_by_page_however_much_it_is(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked all at once, it would keep the loop from everybody else for as long as it takes."""
    monkeypatch.setattr("broker.actors.timers.PAGE", 4)
    limits: list[int] = []
    async with open_bench() as bench:
        called = await bench.open("BRAV")
        lines = [await bench.dial(await bench.open(f"AA{chr(65 + i)}A"), called) for i in range(20)]
    due = bench.store.due

    async def counted(kind: str, name: str, upto: int, limit: int = 100) -> Any:
        if kind == "conv" and limit != LOOKED_AT:
            limits.append(limit)
        return await due(kind, name, upto, limit)

    await trio.sleep(3600)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        monkeypatch.setattr(bench.store, "due", counted)
        await trio.sleep(31)
        assert await states(again, [line.conv for line in lines]) == {"ended"}
    assert max(limits) == 8  # a page, and the one before it


async def test_a_due_time_that_the_store_refused_is_tried_again(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    assert isinstance(bench.store, MemoryStore)
    for _ in range(3):
        bench.store.gate.fail_next(Unavailable(), when=lambda unit: unit.append is not None)
    await trio.sleep(31)
    assert await states(bench, [line.conv]) == {"ringing"}
    await trio.sleep(5)
    assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("faults.damage")
async def test_due_times_that_can_not_be_read_for_a_while_come_later(
    bench: Bench, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: Any) -> Any:
        raise Unavailable("can't read")

    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "due", unreadable)
        await trio.sleep(31)
        assert await states(bench, [line.conv]) == {"ringing"}
    await trio.sleep(2)
    assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("faults.damage")
async def test_a_store_whose_due_times_can_not_be_read_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreadable(kind: str, name: str, upto: int, limit: int = 100) -> Any:
        if name == "due":
            raise Unavailable("can't read")
        return []

    store = MemoryStore()
    monkeypatch.setattr(store, "due", unreadable)
    with pytest.raises(ExceptionGroup) as raised:
        async with open_bench(store=store):
            await trio.sleep_forever()
    assert raised.group_contains(Unavailable)


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


@pytest.mark.requirement("call.idle-by-the-monotonic-clock")
@pytest.mark.parametrize("steps", [(3600,), (-3600,), (-90,), (3600, 3600), (500, 7200)])
async def test_a_step_of_the_wall_ends_no_call_early_whose_actor_has_left_and_keeps_none_for_longer_than_the_step(
    steps: tuple[int, ...], autojump_clock: Any
) -> None:
    async with open_bench() as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await trio.sleep(5000)
        line = await bench.connect(alfa, brav)
        await trio.sleep(30)
        assert code(await line.send("CHAT")) == "accepted"
        await trio.sleep(80)
        assert bench.broker.statistics().actors["conversation"] == 0
        for step_s in steps:
            bench.clock.step(step_s * 1000)
            await trio.sleep(100)
        await trio.sleep(3600 - 80 - 100 * len(steps) - 1)
        assert await states(bench, [line.conv]) == {"open"}
        await trio.sleep(2 + max(0, -sum(steps)))
        assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("call.idle-by-the-monotonic-clock")
async def test_a_call_that_could_not_be_told_of_a_step_is_told_again_and_the_others_are_not(
    autojump_clock: Any,
) -> None:
    async with open_bench() as bench:
        assert isinstance(bench.store, MemoryStore)
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await trio.sleep(5000)  # the start is no excuse
        lines = [await bench.connect(alfa, brav) for _ in range(3)]
        await trio.sleep(80)
        bench.store.gate.fail_next(Unavailable(), when=lambda unit: lines[1].conv == unit.puts[0].id)
        bench.clock.step(1000_000)
        await trio.sleep(3600 - 80 - 1)
        assert await states(bench, [line.conv for line in lines]) == {"open"}
        await trio.sleep(3)
        assert await states(bench, [line.conv for line in lines]) == {"ended"}


@pytest.mark.requirement("call.idle-by-the-monotonic-clock")
async def test_a_call_of_after_a_step_that_nobody_has_seen_yet_rings_as_long_as_any(
    autojump_clock: Any,
) -> None:
    async with open_bench() as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await trio.sleep(65)
        bench.clock.step(3_600_000)
        line = await bench.dial(alfa, brav)
        await trio.sleep(29)
        assert await states(bench, [line.conv]) == {"ringing"}
        await trio.sleep(2)
        assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("call.idle-by-the-monotonic-clock")
@pytest.mark.parametrize("step_s", [-3600, -70, -2, 3600])
async def test_what_was_said_after_a_step_counts_though_its_actor_leaves_before_the_step_is_seen(
    step_s: int, autojump_clock: Any
) -> None:
    settings = tuned(actors={"idle_s": 12.0}, calls={"idle_s": 200.0})
    async with open_bench(settings) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await trio.sleep(5000)
        line = await bench.connect(alfa, brav)
        await trio.sleep(100)
        bench.clock.step(step_s * 1000)
        assert code(await line.send("CHAT")) == "accepted"
        await trio.sleep(14)
        assert bench.broker.statistics().actors["conversation"] == 0
        await trio.sleep(200 - 14 - 1)
        assert await states(bench, [line.conv]) == {"open"}
        await trio.sleep(2 if step_s < 0 else 62)  # one forward may seem to have come just before it was seen
        assert await states(bench, [line.conv]) == {"ended"}


@pytest.mark.requirement("faults.damage", "call.idle-by-the-monotonic-clock")
@pytest.mark.parametrize("step_s", [0, 3600])
async def test_a_call_that_can_not_be_read_holds_up_no_other(
    step_s: int,
    autojump_clock: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored, "_complaints", Complaints(logging.getLogger("turret.store")))
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        lines = [await bench.connect(alfa, brav) for _ in range(6)]
        await trio.sleep(80)
        with closing(sqlite3.connect(tmp_path / "turret.db")) as db:
            db.execute("UPDATE document SET data = x'7B' WHERE name = ?", (lines[0].conv,))
            db.execute("UPDATE document SET data = x'7B', sum = NULL WHERE name = ?", (lines[1].conv,))
            db.execute(
                "UPDATE text SET data = x'7B' WHERE log = (SELECT id FROM log WHERE name = ?)",
                (f"conv:{lines[2].conv}",),
            )
            db.commit()
        bench.clock.step(step_s * 1000)
        await trio.sleep(3600 - 80 - 1)
        good = [line.conv for line in lines[3:]]
        assert await states(bench, good) == {"open"}
        await trio.sleep(3)
        assert await states(bench, good) == {"ended"}
        bad = [await bench.call("read_conv", conv=line.conv) for line in lines[:3]]
        assert [code(each) for each in bad] == ["unavailable"] * 3
        assert "conv 00000000… is damaged" in caplog.text
        assert bench.broker.statistics().crashes == 0
    await store.aclose()
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store, clock=bench.clock) as again:  # it is served all the same
        params = again.calling(await again.open("CHAR"), await again.open("DELT"), "f" * 16)
        assert code(await again.call("send_call", **params)) == "accepted"
        await trio.sleep(31)
        assert await states(again, ["f" * 16]) == {"ended"}
    await store.aclose()


@pytest.mark.requirement("call.idle")
async def test_a_call_that_is_picked_up_after_a_step_back_that_was_seen_ends_in_its_time(
    autojump_clock: Any,
) -> None:
    async with open_bench(tuned(calls={"idle_s": 90.0})) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await trio.sleep(60)
        line = await bench.dial(alfa, brav)
        bench.clock.step(-3_600_000)
        await bench.dial(alfa, brav)  # the timers wake, and see it
        await trio.sleep(1)
        assert code(await line.send("PICKUP")) == "accepted"
        await trio.sleep(89)
        assert await states(bench, [line.conv]) == {"open"}
        await trio.sleep(2)
        assert await states(bench, [line.conv]) == {"ended"}
