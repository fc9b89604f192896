"""Paths, verbs, bodies, and who asks."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.wire.refusals import refuse
from gateways.listen import Bounds
from gateways.mcp.endpoint import STREAM_S
from tests.gateways.mcp.harness import BOTH, Door, modern, request
from tests.support.broker_fake import DEALER_PK, proof
from tests.support.network import serving
from tests.support.peers import dial, read_until

SUITE = Path(__file__).parents[2] / "vectors/jsontestsuite/test_parsing"
NOT_JSON = {path.stem: path.read_bytes() or b" " for path in sorted(SUITE.glob("n_*.json"))}


@pytest.mark.requirement("mcp.faces")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/wire", "/mcp/wire/"])
async def test_every_path_works_with_and_without_a_trailing_slash(faked: Door, path: str) -> None:
    answer = await faked.modern("tools/list", path=path)
    assert answer.status == 200
    assert "location" not in answer.headers
    assert {tool["name"] for tool in answer.result["tools"]} >= {"wire_info", "send_env"}


@pytest.mark.requirement("mcp.faces")
@pytest.mark.parametrize(
    "path", ["/mcp/arena", "/mcp/operator", "/mcp//", "/mcp/wire/x", "/mcpx", "/mcp/wire//"]
)
async def test_a_face_that_is_not_there_is_404(faked: Door, path: str) -> None:
    for method in ("POST", "GET", "DELETE"):
        answer = await faked.ask(method, path, body=request("tools/list") if method == "POST" else b"")
        assert answer.status == 404
        assert answer.error["code"] == -32600


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
async def test_other_verbs_are_405_and_told_which_there_are(faked: Door, verb: str) -> None:
    answer = await faked.ask(verb)
    assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_the_modern_era_has_post_alone(faked: Door, verb: str) -> None:
    answer = await faked.ask(verb, mcp_protocol_version="2026-07-28")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.requirement("mcp.body-limit")
async def test_a_body_beyond_64_kib_is_413_and_one_of_64_kib_is_read(faked: Door) -> None:
    body = json.dumps(request("tools/list")).encode()
    assert (await faked.ask(body=body + b" " * (65536 - len(body)))).status == 200
    answer = await faked.ask(body=body + b" " * (65537 - len(body)))
    assert answer.status == 413
    assert "65536" in answer.error["message"]


@pytest.mark.requirement("mcp.body-limit")
async def test_a_body_in_chunks_is_counted_on_the_wire(faked: Door) -> None:
    head = (
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    chunk = b"2000\r\n" + b" " * 0x2000 + b"\r\n"
    async with serving(faked.app, bounds=Bounds(linger_s=0.1, grace_s=0.1)) as served:  # type: ignore[arg-type]  # ASGI
        async with dial(served.address) as stream:
            await stream.send_all(head + chunk * 9 + b"0\r\n\r\n")
            answer = await read_until(stream, b"65536 bytes")
        assert answer.startswith(b"HTTP/1.1 413")
        async with dial(served.address) as stream:
            message = json.dumps(request("ping", 5)).encode()
            padded = message + b" " * (0x2000 - len(message))
            await stream.send_all(head + b"2000\r\n" + padded + b"\r\n" + chunk * 7 + b"0\r\n\r\n")
            assert b'"id":5' in await read_until(stream, b"result")


@pytest.mark.parametrize("body", [b"[]", b"[1]", json.dumps([request("tools/list")]).encode()])
async def test_a_batch_is_an_invalid_request(faked: Door, body: bytes) -> None:
    for headers in ({}, {"mcp_protocol_version": "2026-07-28"}, {"mcp_protocol_version": "2025-03-26"}):
        answer = await faked.ask(body=body, **headers)
        assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, None)


@pytest.mark.requirement("mcp.not-json")
@pytest.mark.parametrize("name", NOT_JSON)
async def test_what_is_not_json_is_a_parse_error(faked: Door, name: str) -> None:
    body = NOT_JSON[name]
    for headers in ({}, modern("tools/list")[1]):
        answer = await faked.ask(body=body, **headers)
        expected = (400, -32700) if len(body) <= 65536 else (413, -32600)
        assert (answer.status, answer.error["code"], answer.json["id"]) == (*expected, None)


@pytest.mark.requirement("mcp.not-json")
@pytest.mark.parametrize("name", NOT_JSON)
async def test_what_is_not_json_inside_a_call_is_refused_without_a_fault(faked: Door, name: str) -> None:
    around = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":%s}}}'
    answer = await faked.ask(body=around % NOT_JSON[name])
    assert answer.status in (400, 413)
    assert answer.error["code"] in (-32700, -32600, -32602)


@pytest.mark.parametrize("depth", [100, 10_000])
async def test_deep_nesting_is_an_answer_and_no_fault(faked: Door, depth: int) -> None:
    arguments = b'{"x":' * depth + b"1" + b"}" * depth
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%s}}' % arguments
    )
    answer = await faked.ask(body=body)
    assert answer.status in (200, 400, 413)
    assert answer.status != 200 or answer.result["isError"] is True


@pytest.mark.parametrize("value", [b"9" * 5000, b'"\\ud800"', b"1e999", b"NaN"])
async def test_numbers_and_strings_that_json_forbids_or_we_do_are_answered(faked: Door, value: bytes) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":%s}}}'
        % value
    )
    answer = await faked.ask(body=body)
    assert answer.status in (200, 400)
    assert answer.status != 200 or answer.result["isError"] is True


@pytest.mark.requirement("mcp.caller")
async def test_a_proof_in_the_authorization_header_makes_the_caller(faked: Door) -> None:
    await faked.ask(body=request("tools/call", name="echo"), authorization=f"Turret {proof()}")
    assert faked.broker.calls[-1][0].pk == DEALER_PK
    await faked.ask(body=request("tools/call", name="echo"))
    assert faked.broker.calls[-1][0].pk is None


@pytest.mark.requirement("mcp.caller")
@pytest.mark.parametrize("header", ["Bearer abc", "Basic x"])
async def test_another_scheme_is_401_with_a_challenge_and_the_id(faked: Door, header: str) -> None:
    answer = await faked.ask(body=request("tools/list", 5), authorization=header)
    assert (answer.status, answer.json["id"], answer.error["data"]["code"]) == (401, 5, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Turret")
    assert (await faked.ask("GET", authorization=header)).status == 401


async def test_a_proof_that_the_broker_refuses_is_refused_before_the_session_is_looked_at(
    faked: Door,
) -> None:
    faked.broker.refuse_admission = refuse("bad_statement", "too old")
    answer = await faked.ask(body=request("ping"), authorization=f"Turret {proof()}", mcp_session_id="x")
    assert (answer.status, answer.error["data"]["code"]) == (401, "bad_statement")


@pytest.mark.requirement("mcp.newest-stream")
async def test_the_newest_stream_of_a_session_wins(faked: Door) -> None:
    session = await faked.session()
    async with faked.open("GET", **session.headers) as first:
        await first.started.wait()
        assert first.headers["content-type"].startswith("text/event-stream")
        async with faked.open("GET", **session.headers) as second:
            await second.started.wait()
            with trio.fail_after(5):
                await first.finished.wait()
            assert not second.finished.is_set()
        assert second.body.startswith(b": ")


@pytest.mark.requirement("mcp.keep-alive")
async def test_a_stream_is_kept_alive_by_comments_and_ends_after_an_hour(
    faked: Door, autojump_clock: object
) -> None:
    session = await faked.session()
    async with faked.open("GET", **session.headers) as stream:
        await trio.sleep(31)
        assert stream.body == b": open\n\n" + b": keep-alive\n\n" * 2
        await trio.sleep(STREAM_S)
        assert stream.finished.is_set()


async def test_a_stream_ends_when_the_process_is_about_to_stop(faked: Door) -> None:
    session = await faked.session()
    async with faked.open("GET", **session.headers) as stream:
        await stream.started.wait()
        faked.app.drain()
        with trio.fail_after(5):
            await stream.finished.wait()


async def test_a_stream_that_its_client_left_frees_the_session(faked: Door) -> None:
    session = await faked.session()
    async with faked.open("GET", **session.headers) as stream:
        await stream.started.wait()
        assert faked.app.sessions.statistics().busy == 1
    assert faked.app.sessions.statistics().busy == 0
    assert not stream.finished.is_set()


@pytest.mark.parametrize("headers", [{}, {"mcp_session_id": "unknown"}])
async def test_a_stream_needs_its_session(faked: Door, headers: dict[str, str]) -> None:
    for verb in ("GET", "DELETE"):
        assert (await faked.ask(verb, **headers)).status == (404 if headers else 400)


async def test_a_stream_needs_a_client_that_takes_one(faked: Door) -> None:
    session = await faked.session()
    assert (await faked.ask("GET", **{**session.headers, "accept": "application/json"})).status == 406


@pytest.mark.requirement("mcp.session-ends")
async def test_delete_ends_the_session_and_its_stream(faked: Door) -> None:
    session = await faked.session()
    async with faked.open("GET", **session.headers) as stream:
        await stream.started.wait()
        assert (await faked.ask("DELETE", **session.headers)).status == 204
        with trio.fail_after(5):
            await stream.finished.wait()
    assert (await session.ask("ping")).status == 404
    assert (await faked.ask("DELETE", **session.headers)).status == 404


async def test_a_client_that_leaves_in_mid_body_gets_nothing(faked: Door) -> None:
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        raise AssertionError(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(b"accept", BOTH.encode())],
        "client": ("127.0.0.1", 1),
        "query_string": b"",
    }
    await faked.app(scope, receive, send)
