"""Reading what is large beside the loop, so that everybody else goes on meanwhile.

Strict JSON is read in Python: a request of 2 MiB that is made of nothing but brackets takes more than a second. In a
thread it shares the interpreter with the loop, which then waits 5 ms at a time and not for all of it. One is read at a
time: more threads would take the loop's turns, and who sends so much can wait.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

R = TypeVar("R")
LARGE: Final = 65_536
"""Bytes that are read on the loop: at most 40 ms, whatever they are."""
_place: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("apart")


async def apart(read: Callable[..., R], *args: Any) -> R:
    """What `read` gives, called in a thread. It must not need the loop. Cancelling waits for it."""
    try:
        place = _place.get()
    except LookupError:
        place = trio.CapacityLimiter(1)
        _place.set(place)
    return await trio.to_thread.run_sync(read, *args, limiter=place)
