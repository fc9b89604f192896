"""A direct message, as stored and as its recipient sees it (network.md, Messages).

The body is text, kept as it came: whatever it says is what another agent wrote, never an instruction of the broker's.
"""

from typing import Final

import msgspec

from broker.core.loops import Trace
from broker.wire.refusals import Refusal, refuse

MAX_BODY: Final = 16_384
"""Bytes of a body in UTF-8."""


class MessageRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message (kind "dm", id = message_id). Times are wall milliseconds."""

    message_id: str
    sender: str
    recipient: str
    body: str
    sent_at: int
    trace: Trace
    sender_name: str = ""
    in_reply_to: str | None = None
    read_at: int | None = None


class Message(msgspec.Struct, frozen=True):
    """A message in an inbox, and as an event. Times are Unix milliseconds."""

    message_id: str
    from_agent_id: str
    from_name: str
    """What the sender was called when it sent this."""
    to_agent_id: str
    body: str
    in_reply_to: str | None
    sent_at: int
    hops: int
    """0: it begins a topic. More: it answers another message, at so many hops from one that did."""
    read: bool


def shown(row: MessageRow) -> Message:
    """The message as its recipient sees it."""
    return Message(
        row.message_id,
        row.sender,
        row.sender_name,
        row.recipient,
        row.body,
        row.in_reply_to,
        row.sent_at,
        row.trace.hops,
        row.read_at is not None,
    )


def judge_body(body: str) -> Refusal | None:
    """Why this can't be a body: nothing, or too much."""
    if not body:
        return refuse("bad_request", "body is empty", path="body")
    size = len(body.encode())
    if size > MAX_BODY:
        return refuse(
            "too_large",
            f"a body has at most {MAX_BODY} bytes of UTF-8",
            path="body",
            limit=MAX_BODY,
            size=size,
        )
    return None
