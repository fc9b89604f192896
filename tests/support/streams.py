"""What stream tests need: rows on a principal's stream, and a store that stops where a test says."""

from collections.abc import Awaitable, Callable

import msgspec

from broker.store.memory import MemoryStore
from broker.store.port import Append, Deliver, Event, Head, Store, Unit

AT = 1_782_345_678_123
EPOCH = "e0e0e0e0e0e0e0e0"
"""Of every stream of a SteppedStore."""


class SteppedStore(MemoryStore):
    """A memory store that awaits `after_read` between reading a page or a head and handing it over."""

    def __init__(self) -> None:
        super().__init__()
        self.after_read: Callable[[], Awaitable[None]] | None = None
        self.reads = 0

    async def head(self, stream: str) -> Head:
        head = await super().head(stream)
        if self.after_read is not None:
            await self.after_read()
        return msgspec.structs.replace(head, epoch=EPOCH)

    async def events(self, stream: str, after: int, limit: int = 100) -> list[Event]:
        self.reads += 1
        page = await super().events(stream, after, limit)
        if self.after_read is not None:
            await self.after_read()
        return page


class Writer:
    """Commits rows and delivers each to a stream, as a conversation's actor would."""

    def __init__(self, store: Store, stream: str = "pk:aa", *, log: str = "conv:1", size: int = 0) -> None:
        self.store = store
        self.stream = stream
        self.log = log
        self.written = 0
        self._pad = "x" * size

    async def write(self, count: int = 1, *, kind: str = "env", own: bool = False) -> None:
        """Commit `count` rows, one unit each; row i is position i + 1 if nobody else writes to the stream."""
        for _ in range(count):
            n = self.written
            self.written += 1
            row = {"conv": self.log, "n": n, "sig": f"s{n}", "chain": f"c{n}", "envelope": {"pad": self._pad}}
            append = Append(self.log, n, msgspec.json.encode(row), AT + n)
            await self.store.commit(Unit(append=append, deliver=(Deliver(self.stream, kind, own),)))

    async def tell(self, kind: str, data: bytes) -> None:
        """Commit an event with data of its own."""
        await self.store.commit(Unit(deliver=(Deliver(self.stream, kind, data=data, at=AT),)))
