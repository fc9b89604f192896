"""Requests with an idempotency key that are being done now, in this process (network.md, Idempotency).

The store knows what was done; this knows what is being done, so that of identical requests at once one runs and the
others wait for its answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class _Running:
    __slots__ = ("digest", "over")

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self.over = trio.Event()


class Underway:
    """By scope and key."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def digest(self, scope: str, key: str) -> bytes | None:
        """The digest of the request that is being done under a key; None: there is none."""
        running = self._running.get((scope, key))
        return running.digest if running is not None else None

    async def wait_over(self, scope: str, key: str) -> None:
        """Wait until what is being done under a key is over; at once where nothing is."""
        running = self._running.get((scope, key))
        if running is not None:
            await running.over.wait()

    @contextmanager
    def doing(self, scope: str, key: str, digest: bytes) -> Iterator[None]:
        """The request is being done, for as long as the block lasts. The caller has looked that none is."""
        running = self._running[scope, key] = _Running(digest)
        try:
            yield
        finally:
            del self._running[scope, key]
            running.over.set()
