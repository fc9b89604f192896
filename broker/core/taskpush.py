"""What is pushed of a task: each event of its stream as A2A's StreamResponse (network.md, A2A).

Source: A2A specification 1.0, 4.3.3 and 13.2; the header of the token is the one that A2A's own servers send.
"""

from typing import Final

import msgspec

from broker.core.push import Occurrence, PushRow, Request
from broker.wire import a2a

TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105  # a name
MOST: Final = 5
"""Pushes of one task."""


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """What shows the receiver that it is us; stored as one sealed secret."""

    token: str = ""
    scheme: str = ""
    credentials: str = ""


def push_id(task_id: str, config_id: str) -> str:
    """The id of a task's push."""
    return f"{task_id}.{config_id}"


def config_of(row: PushRow) -> str:
    """The push's id among those of its task."""
    return row.push_id.partition(".")[2]


def a2a_form(row: PushRow, event: Occurrence, secrets: tuple[str, ...], now: int) -> Request | None:
    """An event for a push's URL; None for one that A2A has no form for."""
    del row, now  # all are alike, and what they show does not depend on the time
    made = a2a.event(event.kind, event.text)
    if made is None:
        return None
    shown = msgspec.json.decode(secrets[0], type=Shown)
    headers = [("content-type", "application/a2a+json"), ("a2a-version", a2a.VERSION)]
    if shown.scheme:
        headers.append(("authorization", f"{shown.scheme} {shown.credentials}".rstrip()))
    if shown.token:
        headers.append((TOKEN_HEADER, shown.token))
    return Request(tuple(headers), msgspec.json.encode(made))
