"""One refusal, or one fault, as each door shows it."""

import logging
import re

import msgspec
import pytest

from broker.wire.refusals import CODES, Refusal, refuse
from gateways import render

ALL = [refuse(code, "a reason") for code in CODES]


def json(data: bytes) -> dict[str, object]:
    decoded: dict[str, object] = msgspec.json.decode(data)
    return decoded


@pytest.mark.requirement("refusals.one-body-everywhere")
@pytest.mark.parametrize("refusal", ALL, ids=list(CODES))
def test_every_code_has_the_same_body_at_each_door(refusal: Refusal) -> None:
    status, headers, body = render.http(refusal)
    assert status == CODES[refusal.code].status
    assert (b"content-type", b"application/json; charset=utf-8") in headers
    assert json(body) == {"refusal": refusal.body()}
    shown = render.tool_result(refusal)
    assert shown["isError"] is True
    assert shown["structuredContent"] == {"refusal": refusal.body()}
    assert shown["content"][0]["text"].startswith(f"{refusal.code}: a reason. ")
    assert json(shown["content"][1]["text"].encode()) == shown["structuredContent"]
    error = json(render.jsonrpc_error(5, refusal))["error"]
    if refusal.code == "bad_request":
        assert error == {"code": -32602, "message": "a reason", "data": {"refusal": refusal.body()}}
    else:
        assert error == {"code": -32000, "message": "a reason", "data": refusal.body()}


def test_every_code_of_the_table_says_the_way_out() -> None:
    assert set(render.WAY_OUT) == set(CODES)


def test_in_the_tools_of_trials_the_way_out_is_one_of_theirs() -> None:
    assert render.TRIAL_WAY_OUT.keys() < CODES.keys()
    arena = re.compile("describe_arena|get_session|get_agent")
    for code in CODES:
        shown = render.tool_result(refuse(code, "a reason"), "kestrel.session.advance")
        assert not arena.search(shown["content"][0]["text"])
    over = refuse("CONFLICT", "late", version=3, operation_id="op_1")
    assert render.refusal_text(over, "kestrel.session.advance").startswith(
        "CONFLICT: late (version: 3, operation_id: op_1). With an operation_id wait for it"
    )
    assert arena.search(render.refusal_text(over, "submit_action"))


@pytest.mark.parametrize(("wait_ms", "seconds"), [(1, b"1"), (1000, b"1"), (1001, b"2"), (10_000, b"10")])
@pytest.mark.requirement("http.retry-after")
def test_retry_after_is_the_wait_in_whole_seconds_rounded_up(wait_ms: int, seconds: bytes) -> None:
    _, headers, _ = render.http(refuse("rate_limited", "slow down", retry_after_ms=wait_ms))
    assert (b"retry-after", seconds) in headers


def test_a_status_in_the_detail_stands_in_for_the_tables() -> None:
    status, _, body = render.http(refuse("bad_request", "no form posts", status=415))
    assert (status, json(body)["refusal"]["status"]) == (415, 415)  # type: ignore[index]


def test_the_text_names_path_and_figures() -> None:
    refusal = refuse("too_large", "the body is too large", path="body", limit=8192, size=9000)
    assert render.refusal_text(refusal) == (
        "too_large: the body is too large (path: body, limit: 8192, size: 9000). Send less."
    )


@pytest.mark.requirement("ws.close-codes")
def test_each_way_to_end_a_websocket_has_its_code() -> None:
    codes = {name: close.code for name, close in render.CLOSE.items()}
    assert codes["too_large"] == 1009
    assert codes["not_utf8"] == 1007
    assert codes["binary"] == 1003
    assert codes["restart"] == 1012
    assert codes["fault"] == 1011
    assert codes["auth_expired"] == 4001
    assert codes["slow"] == 4008
    assert all(len(close.reason.encode()) <= 123 for close in render.CLOSE.values())


@pytest.mark.requirement("refusals.fault-shows-nothing")
def test_a_fault_shows_its_incident_and_nothing_else_and_is_logged_under_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        number = render.incident(ValueError("a secret"), "POST /v1")
    assert len(number) == 16
    assert number in caplog.text
    assert "ValueError" in caplog.text
    status, _, body = render.http_fault(number)
    assert (status, json(body)) == (500, {"error": "internal", "incident": number})
    assert json(render.jsonrpc_fault("a", number)) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32603, "message": "internal error", "data": {"incident": number}},
    }
