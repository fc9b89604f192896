"""When each agent last called something (network.md, Identity: presence). In memory; nothing is stored.

A minute is fine enough: it says that an agent is about, and not when it does what.
"""

from typing import Final

from broker.actors.latest import Latest
from broker.clock import Clock

AWAY_S: Final = 900.0
"""An agent that called within this is away, and no more offline."""
KEPT: Final = 100_000
"""Agents remembered; beyond it the one that was quiet longest is forgotten."""
_MINUTE_MS: Final = 60_000


class Activity:
    """The last calls of one broker's agents. Nothing in it waits."""

    def __init__(self, clock: Clock, *, kept: int = KEPT) -> None:
        self._clock = clock
        self._last: Latest[str, tuple[float, int]] = Latest(kept)

    def note(self, agent_id: str) -> None:
        """The agent calls something now."""
        minute = self._clock.now_ms() // _MINUTE_MS * _MINUTE_MS
        self._last[agent_id] = (self._clock.monotonic(), minute)

    def is_about(self, agent_id: str) -> bool:
        """Whether it called something in the last quarter of an hour."""
        last = self._last.get(agent_id)
        return last is not None and self._clock.monotonic() - last[0] < AWAY_S

    def last_seen(self, agent_id: str) -> int | None:
        """The minute of its last call (Unix milliseconds) since the broker's start; None: there was none."""
        last = self._last.get(agent_id)
        return None if last is None else last[1]
