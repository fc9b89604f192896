"""Requests with a key are so many an hour."""

from typing import Any

import pytest
import trio

from broker.clock import VirtualClock
from broker.tools.keyrate import KeyRate


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


async def test_memory_is_bounded(clock: VirtualClock) -> None:
    rate = KeyRate(clock, 1, kept=2)
    for subject in "abc":
        assert rate.take(subject) is None
    assert rate.take("c") is not None
    assert rate.take("a") is None  # forgotten
