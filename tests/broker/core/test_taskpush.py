"""What is posted of an event of a task (network.md, A2A)."""

import json

import msgspec
import pytest

from broker.core.push import Occurrence, PushRow
from broker.core.taskpush import Shown, a2a_form, config_of, push_id
from broker.wire.task import Status

ROW = PushRow(
    push_id=push_id("tk_1", "c1"),
    form="a2a",
    agent_id="ag_1",
    stream="task:tk_1",
    url="https://x.org/",
    position=0,
    created_at=0,
)


def event(kind: str = "task_status") -> Occurrence:
    text = msgspec.json.encode(Status("tk_1", "cx_1", "working", 1_782_345_678_000))
    return Occurrence("e1", kind, 0, text)


@pytest.mark.requirement("network.a2a.push")
@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (Shown(), {}),
        (Shown(token="t"), {"x-a2a-notification-token": "t"}),
        (Shown(scheme="Bearer", credentials="c"), {"authorization": "Bearer c"}),
        (Shown(scheme="Negotiate"), {"authorization": "Negotiate"}),
    ],
)
def test_the_request_shows_what_the_receiver_asked_for(shown: Shown, expected: dict[str, str]) -> None:
    made = a2a_form(ROW, event(), (msgspec.json.encode(shown).decode(),), 0)
    assert made is not None
    common = {"content-type": "application/a2a+json", "a2a-version": "1.0"}
    assert dict(made.headers) == {**common, **expected}
    assert json.loads(made.body)["statusUpdate"]["status"] == {
        "state": "TASK_STATE_WORKING",
        "timestamp": "2026-06-25T00:01:18.000Z",
    }


def test_what_has_no_form_is_not_sent() -> None:
    assert a2a_form(ROW, event("notice"), ("{}",), 0) is None


def test_a_push_is_named_by_its_task_and_itself() -> None:
    assert config_of(ROW) == "c1"
