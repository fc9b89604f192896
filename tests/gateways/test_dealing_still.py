"""A process that stood still cuts nobody for a silence that was its own."""

import os

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.broker import Bench
from tests.support.ws import masked, open_port, request


@pytest.mark.requirement("faults.stopped")
@pytest.mark.parametrize("sockets", [False, True])
async def test_who_was_silent_while_the_process_stood_still_is_asked_again(
    bench: Bench, mock_clock: MockClock, sockets: bool
) -> None:
    async with open_port(bench.broker, sockets=sockets) as port:
        client = await port.dial()
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(100)
        await wait_all_tasks_blocked(0.01)
        answer = await client.ask("wire_info")
        assert answer["result"]["wire"] == bench.broker.pk
        assert client.pings == 1, "it was asked for a sign of life"


@pytest.mark.requirement("faults.stopped")
@pytest.mark.parametrize("time", range(8), ids=str)  # which task's turn comes first is chance
async def test_what_waits_to_be_read_is_a_sign_of_life(
    bench: Bench, mock_clock: MockClock, time: int
) -> None:
    streams = bench.broker.settings.streams
    async with open_port(bench.broker, sockets=True) as port:
        client = await port.dial()
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(streams.ping_s)
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(streams.dead_s - streams.ping_s + 0.1)  # no checkpoint from here until it is sent
        os.write(client.stream.socket.fileno(), masked(request(1, "wire_info")))
        assert (await client.receive())["result"]["wire"] == bench.broker.pk


async def test_who_stays_silent_after_that_is_cut(bench: Bench, mock_clock: MockClock) -> None:
    streams = bench.broker.settings.streams
    async with open_port(bench.broker) as port:
        client = await port.dial()
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(100)
        client.answers = False
        for _ in range(4):
            await wait_all_tasks_blocked(0.01)
            mock_clock.jump(streams.dead_s / 3)
        assert await client.wait_closed(20) == (1006, "")
