"""The only place that reads the time: wall milliseconds for records, monotonic seconds for distances."""

import time
from typing import Protocol

import trio


class Clock(Protocol):
    """What the actors ask for the time. Both readings never block."""

    def now_ms(self) -> int:
        """Wall clock, Unix milliseconds. May step in either direction."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, on Trio's clock; distances in a running process are measured on it."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return trio.current_time()


class LoopClock(SystemClock):
    """The same inside one run of the loop, whose clock it then need not ask: a tenth of the cost."""

    def __init__(self) -> None:
        """Made inside the run, on Trio's own clock (not a test's)."""
        self._offset = trio.current_time() - time.perf_counter()

    def monotonic(self) -> float:
        return self._offset + time.perf_counter()


class VirtualClock:
    """Wall time that follows Trio's (mock) clock from a given start; `step` moves the wall alone."""

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self._origin: float | None = None

    def now_ms(self) -> int:
        if self._origin is None:
            self._origin = trio.current_time()
        return self._start_ms + round((trio.current_time() - self._origin) * 1000)

    def monotonic(self) -> float:
        return trio.current_time()

    def step(self, delta_ms: int) -> None:
        """Move the wall clock by `delta_ms`, as an administrator or a time daemon would."""
        self._start_ms += delta_ms
