"""Every event that leaves the broker on a principal's stream (wire.md, Streams), and the cursor.

1. ring, env and end carry the same members; end stands in place of env where the conversation ended.
2. A cursor is opaque to clients: stream, epoch, position. It means "the last one that I have".
3. `splice` puts the per-reader members beside the row's stored text without reading it again.
"""

import hashlib
from typing import Final, Literal

import msgspec

Kind = Literal["ring", "env", "end", "desk_moved", "desk_closed", "moving"]
KINDS: Final[tuple[str, ...]] = ("ring", "env", "end", "desk_moved", "desk_closed", "moving")

Reason = Literal["trimmed", "epoch_changed", "unknown", "future"]


class Resume(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first answer on a stream. `from_`: reading goes on after this cursor; `head`: the newest one."""

    recovered: bool
    from_: str = msgspec.field(name="from")
    head: str
    reason: Reason | None = None


class Cursor(msgspec.Struct, frozen=True):
    """Where a reader stands in a stream."""

    tag: str
    epoch: str
    position: int

    def text(self) -> str:
        """The opaque form: `<tag>.<epoch>.<position>`."""
        return f"{self.tag}.{self.epoch}.{self.position}"


def stream_tag(stream: str) -> str:
    """Eight hex characters that tell streams apart inside a cursor without naming them."""
    return hashlib.sha256(stream.encode()).hexdigest()[:8]


def read_cursor(text: str) -> Cursor | None:
    """The cursor behind a text, or None for one that no broker gave."""
    parts = text.split(".")
    if len(parts) != 3 or not parts[2].isascii() or not parts[2].isdigit() or len(parts[2]) > 18:
        return None
    return Cursor(parts[0], parts[1], int(parts[2]))


def splice(data: bytes, cursor: str, own: bool) -> bytes:
    """A stored row's JSON object with `cursor` and `own` put in front.

    The row begins with `{` and has at least one member, so that the seam is a comma.
    """
    return b'{"cursor":"%s","own":%s,%s' % (cursor.encode(), b"true" if own else b"false", data[1:])
