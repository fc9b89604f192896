"""Commits under way, each with a time by which it has to land (wire.md, Retries: in doubt).

1. One task watches over all of them: a timer each would cost more than the envelope's own work.
2. At rest, with no commit under way, nothing here is scheduled.
"""

from collections import deque
from collections.abc import Callable

import trio


class Flight:
    """One commit under way. `over` is set by whoever settles it first: the store's word, or the end of its time."""

    __slots__ = ("_late", "deadline", "over")

    def __init__(self, deadline: float, late: Callable[[], None]) -> None:
        self.deadline = deadline
        self.over = False
        self._late = late

    def expire(self) -> None:
        """Its time is over: settle it as late, unless it has landed."""
        if not self.over:
            self.over = True
            self._late()


class Overdue:
    """The flights of one broker, which all have the same time."""

    def __init__(self) -> None:
        self._flights: deque[Flight] = deque()
        self._task: trio.lowlevel.Task | None = None

    def add(self, deadline: float, late: Callable[[], None]) -> Flight:
        """Watch a commit: `late()` is called at `deadline` (Trio's clock) unless it is over by then.

        Deadlines come in rising order.
        """
        flight = Flight(deadline, late)
        self._drop_landed()
        self._flights.append(flight)
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)
            self._task = None
        return flight

    async def run(self) -> None:
        """Watch for ever. Cancelling leaves each flight to its own actor, which waits for it while it ends."""
        while True:
            self._drop_landed()
            if not self._flights:
                await self._park()
            elif self._flights[0].deadline <= trio.current_time():
                self._flights.popleft().expire()
            else:
                await trio.sleep_until(self._flights[0].deadline)

    def _drop_landed(self) -> None:
        while self._flights and self._flights[0].over:
            self._flights.popleft()

    async def _park(self) -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)
