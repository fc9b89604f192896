"""The worker that sends pushes (network.md, Webhooks): what committed events, and what failed earlier, is tried when
its time has come.

1. A push with nothing to do costs one entry in memory. One that has something to do is one task, which sends one event
   after the other; so many attempts are under way at once at most.
2. The place is written where it has moved for a second, and where the push rests, fails or ends. A restart repeats
   what was sent since, under the same ids.
3. Who may not speak gets nothing; an attempt under way is broken off.
"""

from collections.abc import Sequence
from typing import Protocol

from broker.core.push import Outcome


class Courier(Protocol):
    """The way out, given to open_broker; a gateway fills it in. Without one nothing is sent."""

    async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        """POST once, within a bounded time. Raises nothing for what a receiver or a URL does; cancelling closes the
        connection, and the receiver may have acted."""
        ...
