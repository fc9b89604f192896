"""Looks at the past of a tape, each kept up to date with one push a tick, in O(1) amortised, whatever its length.

Values are integers in halves (see `program`). What is given before enough was pushed means nothing; who asks knows how
much that is (`limits.back`).
"""

from collections import deque
from collections.abc import Callable
from typing import Final


class Delay:
    """The value of so many pushes ago."""

    def __init__(self, ago: int) -> None:
        self._kept: deque[int] = deque(maxlen=ago + 1)

    def push(self, value: int) -> int:
        """Takes the present value, gives the past one."""
        self._kept.append(value)
        return self._kept[0]


class Mean:
    """The mean of the latest values, rounded down."""

    def __init__(self, ticks: int) -> None:
        self._kept = deque([0] * ticks, maxlen=ticks)
        self._ticks, self._sum = ticks, 0

    def push(self, value: int) -> int:
        """Takes the present value, gives the mean with it."""
        kept = self._kept
        self._sum += value - kept[0]
        kept.append(value)
        return self._sum // self._ticks


class Lowest:
    """The least of the latest values: a queue of those that may yet be it, the least first."""

    def __init__(self, ticks: int) -> None:
        self._ticks, self._now = ticks, 0
        self._values: deque[int] = deque()
        self._until: deque[int] = deque()

    def push(self, value: int) -> int:
        """Takes the present value, gives the least with it."""
        values, until = self._values, self._until
        while values and values[-1] >= value:
            values.pop()
            until.pop()
        self._now += 1
        values.append(value)
        until.append(self._now + self._ticks)
        if until[0] == self._now:
            values.popleft()
            until.popleft()
        return values[0]


class Highest(Lowest):
    """The greatest of the latest values: the least of what they are with the other sign."""

    def push(self, value: int) -> int:
        """Takes the present value, gives the greatest with it."""
        return -super().push(-value)


KINDS: Final[dict[str, Callable[[int], Mean | Lowest]]] = {"avg": Mean, "min": Lowest, "max": Highest}
