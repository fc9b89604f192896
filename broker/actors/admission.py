"""Overload: what has waited too long before anything was done for it is refused at once, so that the rest is in time.

1. The measure is time: since when the work at hand could have been read from its socket, or since the loop's turn
   began, or how long the first signature of the verifier's line waits; whichever is longest.
2. A burst is not overload: twice `late_s` may have been waited. Once the broker has been late for longer than that, it
   is `late_s`, until nothing was late for as long. So whatever is taken is in time, and a loop that can't do all does
   some of it, instead of everything late.
3. What is taken and what is refused is decided in the order in which it came, socket by socket.

Source: "controlled delay" for servers (Maurer, Fail at Scale, ACM Queue 13:8), after CoDel (RFC 8289).
"""

from typing import Final

import trio

from broker.wire.refusals import Refusal, refuse

RETRY_MS: Final = 250
_LATE: Final = refuse(
    "overloaded",
    "the broker has more to do than it can; nothing was written, send the identical request again later",
    retry_after_ms=RETRY_MS,
)


class Admission(trio.abc.Instrument):
    """Whether new work is taken now. One for a broker; add it to the loop as an instrument. `late_s` as in config."""

    def __init__(self, late_s: float) -> None:
        self.since: float | None = None
        """For a door, around what it hands over: since when that could be read (Trio's clock); None: not known."""
        self.refused = 0
        """How much was refused."""
        self._late_s = late_s
        self._calm_s = late_s / 2  # who has waited less shows that the broker keeps up
        self._burst_s = late_s * 2
        self._turn = float("inf")  # no turn was seen yet, so nobody is late
        self._began = self._last = float("-inf")  # when the present lateness began, and was seen last

    def after_io_wait(self, timeout: float) -> None:
        """Trio calls this when a turn of the loop begins: what runs in it could be read by then."""
        self._turn = trio.current_time()

    def refuse(self, line_s: float) -> Refusal | None:
        """overloaded for new work that would be late, else None. `line_s`: how long the verifier's line is."""
        now = trio.current_time()
        began = self._turn if self.since is None else self.since
        waited = max(now - began, line_s)
        if waited < self._calm_s:
            return None
        if now - self._last > self._burst_s:
            self._began = now
        self._last = now
        if waited <= (self._late_s if now - self._began > self._burst_s else self._burst_s):
            return None
        self.refused += 1
        return _LATE
