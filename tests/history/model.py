"""What clients of a broker saw, as data: operations with their times, events with their positions, readings.

Times are seconds of one monotonic clock: `began` before the first byte was sent, `ended` after the last one was read.
An operation without an answer is indeterminate: it may have taken effect at any time after it began, or never will.
"""

from pathlib import Path
from typing import Final

import msgspec


class Ok(msgspec.Struct, frozen=True, tag="ok"):
    """An acknowledgement."""

    chain: str
    accepted_at: int
    replayed: bool = False


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Anything else that the broker answered; `in_doubt` and `overloaded` leave the outcome open."""

    code: str

    @property
    def certain(self) -> bool:
        """Whether this request certainly wrote nothing."""
        return self.code not in OPEN


OPEN: Final = frozenset({"in_doubt", "fault"})
"""Answers after which nobody knows; `fault` is an internal error."""


class Send(msgspec.Struct):
    """One request to append the envelope `sig` as number `n` of a conversation, from its sender's key to another."""

    conv: str
    n: int
    sig: str
    sender: str
    to: str
    began: float
    ended: float | None = None
    answer: Ok | Refused | None = None


class Seen(msgspec.Struct, frozen=True):
    """An event that a reader of a principal's stream was given, at `at`."""

    stream: str
    reader: str
    epoch: str
    position: int
    conv: str
    n: int
    sig: str
    at: float


class Reading(msgspec.Struct, frozen=True):
    """A whole transcript as it was read: the signatures from n = 0 on."""

    conv: str
    began: float
    ended: float
    sigs: tuple[str, ...]


class History(msgspec.Struct):
    """All that was seen. `complete`: at the end each stream and each conversation was read to its head."""

    sends: list[Send] = msgspec.field(default_factory=list)
    seen: list[Seen] = msgspec.field(default_factory=list)
    readings: list[Reading] = msgspec.field(default_factory=list)
    complete: bool = False

    def write(self, path: Path) -> None:
        """Keep it for `python -m tests.history FILE`."""
        path.write_bytes(msgspec.json.encode(self))


def read(path: Path) -> History:
    """What `write` kept."""
    return msgspec.json.decode(path.read_bytes(), type=History)
