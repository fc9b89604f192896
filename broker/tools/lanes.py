"""One after the other, by name. Nothing stays of a name that nobody waits for.

1. Who counts and then adds must not be passed by another one who has counted the same (network.md, A2A).
2. Who asks for many searches at once waits for their own, and the others for one of them at most: the store does one at
   a time, for everybody (network.md, Resources).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Lanes:
    """Who has its turn now, by name."""

    def __init__(self) -> None:
        self._lanes: dict[str, trio.Lock] = {}

    def __len__(self) -> int:
        return len(self._lanes)

    def waiting(self, name: str) -> int:
        """How many wait for their turn, beside the one that has it."""
        lane = self._lanes.get(name)
        return 0 if lane is None else lane.statistics().tasks_waiting

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for the turn, which the block has. Cancelling leaves the line."""
        lane = self._lanes.setdefault(name, trio.Lock())
        try:
            async with lane:
                yield
        finally:
            if not lane.locked():  # who waits has it by now
                self._lanes.pop(name, None)
