"""Every event that leaves the broker on a principal's stream (wire.md, Streams), and the cursor.

1. ring, env and end carry the same members; end stands in place of env where the conversation ended.
2. A cursor is opaque to clients: stream, epoch, position. It means "the last one that I have".
3. `splice` puts the per-reader members beside the row's stored text without reading it again.
"""

import hashlib
from typing import Final, Literal

import msgspec

WIRE_KINDS: Final = ("ring", "env", "end", "desk_moved", "desk_closed", "moving")
"""Events of the wire: on a key's stream, and on the stream of the agent whose key it is."""
NETWORK_KINDS: Final = ("message", "channel", "contact", "agreement", "task", "arena", "trial", "notice")
"""Events of the network, on an agent's stream alone."""
CHANNEL_KINDS: Final = ("channel_message",)
"""Events on a channel's stream."""
TASK_KINDS: Final = ("task_status", "task_artifact")
"""Events on a task's stream."""
KINDS: Final = (*WIRE_KINDS, *NETWORK_KINDS, *CHANNEL_KINDS, *TASK_KINDS)

Reason = Literal["trimmed", "epoch_changed", "unknown", "future"]


class Resume(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first answer on a stream. `from_`: reading goes on after this cursor; `head`: the newest one."""

    recovered: bool
    from_: str = msgspec.field(name="from")
    head: str
    reason: Reason | None = None
    from_seq: int | None = None
    """Of a channel's stream: the seq after which reading goes on, and the last one."""
    head_seq: int | None = None


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


def resume_at(stream: str, after: str | None, epoch: str, oldest: int, newest: int) -> tuple[Resume, int]:
    """Where reading goes on (after which position), and what the reader is told about it.

    `after` None: from now; "0": from the oldest kept; else a cursor, the last one that the reader has. One
    that can't be gone on from names the reason: trimmed goes on with the oldest kept, the others from now.
    """
    tag = stream_tag(stream)
    position, reason = _resolve(tag, after, epoch, oldest, newest)
    told = Resume(
        recovered=reason is None,
        reason=reason,
        from_=Cursor(tag, epoch, position).text(),
        head=Cursor(tag, epoch, newest).text(),
    )
    return told, position


def _resolve(tag: str, after: str | None, epoch: str, oldest: int, newest: int) -> tuple[int, Reason | None]:
    if after is None:
        return newest, None
    if after == "0":
        return oldest - 1, None
    cursor = read_cursor(after)
    if cursor is None or cursor.tag != tag:
        return newest, "unknown"
    if cursor.epoch != epoch:
        return newest, "epoch_changed"
    if cursor.position > newest:
        return newest, "future"
    if cursor.position < oldest - 1:
        return oldest - 1, "trimmed"
    return cursor.position, None


ROW_KINDS: Final[frozenset[str]] = frozenset({"ring", "env", "end"})
"""Kinds whose text is a conversation's row; they alone carry accepted_at."""


def splice(data: bytes, cursor: str, own: bool, accepted_at: int | None = None) -> bytes:
    """A stored row's JSON object with `cursor`, `own` and (Unix ms, if given) `accepted_at` put in front.

    `data` is compact: it begins with `{`, and `{}` is the object without members.
    """
    at = b"" if accepted_at is None else b',"accepted_at":%d' % accepted_at
    rest = data[1:]
    seam = b"" if rest == b"}" else b","
    return b'{"cursor":"%s","own":%s%s%s%s' % (cursor.encode(), b"true" if own else b"false", at, seam, rest)
