"""A message's body, and how it is shown."""

import pytest

from broker.core.loops import Trace
from broker.core.message import MAX_BODY, MessageRow, judge_body, shown


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "bad_request"),
        ("x", None),
        ("x" * MAX_BODY, None),
        ("x" * (MAX_BODY + 1), "too_large"),
        ("é" * 8193, "too_large"),
    ],
)
def test_bodies(body: str, code: str | None) -> None:
    refused = judge_body(body)
    assert (refused.code if refused else None) == code


def test_what_is_shown_has_no_chain_in_it() -> None:
    row = MessageRow("msg_1", "a", "b", "text", 5, Trace("msg_0", 1, 3, "c"), "Ann", "msg_0", 9)
    message = shown(row)
    assert (message.hops, message.read, message.from_name) == (3, True, "Ann")
    assert not hasattr(message, "trace")
