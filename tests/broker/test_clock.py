"""The clocks: the system's, and a virtual one that follows Trio's."""

import time
from typing import Any

import trio

from broker.clock import SystemClock, VirtualClock


async def test_the_system_clock_reads_wall_milliseconds_and_trios_seconds() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 5000
    assert clock.monotonic() <= trio.current_time()


async def test_the_virtual_clock_follows_trio_and_a_step_moves_the_wall_alone(autojump_clock: Any) -> None:
    clock = VirtualClock(1_000_000)
    assert clock.now_ms() == 1_000_000
    await trio.sleep(12.5)
    assert clock.now_ms() == 1_012_500
    before = clock.monotonic()
    clock.step(-60_000)
    assert clock.now_ms() == 952_500
    assert clock.monotonic() == before
