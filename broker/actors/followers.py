"""Who follows which channel now, in this process (network.md, Channels).

Who is removed from a channel is cut off here, right after the commit; who follows needs no `channel` event.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from broker.actors.standing import End
from broker.wire.refusals import Refusal


class Followers:
    """By channel and agent: how each stream that one has open is ended."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], dict[End, bool]] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def live(self, channel_id: str, agent_id: str) -> bool:
        """Whether the agent reads the channel as it follows it."""
        return any(self._ends.get((channel_id, agent_id), {}).values())

    @contextmanager
    def hold(self, channel_id: str, agent_id: str, end: End, *, reads: bool = True) -> Iterator[None]:
        """The agent follows the channel for as long as the block lasts; without `reads` it is shown nothing of it."""
        place = (channel_id, agent_id)
        self._ends.setdefault(place, {})[end] = reads
        try:
            yield
        finally:
            ends = self._ends[place]
            del ends[end]
            if not ends:
                del self._ends[place]

    def end(self, channel_id: str, agent_id: str, refusal: Refusal) -> None:
        """The agent may follow the channel no more."""
        for end in list(self._ends.get((channel_id, agent_id), {})):
            end(refusal)
