"""The wire's time as a dealer knows it, and the waits between attempts.

The wire refuses an envelope whose ts is more than 300 s from its clock (wire.md, Envelope), so a dealer
whose own clock is wrong deals by the wire's: the hello and the refusal clock_skew say what it shows.
"""

import secrets
import time
from collections.abc import Callable
from typing import Final

_CHANCE: Final = secrets.SystemRandom().random


def _system_ms() -> int:
    return time.time_ns() // 1_000_000


class WireClock:
    """Own wall clock plus what it is wrong by. Unix milliseconds and whole seconds."""

    def __init__(self, own_ms: Callable[[], int] = _system_ms) -> None:
        self._own_ms = own_ms
        self.offset_ms = 0
        """What the wire's clock shows more than ours, milliseconds."""

    def now_ms(self) -> int:
        return self._own_ms() + self.offset_ms

    def now_s(self) -> int:
        """The ts of an envelope or statement that is signed now."""
        return self.now_ms() // 1000

    def correct(self, wire_ms: int) -> None:
        """The wire's clock shows `wire_ms` now."""
        self.offset_ms = wire_ms - self._own_ms()


class Backoff:
    """Waits that double from `first_s` to `longest_s`, each with full jitter so that a crowd spreads out.

    `chance` gives a number in [0, 1). Half of a wait is kept, so that it never vanishes.
    """

    def __init__(
        self, first_s: float = 0.1, longest_s: float = 15.0, chance: Callable[[], float] = _CHANCE
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._chance = chance
        self._attempt = 0

    def next_s(self, hint_s: float | None = None) -> float:
        """The wait before the next attempt, seconds; never shorter than the server's hint."""
        longest: float = min(self._longest_s, self._first_s * 2**self._attempt)
        wait = longest * (0.5 + self._chance() / 2)
        self._attempt = min(self._attempt + 1, 30)
        return max(wait, hint_s) if hint_s is not None else wait

    def reset(self) -> None:
        """The last attempt was answered."""
        self._attempt = 0
