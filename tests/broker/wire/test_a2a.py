"""Tasks in A2A's form: out as ProtoJSON has it, in as clients send it."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire import a2a
from broker.wire.task import Artifact, Part, Result, Said, Status, Summary, View

AT = 1_782_345_678_901
SAID = Said("m-1", "requester", (Part(text="hi", media_type="text/plain", filename="x"),), AT, {"k_k": 1})
VIEW = View(
    Summary("tk_1", "cx_1", "ag_1", "Ann", "ag_2", "input-required", AT, AT, 0, 2),
    (SAID,),
    Said("m-2", "target", (Part(data={"media_type": None}),), AT),
    (Artifact("art_1", (Part(raw="aGk="), Part(url="https://x"))),),
)


@pytest.mark.requirement("network.a2a.gateway")
def test_a_task_is_as_the_definition_has_it() -> None:
    assert a2a.task(VIEW) == {
        "id": "tk_1",
        "contextId": "cx_1",
        "status": {
            "state": "TASK_STATE_INPUT_REQUIRED",
            "timestamp": "2026-06-25T00:01:18.901Z",
            "message": {
                "messageId": "m-2",
                "contextId": "cx_1",
                "taskId": "tk_1",
                "role": "ROLE_AGENT",
                "parts": [{"data": {"media_type": None}}],
            },
        },
        "artifacts": [{"artifactId": "art_1", "parts": [{"raw": "aGk="}, {"url": "https://x"}]}],
        "history": [
            {
                "messageId": "m-1",
                "contextId": "cx_1",
                "taskId": "tk_1",
                "role": "ROLE_USER",
                "parts": [{"text": "hi", "filename": "x", "mediaType": "text/plain"}],
                "metadata": {"k_k": 1},
            }
        ],
    }
    assert "artifacts" not in a2a.task(VIEW, artifacts=False)


@pytest.mark.requirement("network.a2a.streams")
def test_events_are_stream_responses_and_others_are_none() -> None:
    status = msgspec.json.encode(Status("tk_1", "cx_1", "failed", AT, SAID))
    made = a2a.event("task_status", status)
    assert made is not None
    assert made["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"
    assert made["statusUpdate"]["status"]["message"]["messageId"] == "m-1"
    artifact = a2a.event("task_artifact", msgspec.json.encode(Result("tk_1", "cx_1", VIEW.artifacts[0])))
    assert artifact is not None
    assert artifact["artifactUpdate"]["artifact"]["artifactId"] == "art_1"
    assert a2a.event("notice", b"{}") is None


@pytest.mark.requirement("network.a2a.gateway")
def test_both_ways_of_naming_are_read_and_null_is_as_nothing() -> None:
    message = {"message_id": "m", "role": "ROLE_USER", "parts": [{"data": None, "text": None}], "x_y": 1}
    params = {"message": message, "metadata": {"a_b": None}, "configuration": None, "tenant": "t"}
    found = a2a.read(json.dumps(params).encode(), a2a.SendMessage)
    assert found.message.message_id == "m"
    assert a2a.parts_of(found.message) == [Part(data=None)]
    assert found.metadata == {"a_b": None}
    assert found.configuration == a2a.Configuration()


@pytest.mark.parametrize(
    "params", [b"{}", b'{"message":{}}', b'{"message":{"messageId":"m","role":"USER","parts":[]}}']
)
def test_what_is_not_there_is_said(params: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        a2a.read(params, a2a.SendMessage)


@given(st.integers(min_value=0, max_value=4_102_444_800_000))
def test_a_time_comes_back(at: int) -> None:
    assert a2a.time_of(a2a.time_text(at)) == at


@pytest.mark.parametrize("text", ["", "yesterday", "2026-06-25T00:01:18", "2026-06-25T00:01:18+00:00", "Z"])
def test_what_is_no_time_in_utc_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        a2a.time_of(text)


def test_a_time_has_milliseconds_and_a_z() -> None:
    assert a2a.time_of("2026-06-25T00:01:18Z") == round(
        datetime(2026, 6, 25, 0, 1, 18, tzinfo=UTC).timestamp() * 1000
    )
    assert a2a.state_of("TASK_STATE_WORKING") == "working"
    unknown: Any = a2a.state_of("TASK_STATE_AUTH_REQUIRED")
    assert unknown is None
