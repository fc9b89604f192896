"""A request's body over ASGI: whether it is JSON, its bytes within a bound, and what is left of it thrown away.

1. It is counted as it comes: what is too large is never held whole.
2. Bytes that nobody read are read before the connection ends: else its reset destroys the answer on the way.
"""

from collections import Counter
from functools import lru_cache
from types import TracebackType
from typing import Final

import msgspec
import trio

from broker.apart import LARGE
from gateways.listen import Receive

ROOMS: Final = 32
"""Requests larger than a frame of the wire that one door holds at once: 64 MiB, whoever sends them."""
SHARE: Final = 8
"""Of these one subject's: who sends them slowly, and is anybody that registered, must not have all."""
DRAIN_BYTES: Final = 4 * 1024 * 1024
"""What is read and thrown away around an early answer, at most."""


class Gone(Exception):
    """The client left before its request was whole."""


class TooLarge(msgspec.Struct, frozen=True):
    """A body beyond the limit: how many bytes had come, and whether that was all of it."""

    size: int
    whole: bool


class NoRoom(msgspec.Struct, frozen=True):
    """Too many large bodies are held already; whether this one was whole."""

    whole: bool


class Rooms:
    """Places for what is large, so that memory is bounded by more than the number of connections."""

    def __init__(self, most: int = ROOMS, share: int = SHARE) -> None:
        self._left = most
        self._share = share
        self._taken: Counter[str] = Counter()

    def take(self, who: str) -> bool:
        """Take a place for somebody; False: there is none, or none for them."""
        if self._left == 0 or self._taken[who] == self._share:
            return False
        self._left -= 1
        self._taken[who] += 1
        return True

    def leave(self, who: str) -> None:
        """Give a place back."""
        self._left += 1
        self._taken[who] -= 1
        self._taken += Counter()  # who has none is forgotten


class Held:
    """One request's place, if it needs one, until the block is left. `who`: whose request it is; "": not known yet."""

    def __init__(self, rooms: Rooms, who: str = "") -> None:
        self._rooms = rooms
        self._held: str | None = None
        self.who = who

    def take(self) -> bool:
        """Whether there is a place for it; it keeps the one that it has."""
        if self._held is None and self._rooms.take(self.who):
            self._held = self.who
        return self._held is not None

    def __enter__(self) -> "Held":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Give it back. A second time does nothing."""
        if self._held is not None:
            self._rooms.leave(self._held)
            self._held = None


async def read_body(receive: Receive, limit: int, held: Held | None = None) -> bytes | TooLarge | NoRoom:
    """The body, or TooLarge as soon as it is, or NoRoom where `held` gets no place for one beyond LARGE. Raises Gone.
    Cancelling loses what was read."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(piece)
        if size > limit:
            return TooLarge(size, not more)
        if size > LARGE and held is not None and not held.take():
            return NoRoom(not more)
        pieces.append(piece)
        if not more:
            return b"".join(pieces)


async def drain(receive: Receive, seconds: float) -> None:
    """Read what the client still sends of its request, at most DRAIN_BYTES and for so many seconds."""
    size = 0
    with trio.move_on_after(seconds):
        while size < DRAIN_BYTES:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
            size += len(message.get("body", b""))


@lru_cache(maxsize=256)  # a client sends the same each time
def is_json(content_type: str) -> bool:
    """Whether a Content-Type is application/json with no charset, or UTF-8."""
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [
        each.partition("=")[2].strip().strip('"') for each in parameters if each.startswith("charset")
    ]
    return media == "application/json" and all(each in ("utf-8", "utf8") for each in charsets)
