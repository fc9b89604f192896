"""What the client raises, and what of several faults at once is told."""

import pytest

from broker.wire.envelope import Envelope
from broker.wire.refusals import refuse
from gateways.client.errors import CallEnded, Disconnected, Refused, WireFault, collapse


@pytest.mark.parametrize(
    ("wait", "seconds"), [(1500, 1.5), (0, 0.0), (None, None), ("soon", None), (-1, None)]
)
def test_a_refusal_says_how_long_to_wait(wait: object, seconds: float | None) -> None:
    detail = {} if wait is None else {"retry_after_ms": wait}
    refused = Refused(refuse("rate_limited", "too many", **detail))
    assert refused.retry_after_s == seconds
    assert (refused.code, str(refused)) == ("rate_limited", "rate_limited: too many")


@pytest.mark.parametrize(
    ("body", "reason"), [({"reason": "idle"}, "idle"), ({}, None), ({"reason": 7}, None)]
)
def test_an_end_says_why_in_its_senders_words(body: dict[str, object], reason: str | None) -> None:
    end = Envelope("00" * 8, 3, "END", "aa" * 32, "bb" * 32, 1, "cc" * 64, body, b"")
    assert CallEnded(end).reason == reason


def test_a_broken_line_steps_back_behind_what_tells_more() -> None:
    fault = WireFault("lies")
    inner = BaseExceptionGroup("inner", [Disconnected("eof"), fault])
    assert collapse(BaseExceptionGroup("outer", [Disconnected("eof"), inner])) is fault


def test_only_broken_lines_are_one_broken_line() -> None:
    first = Disconnected("first")
    assert collapse(BaseExceptionGroup("all", [first, Disconnected("second")])) is first


def test_two_things_that_went_wrong_stay_two() -> None:
    group = BaseExceptionGroup("both", [ValueError("a"), KeyError("b")])
    assert collapse(group) is group
