"""Calls as this process saw them, for a while after their actors ended (wire.md, Limits).

A log that is read again, after a commit in doubt or a crash, tells when its rows were accepted by the wall clock alone.
What this process has accepted itself stays measured on its own clock.
"""

from collections import deque

from broker.core.conversation import Conversation

KEEP_S = 90.0
"""How long a state is kept after its actor ended: what is in doubt is settled in seconds, if ever; a step of the wall
clock is seen within a minute (timers.py)."""


class Recent:
    """States of calls, by conv. Those of living actors are held by them anyway; the others are few, and go."""

    def __init__(self) -> None:
        self._calls: dict[str, Conversation] = {}
        self._over: deque[tuple[float, Conversation]] = deque()

    def __len__(self) -> int:
        return len(self._calls)

    def get(self, conv: str) -> Conversation | None:
        """What was last known of a call, or None."""
        return self._calls.get(conv)

    def keep(self, state: Conversation) -> None:
        """An actor has this state now."""
        self._calls[state.conv] = state

    def forget(self, state: Conversation) -> None:
        """Its actor left at rest: nothing of it is recent."""
        if self._calls.get(state.conv) is state:
            del self._calls[state.conv]

    def ended(self, state: Conversation, mono: float) -> None:
        """Its actor ended at monotonic second `mono`, and may be followed by another soon."""
        self._over.append((mono, state))
        while self._over[0][0] <= mono - KEEP_S:
            self.forget(self._over.popleft()[1])
