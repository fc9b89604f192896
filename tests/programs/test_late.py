"""Commits that were in doubt and land late, under an actor that has read the log without them."""

from typing import Any

import pytest
import trio

from broker.actors.actor import Crashed
from broker.store.port import Unit
from tests.programs.flaky import FlakyMemory, flaky
from tests.support.broker import Bench, Line, code, open_bench, tuned


def appends(unit: Unit) -> bool:
    return unit.append is not None


async def pair(bench: Bench) -> Line:
    return await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))


async def known(bench: Bench, line: Line) -> None:
    """Have an actor read the log as it is now."""
    assert code(await line.send("RFQ", by=line.called)) == "out_of_turn"


@pytest.mark.requirement("retries.late-commit")
async def test_the_same_bytes_after_a_late_commit_are_a_replay() -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await pair(bench)
        params = line.next("RFQ")
        flaky(bench.store).fail("late", appends)
        assert code(await bench.call("send_env", **params)) == "in_doubt"
        await known(bench, line)
        assert await flaky(bench.store).land()
        assert (await bench.call("send_env", **params))["replayed"]


@pytest.mark.requirement("retries.late-commit")
async def test_the_same_bytes_are_a_replay_though_their_time_is_over_meanwhile() -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await pair(bench)
        landed, lost = line.next("RFQ"), line.next("RFQ", {"other": 1})
        flaky(bench.store).fail("late", appends)
        assert code(await bench.call("send_env", **landed)) == "in_doubt"
        await known(bench, line)
        bench.clock.step(-3_600_000)
        assert code(await bench.call("send_env", **landed)) == "clock_skew"
        assert await flaky(bench.store).land()
        assert (await bench.call("send_env", **landed))["replayed"]
        assert code(await bench.call("send_env", **lost)) == "conflict"


@pytest.mark.requirement("retries.late-commit")
async def test_the_other_party_goes_on_after_a_commit_that_landed_late() -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await pair(bench)
        params = line.next("RFQ")
        flaky(bench.store).fail("late", appends)
        assert code(await bench.call("send_env", **params)) == "in_doubt"
        await known(bench, line)
        assert await flaky(bench.store).land()
        line.n, line.sig = params["n"], params["sig"]  # the called desk saw it on its stream
        assert code(await line.send("QUOTE")) == "accepted"


@pytest.mark.requirement("retries.late-commit")
async def test_another_envelope_for_the_same_n_hears_of_the_one_that_landed() -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await pair(bench)
        params, other = line.next("RFQ"), line.next("RFQ", {"other": 1})
        flaky(bench.store).fail("late", appends)
        assert code(await bench.call("send_env", **params)) == "in_doubt"
        await known(bench, line)
        assert await flaky(bench.store).land()
        answer = await bench.call("send_env", **other)
        assert (code(answer), answer.detail["head"]["sig"]) == ("conflict", params["sig"])


@pytest.mark.requirement("retries.late-commit")
async def test_a_commit_that_comes_too_late_is_lost_and_the_log_stays_whole() -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        line = await pair(bench)
        params, other = line.next("RFQ"), line.next("RFQ", {"other": 1})
        flaky(bench.store).fail("late", appends)
        assert code(await bench.call("send_env", **params)) == "in_doubt"
        assert code(await bench.call("send_env", **other)) == "accepted"
        assert not await flaky(bench.store).land()
        assert code(await bench.call("send_env", **params)) == "conflict"
        rows = (await bench.call("read_conv", conv=line.conv))["rows"]
        assert [row["sig"] for row in rows[2:]] == [other["sig"]]


@pytest.mark.requirement("retries.late-commit", "limits.eight")
async def test_a_call_that_lands_after_its_reservation_takes_its_place(autojump_clock: Any) -> None:
    async with open_bench(store=FlakyMemory()) as bench:
        caller, called, other = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
        params = bench.calling(caller, other)
        flaky(bench.store).fail("late", appends)
        assert code(await bench.call("send_call", **params)) == "in_doubt"
        await trio.sleep(6)
        lines = [await bench.connect(caller, called) for _ in range(7)]
        assert await flaky(bench.store).land()
        conv = params["envelope"]["conv"]
        late = Line(bench, conv, caller, other, params["sig"])
        assert code(await late.send("PICKUP")) == "accepted"
        lines.append(await bench.connect(caller, called))
        states = [(await bench.call("read_conv", conv=line.conv))["state"] for line in [*lines, late]]
        assert states.count("open") == 8


@pytest.mark.requirement("retries.late-commit", "limits.rings")
async def test_a_ring_whose_end_was_in_doubt_and_landed_no_longer_counts(autojump_clock: Any) -> None:
    async with open_bench(tuned(limits={"rings": 1, "rings_known": 0}), FlakyMemory()) as bench:
        caller, called = await bench.open("ALFA"), await bench.open("BRAV")
        await bench.dial(caller, called)
        flaky(bench.store).fail("applied", appends)
        await trio.sleep(32)
        line = await bench.dial(caller, called)
        assert (await bench.call("read_conv", conv=line.conv))["state"] == "ringing"


async def test_a_log_that_can_not_be_read_is_a_fault_and_not_an_unknown_conversation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_bench() as bench:
        line = await pair(bench)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again

        async def broken(*_: Any) -> Any:
            raise OSError("the disk does not answer")

        with monkeypatch.context() as patched:
            patched.setattr(again.store, "tail", broken)
            with pytest.raises(Crashed):
                await line.send("RFQ")
        assert code(await line.send("RFQ")) == "accepted"
    assert "crashed" in caplog.text
