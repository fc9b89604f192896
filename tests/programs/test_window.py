"""The limit of 30 in 10 s where clocks step: monotonic in a process, by the wall across a restart."""

from typing import Any

import pytest
import trio

from tests.programs.flaky import FlakyMemory, Way, flaky
from tests.support.broker import START_MS, Bench, Line, code, open_bench


async def spend(bench: Bench, most: int = 30) -> Line:
    """An open call with `most` tokens spent."""
    await trio.sleep(20)
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    for _ in range(most - 2):
        assert code(await line.send("CHAT")) == "accepted"
    return line


@pytest.mark.requirement("limits.window-monotonic")
@pytest.mark.parametrize("step_s", [-86_400, -200, -5, 5, 200, 86_400])
async def test_in_a_running_process_a_step_of_the_wall_clock_changes_nothing(
    autojump_clock: Any, step_s: int
) -> None:
    async with open_bench() as bench:
        line = await spend(bench)
        await trio.sleep(4)
        bench.clock.step(step_s * 1000)
        answer = await line.send("CHAT")
        assert (code(answer), answer.detail["retry_after_ms"]) == ("rate_limited", 6000)
        await trio.sleep(6)
        accepted = await line.send("CHAT")
        assert accepted["accepted_at"] == START_MS + 20_000 + max(0, 10_000 + step_s * 1000)


@pytest.mark.requirement("limits.window-monotonic")
@pytest.mark.parametrize("way", ["doubt", "applied"])
@pytest.mark.parametrize("step_s", [-200, -5, 5, 200])
async def test_nor_does_it_when_the_log_is_read_again_after_a_doubt(
    autojump_clock: Any, way: Way, step_s: int
) -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await spend(bench, 29)
        await trio.sleep(4)
        flaky(bench.store).fail(way)
        params = line.next("CHAT")
        assert code(await bench.call("send_env", **params)) == "in_doubt"
        bench.clock.step(step_s * 1000)
        again = await bench.call("send_env", **params)
        assert code(again) == "accepted"
        line.n, line.sig = params["n"], params["sig"]
        answer = await line.send("CHAT")
        assert (code(answer), answer.detail["retry_after_ms"]) == ("rate_limited", 6000)
        await trio.sleep(6)
        assert code(await line.send("CHAT")) == "accepted"


@pytest.mark.requirement("limits.window-wall-behind")
@pytest.mark.parametrize("lag_s", [1, 3, 9, 1000])
@pytest.mark.parametrize("later_s", [0, 2, 5])
async def test_after_a_restart_with_the_wall_behind_the_wait_ends_ten_seconds_after_the_start(
    autojump_clock: Any, lag_s: int, later_s: int
) -> None:
    async with open_bench() as bench:
        line = await spend(bench)
    bench.clock.step(-lag_s * 1000)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again
        await trio.sleep(later_s)
        answer = await line.send("CHAT")
        assert (code(answer), answer.detail["retry_after_ms"]) == ("rate_limited", (10 - later_s) * 1000)


@pytest.mark.requirement("limits.window-across-restart")
@pytest.mark.parametrize("down_s", [0, 3])
async def test_a_step_after_the_restart_changes_nothing_of_what_was_accepted_before_it(
    autojump_clock: Any, down_s: int
) -> None:
    async with open_bench() as bench:
        line = await spend(bench)
    await trio.sleep(down_s)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again
        again.clock.step(60_000)
        answer = await line.send("CHAT")
        assert (code(answer), answer.detail["retry_after_ms"]) == ("rate_limited", (10 - down_s) * 1000)


@pytest.mark.requirement("call.idle")
async def test_a_call_whose_actor_left_memory_is_idle_an_hour_after_its_last_envelope(
    autojump_clock: Any,
) -> None:
    async with open_bench() as bench:
        line = await spend(bench, 2)
        await trio.sleep(3000)
        assert code(await line.send("CHAT")) == "accepted"
        await trio.sleep(3599)
        assert (await bench.call("read_conv", conv=line.conv))["state"] == "open"
        await trio.sleep(2)
        assert (await bench.call("read_conv", conv=line.conv))["state"] == "ended"


@pytest.mark.requirement("limits.window-monotonic")
async def test_an_envelope_in_doubt_after_a_pause_spent_its_token_too(autojump_clock: Any) -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await spend(bench, 2)
        await trio.sleep(15)
        params = line.next("CHAT")
        flaky(bench.store).fail("applied")
        assert code(await bench.call("send_env", **params)) == "in_doubt"
        line.n, line.sig = params["n"], params["sig"]
        answers = [code(await line.send("CHAT")) for _ in range(30)]
        assert answers == ["accepted"] * 29 + ["rate_limited"]
