"""How many requests with an idempotency key a subject may have in an hour: each leaves an answer on the disk for 30
days (network.md, Idempotency).

An answer larger than GRAIN counts as several: what is bounded is the disk.

Hours are fixed ones of the monotonic clock: at the seam of two a subject may have twice as many, which harms nobody.
"""

from typing import Final

from broker.actors.latest import Latest
from broker.clock import Clock
from broker.wire.refusals import Refusal, refuse

HOUR_S: Final = 3600.0
GRAIN: Final = 4096
"""Bytes of an answer that count as one request; most have some hundred."""
KEPT: Final = 16_384
"""Subjects that are counted; beyond it the one that asked for nothing longest begins anew."""


class KeyRate:
    """The counters of one broker. Nothing in it waits."""

    def __init__(self, clock: Clock, most: int, *, kept: int = KEPT) -> None:
        self._clock = clock
        self._most = most
        self._hours: Latest[str, tuple[int, int]] = Latest(kept)

    def take(self, subject: str) -> Refusal | None:
        """Count one request that is about to be done; rate_limited where the hour has no more."""
        now = self._clock.monotonic()
        hour, count = int(now // HOUR_S), 0
        known = self._hours.get(subject)
        if known is not None and known[0] == hour:
            count = known[1]
        if count >= self._most:
            left_ms = round(((hour + 1) * HOUR_S - now) * 1000) + 1
            return refuse(
                "rate_limited",
                f"{self._most} requests with an idempotency_key in an hour are the limit; wait retry_after_ms",
                retry_after_ms=left_ms,
            )
        self._hours[subject] = (hour, count + 1)
        return None

    def weigh(self, subject: str, size: int) -> None:
        """The answer of the request that was taken last has so many bytes: count what it is more than one."""
        hour, count = self._hours.get(subject, (int(self._clock.monotonic() // HOUR_S), 0))
        self._hours[subject] = (hour, count + max(0, size - 1) // GRAIN)
