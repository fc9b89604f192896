"""The operators' tape: envelopes as they are accepted, for whoever watches, and for nobody at no cost.

1. While nobody watches, a commit costs one look at an empty dict.
2. A watch keeps the last ROWS envelopes and counts the others: whoever looks sees the newest, knows how many passed,
   and slows nobody. It is answered COALESCE_S apart at most, however much is said.
3. An envelope stands in several streams of one commit; its events share its text, by which it is told apart.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec
import trio

from broker.actors.reader import Ended
from broker.store.port import Event
from broker.wire.events import ROW_KINDS
from broker.wire.refusals import Refusal, refuse

ROWS: Final = 40
"""Envelopes that one answer shows."""
COALESCE_S: Final = 0.25
"""Seconds between two answers."""
WATCHERS: Final = 32
"""Watches at once: a few operators with a few windows."""


class _Envelope(msgspec.Struct, gc=False):
    sender: str = msgspec.field(name="from")
    to: str
    type: str


class _Row(msgspec.Struct, gc=False):
    conv: str
    n: int
    envelope: _Envelope


_read: Final = msgspec.json.Decoder(_Row).decode


class Passed(msgspec.Struct, frozen=True):
    """An envelope that was accepted. `at`: Unix milliseconds. Its body is not on the tape."""

    at: int
    conv: str
    n: int
    type: str
    sender: str
    to: str


class Glance(msgspec.Struct, frozen=True):
    """What was accepted since the last glance: the newest, oldest first, and how many there were in all."""

    rows: list[Passed]
    count: int


class Tape:
    """All watches. No method blocks."""

    def __init__(self) -> None:
        self.watches: dict[TapeWatch, None] = {}

    def committed(self, events: Sequence[Event]) -> None:
        """For the store's listener, where there are watches."""
        last = b""
        for event in events:
            if event.kind in ROW_KINDS and event.data is not last:
                last = event.data
                for watch in self.watches:
                    watch.add(event)

    def watch(self) -> "TapeWatch | Refusal":
        """Watch from now on. Close the watch, or enter it."""
        if len(self.watches) >= WATCHERS:
            return refuse("overloaded", "too many watch the tape already", retry_after_ms=1000)
        watch = TapeWatch(self)
        self.watches[watch] = None
        return watch

    def end(self, refusal: Refusal) -> None:
        """End all watches: the broker stops."""
        for watch in list(self.watches):
            watch.end(refusal)


class TapeWatch:
    """One watch; made by Tape.watch."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._kept: deque[Event] = deque(maxlen=ROWS)
        self._count = 0
        self._woken = trio.Event()
        self._due = -1.0
        self._ended: Refusal | None = None

    def add(self, event: Event) -> None:
        """For the tape: an envelope was accepted."""
        self._kept.append(event)
        self._count += 1
        if self._count == 1:
            self._woken.set()

    def end(self, refusal: Refusal) -> None:
        """End it from outside; whoever waits gets Ended."""
        self.close()
        self._ended = refusal
        self._woken.set()

    async def take(self) -> Glance:
        """Wait until something was accepted since the last glance, COALESCE_S after it at least. Raises Ended.

        Cancelling loses nothing.
        """
        await self._woken.wait()
        if self._ended is None:
            await trio.sleep_until(self._due)
        if self._ended is not None:
            raise Ended(self._ended)
        self._due = trio.current_time() + COALESCE_S
        self._woken = trio.Event()
        rows = [_passed(each) for each in self._kept]
        count, self._count = self._count, 0
        self._kept.clear()
        return Glance(rows, count)

    def close(self) -> None:
        """Watch no more. Closing twice is fine."""
        self._tape.watches.pop(self, None)

    def __enter__(self) -> "TapeWatch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _passed(event: Event) -> Passed:
    row = _read(event.data)
    said = row.envelope
    return Passed(event.at, row.conv, row.n, said.type, said.sender, said.to)
