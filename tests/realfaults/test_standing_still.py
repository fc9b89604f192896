"""A process that is stopped for seconds and goes on, and a wall clock that jumps under a running one."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
import trio

from tests.crash.dealers import Pair, linked, read_conv, send, settle
from tests.history.checker import check
from tests.history.model import History
from tests.realfaults.load import acknowledged, dealing, wait_acknowledged
from tests.support.process import Served, served

STOPPED_S = float(os.environ.get("STOPPED_S", "1.5"))
"""Longer than `streams.dead_s` in these tests, so that all peers have been silent for too long when it wakes."""


@pytest.mark.requirement("faults.stopped")
@pytest.mark.timeout(60 + 2 * STOPPED_S)
async def test_a_process_that_stood_still_cuts_nobody_and_goes_on(tmp_path: Path) -> None:
    history = History()
    pairs = [Pair(number, history, random.Random(number)) for number in range(4)]
    environment = {"TURRET_STREAMS_PING_S": "0.4", "TURRET_STREAMS_DEAD_S": "0.8"}
    async with served(tmp_path / "data", environment=environment) as broker:
        async with dealing(broker, pairs):
            await wait_acknowledged(history, 20)
            for _ in range(2):
                broker.process.send_signal(signal.SIGSTOP)
                await trio.sleep(STOPPED_S)
                broker.process.send_signal(signal.SIGCONT)
                await wait_acknowledged(history, acknowledged(history) + 40)
            assert all(pair.connections == 1 for pair in pairs), "nobody was cut"
        await settle(broker, pairs, history)
        assert await broker.stop() == 0
    assert not any(pair.refused for pair in pairs)
    assert check(history) == []


class WallClock:
    """The wall clock of one broker, which this test may move."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "step"
        self.environment = {"CLOCK_STEP": str(self.file)}

    async def step(self, broker: Served, seconds: int) -> None:
        """Move it, and see it moved."""
        before = await self._ahead(broker)
        self.file.write_text(str(seconds * 1000))
        broker.process.send_signal(signal.SIGUSR2)
        with trio.fail_after(5):
            while abs(await self._ahead(broker) - before - seconds) > 1:  # noqa: ASYNC110
                await trio.sleep(0.01)

    async def _ahead(self, broker: Served) -> float:
        async with linked(broker) as link:
            return float((await link.ask("wire_info", {}))["time"] / 1000 - time.time())


@pytest.mark.requirement("faults.clock")
async def test_a_wall_clock_that_jumps_ends_no_call_and_loses_nothing(tmp_path: Path) -> None:
    history, wall = History(), WallClock(tmp_path)
    pairs = [Pair(number, history, random.Random(number)) for number in range(4)]
    ringing = Pair(9, history, random.Random(9))
    program = "tests.realfaults.faulty"
    async with served(tmp_path / "data", program=program, environment=wall.environment) as broker:
        async with ringing.caller.connected(broker) as one, ringing.called.connected(broker) as other:
            await ringing.step(broker, one, other, one)
            async with dealing(broker, pairs):
                for seconds in (200, -400, 200):
                    await wall.step(broker, seconds)
                    await wait_acknowledged(history, acknowledged(history) + 40)
            rows = await read_conv(one, ringing.conv, history)
            assert [row["envelope"]["type"] for row in rows] == ["CALL"], "it rings on: no 30 s have passed"
            await ringing.step(broker, one, other, one)
            for pair in pairs:
                for conv in pair.acked:
                    times = [row["accepted_at"] for row in await read_conv(one, conv, history)]
                    assert times == sorted(times)
        await settle(broker, [*pairs, ringing], history)
    assert not any(pair.refused for pair in pairs)
    assert check(history) == []


@pytest.mark.requirement("faults.clock")
@pytest.mark.parametrize("seconds", [250, -250])
async def test_a_wall_clock_that_jumps_frees_no_place_in_the_window(tmp_path: Path, seconds: int) -> None:
    history, wall = History(), WallClock(tmp_path)
    pair = Pair(0, history, random.Random(0))
    pair.talk = 100
    program = "tests.realfaults.faulty"
    async with (
        served(tmp_path / "data", program=program, environment=wall.environment) as broker,
        pair.caller.connected(broker) as one,
        pair.called.connected(broker) as other,
    ):
        while pair.n < 29:
            await pair.step(broker, one, other, one)
        await wall.step(broker, seconds)
        [request, *_] = pair.next(broker.pk)
        link = one if request[1]["from_pk"] == pair.caller.key.pk else other
        refusal = (await send(link, request, history))["data"]
        assert refusal["code"] == "rate_limited"
        assert 1 <= refusal["retry_after_ms"] <= 10_000
    assert check(history) == []
