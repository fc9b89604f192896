"""The connections that are open now, by door, and what waits to be sent on the WebSockets among them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol


class Waiting(Protocol):
    """What waits to be sent on a connection: an Outbox, of which this has no need to know more."""

    @property
    def size(self) -> int:
        """Bytes, frames' overhead included."""
        ...


class Sockets:
    """Each door says what it holds; metrics ask."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter({"http": 0, "ws": 0, "dealing": 0, "operators": 0})
        self._outboxes: set[Waiting] = set()

    @contextmanager
    def held(self, door: str, outbox: Waiting | None = None) -> Iterator[None]:
        """For as long as the block lasts there is one more at `door`."""
        self._open[door] += 1
        if outbox is not None:
            self._outboxes.add(outbox)
        try:
            yield
        finally:
            self._open[door] -= 1
            if outbox is not None:
                self._outboxes.discard(outbox)

    def by_door(self) -> Mapping[str, int]:
        """How many are open."""
        return self._open

    def waiting_bytes(self) -> int:
        """What waits to be sent, frames' overhead included."""
        return sum(outbox.size for outbox in self._outboxes)
