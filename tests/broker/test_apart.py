"""Large requests are read beside the loop, one at a time, with the same result."""

import threading
from typing import Any

import pytest
import trio

from broker.apart import LARGE, apart
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.channels import open_town

HOSTILE = {"x": [[]] * 100_000}
"""400 KB that take a fifth of a second to read: enough for a few turns of a loop that others keep busy, too."""


@pytest.mark.requirement("doors.large")
async def test_what_is_read_apart_is_read_in_another_thread_one_at_a_time() -> None:
    inside: list[int] = []

    def read(number: int) -> tuple[int, bool]:
        inside.append(number)
        for _ in range(3):  # the others have their chance to come in
            trio.from_thread.run(trio.lowlevel.checkpoint)
        assert inside == [number]
        inside.remove(number)
        return number, threading.current_thread() is threading.main_thread()

    found: list[Any] = []

    async def one(number: int) -> None:
        found.append(await apart(read, number))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(one, number)
    assert sorted(found) == [(number, False) for number in range(5)]


@pytest.mark.requirement("doors.large")
async def test_a_large_request_does_not_stop_the_loop_and_is_judged_as_a_small_one(bench: Bench) -> None:
    town = await open_town(bench)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.sleep(0.001)
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        answer = await town.send(town.owner, "hello", metadata=HOSTILE, idempotency_key="k")
        nursery.cancel_scope.cancel()
    assert (code(answer), answer.detail["path"]) == ("too_large", "metadata")
    assert turns >= 3, "the loop had its turns while it was read"
    assert await town.send(town.owner, "hello", metadata=HOSTILE, idempotency_key="k") == answer


@pytest.mark.requirement("doors.large")
async def test_what_is_wrong_with_a_large_request_is_said_as_ever(bench: Bench) -> None:
    agent = await make_agent(bench, "alice")
    refused = await bench.call("get_inbox", agent, limit="x" * LARGE)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail["path"]) == ("bad_request", "limit")
