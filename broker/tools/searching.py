"""Each agent searches one by one (network.md, Resources): the store does one search at a time, for everybody, so that
who asks for many at once waits for their own, and the others wait for one of them at most.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from broker.wire.refusals import Refusal, refuse

WAITING: Final = 8
"""Searches of one agent that may wait for its others."""
TOO_MANY: Final = refuse(
    "rate_limited",
    "others of your searches are not done yet; search one by one",
    retry_after_ms=1000,
)


class Searching:
    """Who searches now, by agent."""

    def __init__(self) -> None:
        self._lines: dict[str, trio.Lock] = {}

    def __len__(self) -> int:
        return len(self._lines)

    @asynccontextmanager
    async def turn(self, agent_id: str) -> AsyncIterator[Refusal | None]:
        """Wait for the agent's turn, which the block has; rate_limited, at once, where too many of its own wait.
        Cancelling leaves the line."""
        line = self._lines.setdefault(agent_id, trio.Lock())
        if line.statistics().tasks_waiting >= WAITING:
            yield TOO_MANY
            return
        try:
            async with line:
                yield None
        finally:
            if not line.locked():  # who waits has it by now
                self._lines.pop(agent_id, None)
