"""Commits under way, each with a time by which it has to land (wire.md, Retries: in doubt).

1. One task watches over all of them: a timer each would cost more than the envelope's own work.
2. At rest, with no commit under way, nothing here is scheduled.
"""

from collections import deque

import trio

from broker.parking import Parked


class Flight:
    """One commit under way. `over` is set by whoever settles it first: the store's word, or the end of its time."""

    __slots__ = ("deadline", "over")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.over = False

    def expire(self) -> None:
        """Its time is over: settle it as late, unless it has landed."""
        raise NotImplementedError


class Overdue:
    """The flights of one broker, which all have the same time."""

    def __init__(self) -> None:
        self._flights: deque[Flight] = deque()
        self._parked = Parked()

    def add(self, flight: Flight) -> None:
        """Watch a commit: it expires at its deadline (Trio's clock) unless it is over by then.

        Deadlines come in rising order.
        """
        flights = self._flights
        while flights and flights[0].over:
            flights.popleft()
        flights.append(flight)
        self._parked.wake()

    async def run(self) -> None:
        """Watch for ever. Cancelling leaves each flight to its own actor, which waits for it while it ends."""
        while True:
            flights = self._flights
            if not flights:
                await self._parked.park()
            elif flights[0].over:
                flights.popleft()
            elif flights[0].deadline <= trio.current_time():
                flights.popleft().expire()
            else:
                await trio.sleep_until(flights[0].deadline)
