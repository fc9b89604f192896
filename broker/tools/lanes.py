"""One after the other, by name: where a count is looked at before something is added to it (network.md, A2A).

Who counts and then adds must not be passed by another one who has counted the same. Nothing stays of a name that nobody
waits for.
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
