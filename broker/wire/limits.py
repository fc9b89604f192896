"""The sliding window: what was spent and now in, a wait out (wire.md, Limits).

1. Nothing here reads a clock. Times are monotonic seconds; a wait is whole milliseconds, and waiting it is enough.
2. A token comes back exactly one window after it was spent, so that no window ever holds more than the limit.
3. What is refused spends nothing; what is not counted (END, `resubmitted`) is not among the spent.
"""

import math
from collections.abc import Sequence
from typing import Final

_GRAIN_S: Final = 1e-6
"""Sums of floats are not exact: who waited as told must not be refused for the last bit of one."""


def wait_ms(spent: Sequence[float], now: float, limit: int = 30, window_s: float = 10.0) -> int:
    """Milliseconds until one more may be spent, 1 to the window's length; 0: at once.

    `spent`: when the last ones were spent, oldest first; more than `limit` of them do no harm.
    """
    if len(spent) < limit:
        return 0
    left = spent[-limit] + window_s - now
    if left <= _GRAIN_S:
        return 0
    return max(1, min(math.ceil((left - _GRAIN_S) * 1000), round(window_s * 1000)))
