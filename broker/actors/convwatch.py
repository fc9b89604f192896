"""Who is told that a conversation has grown: a wake-up each time, for whoever may read its transcript.

1. A wake-up says "read it again" and carries nothing: the right to read is judged by who reads.
2. One look at a committed event, however many watch: a busy desk pays nothing for those who watch its calls.
"""

from collections.abc import Sequence
from types import TracebackType

import msgspec
import trio

from broker.store.port import Event
from broker.wire.events import ROW_KINDS


class _Conv(msgspec.Struct):
    """The one member of an event that is looked at."""

    conv: str


class ConvWatches:
    """All watches of conversations. No method blocks."""

    def __init__(self) -> None:
        self._watching: dict[str, dict[ConvWatch, None]] = {}

    def committed(self, events: Sequence[Event]) -> None:
        """For the store's listener: wake who watches a conversation that these events belong to."""
        if not self._watching:
            return
        for event in events:
            if event.kind in ROW_KINDS:
                conv = msgspec.json.decode(event.data, type=_Conv).conv
                for watch in self._watching.get(conv, ()):
                    watch.wake()

    def watch(self, conv: str) -> "ConvWatch":
        """Watch a conversation from now on. Enter the watch as an async context manager, or close it."""
        watch = ConvWatch(self, conv)
        self._watching.setdefault(conv, {})[watch] = None
        return watch

    def forget(self, watch: "ConvWatch") -> None:
        """For a watch that closes."""
        watches = self._watching.get(watch.conv, {})
        watches.pop(watch, None)
        if not watches:
            self._watching.pop(watch.conv, None)


class ConvWatch:
    """Says when a conversation has grown. Made by ConvWatches.watch; leaving it ends the watch."""

    def __init__(self, watches: ConvWatches, conv: str) -> None:
        self.conv = conv
        self._watches = watches
        self._grown = trio.Event()

    def wake(self) -> None:
        """For ConvWatches: it has grown."""
        self._grown.set()

    async def changed(self) -> bool:
        """Wait until it has grown since the last answer. Always True. Cancelling loses nothing."""
        await self._grown.wait()
        self._grown = trio.Event()
        return True

    def close(self) -> None:
        """End the watch. Closing twice is fine."""
        self._watches.forget(self)

    async def __aenter__(self) -> "ConvWatch":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
