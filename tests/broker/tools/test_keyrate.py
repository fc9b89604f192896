"""Requests with a key are so many an hour."""

from typing import Any

import pytest
import trio

from broker.clock import VirtualClock
from broker.tools.keyrate import GRAIN, KeyRate
from tests.support.agents import make_agent
from tests.support.broker import code, open_bench, tuned
from tests.support.pairs import agree


@pytest.mark.requirement("idempotency.rate")
async def test_an_hour_has_so_many_of_each_subject(clock: VirtualClock, autojump_clock: Any) -> None:
    rate = KeyRate(clock, 2)
    assert [rate.take("a"), rate.take("a"), rate.take("b")] == [None] * 3
    refused = rate.take("a")
    assert refused is not None
    assert refused.code == "rate_limited"
    clock.step(-86_400_000)  # the wall clock counts nothing
    await trio.sleep(refused.detail["retry_after_ms"] / 1000)
    assert rate.take("a") is None


@pytest.mark.requirement("idempotency.rate")
async def test_a_large_answer_counts_as_several(clock: VirtualClock, autojump_clock: Any) -> None:
    rate = KeyRate(clock, 18)
    for size, left in ((0, 17), (GRAIN, 16), (GRAIN + 1, 14), (13 * GRAIN, 1), (100, 0)):
        assert rate.take("a") is None
        rate.weigh("a", size)
        assert rate._hours["a"][1] == 18 - left
    assert rate.take("a") is not None
    await trio.sleep(3600)
    assert rate.take("a") is None


@pytest.mark.requirement("idempotency.rate")
async def test_large_answers_of_tasks_are_counted_by_their_bytes() -> None:
    """A task's answer has all that was said in it, and is kept for 30 days with each change."""
    async with open_bench(tuned(limits={"keyed_per_hour": 30})) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob, scopes=["task"])
        made = await bench.call("send_task", ann, target_agent_id=bob.agent, text="x" * 16_000)
        said = {"task_id": made["task"]["task_id"], "status": "working"}
        codes = [
            code(await bench.call("update_task", bob, **said, idempotency_key=f"k{n}")) for n in range(6)
        ]
        assert codes == ["accepted"] * 6  # of five each
        codes = [
            code(await bench.call("update_task", bob, **said, idempotency_key=f"l{n}")) for n in range(2)
        ]
        assert codes == ["rate_limited"] * 2
        assert (
            code(await bench.call("update_task", bob, **said, idempotency_key="k1")) == "accepted"
        )  # a replay


async def test_memory_is_bounded(clock: VirtualClock) -> None:
    rate = KeyRate(clock, 1, kept=2)
    for subject in "abc":
        assert rate.take(subject) is None
    assert rate.take("c") is not None
    assert rate.take("a") is None  # forgotten
