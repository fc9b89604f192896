"""What users of other MCP servers complained of, one test each, numbered as in our list of them.

Number 24 (the document of a protected resource names another URL than the one that was typed) stands with the
documents, in test_protected.py.
"""

import json
import re
from typing import Any

import jsonschema
import pytest
import trio

from gateways.listen import Bounds
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.listing import portable
from gateways.mcp.revisions import MODERN
from gateways.mcp.sessions import Sessions
from gateways.mcp.surface import Ask, Outcome, Surface
from gateways.wrappers import Origins, check_origin
from tests.gateways.mcp.harness import BOTH, Door, Tools, modern, offer, request, text, tools_door
from tests.support.broker import Bench
from tests.support.broker_fake import proof


def waiting(mark: str, id: Any, **meta: Any) -> dict[str, Any]:
    return request("tools/call", id, name="wait", arguments={"mark": mark}, _meta=meta)


@pytest.mark.requirement("mcp.session-needed")
async def test_01_an_unknown_session_is_404_and_a_missing_one_400(faked: Door) -> None:
    headers = {"mcp_protocol_version": "2025-11-25"}
    unknown = await faked.ask(body=request("tools/list", 3), mcp_session_id="0" * 48, **headers)
    assert (unknown.status, unknown.error["code"], unknown.json["id"]) == (404, -32001, 3)
    assert (await faked.ask(body=request("tools/list"), **headers)).status == 400


async def test_02_what_fails_early_keeps_its_status_for_a_client_that_takes_streams_alone(door: Door) -> None:
    body, headers = modern("tools/call", name="nothing", _meta={"progressToken": 1})
    answer = await door.ask(body=body, **headers, accept="text/event-stream")
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json; charset=utf-8")


async def test_03_who_asks_is_judged_before_the_session_and_the_session_before_the_method(
    faked: Door,
) -> None:
    bad, good = "Bearer x", f"Turret {proof()}"
    body = request("no/such/method")
    assert (await faked.ask(body=body, mcp_session_id="x", authorization=bad)).status == 401
    assert (await faked.ask(body=body, mcp_session_id="x", authorization=good)).status == 404


@pytest.mark.requirement("mcp.accept")
@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("Application/JSON;q=0.9, text/event-stream;q=1", "application/json"),
        ("text/event-stream", "text/event-stream"),
    ],
)
async def test_04_any_fitting_accept_is_answered_in_a_type_that_it_names(
    faked: Door, accept: str, kind: str
) -> None:
    body, headers = modern("tools/list")
    answer = await faked.ask(body=body, **headers, accept=accept)
    assert answer.status == 200
    assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    message = answer.json if kind == "application/json" else answer.events[0]
    assert message["result"]["tools"]


@pytest.mark.requirement("mcp.accept")
async def test_04_only_an_accept_that_fits_neither_is_406(faked: Door) -> None:
    assert (await faked.ask(body=request("tools/list"), accept="text/html, image/png")).status == 406


async def test_04_a_stream_only_client_gets_its_session_too(faked: Door) -> None:
    body = request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
    answer = await faked.ask(body=body, accept="text/event-stream")
    assert answer.events[0]["result"]["protocolVersion"] == "2025-06-18"
    assert len(answer.headers["mcp-session-id"]) == 48


@pytest.mark.requirement("mcp.notification")
@pytest.mark.parametrize(
    "method", ["notifications/initialized", "notifications/cancelled", "notifications/x", "ping"]
)
async def test_05_a_notification_is_202_with_no_byte_of_body(faked: Door, method: str) -> None:
    session = await faked.session()
    body = {"jsonrpc": "2.0", "method": method, "params": {"requestId": 99}}
    for headers in (session.headers, {}, {"mcp_protocol_version": MODERN}):
        answer = await faked.ask(body=body, **headers)
        assert (answer.status, answer.body) == (202, b"")
        assert "content-type" not in answer.headers


@pytest.mark.requirement("mcp.same-id")
@pytest.mark.parametrize("second", [1, "1"])
async def test_06_requests_with_one_id_in_flight_each_get_their_own_answer(
    door: Door, tools: Tools, second: Any
) -> None:
    session = await door.session()
    async with (
        door.open(body=waiting("a", 1), **session.headers) as first,
        door.open(body=waiting("b", second), **session.headers) as other,
    ):
        await tools.wait_entered(2)
        for mark, id, exchange in (("b", second, other), ("a", 1, first)):
            tools.finish(mark)
            with trio.fail_after(5):
                await exchange.finished.wait()
            answer = exchange.response()
            assert (answer.json["id"], answer.result["content"][0]["text"]) == (id, mark)


@pytest.mark.requirement("mcp.same-id")
async def test_06_the_same_id_in_flight_is_as_good_in_the_modern_era_and_across_sessions(
    door: Door, tools: Tools
) -> None:
    mine, theirs = await door.session(), await door.session()
    body, headers = modern("tools/call", 1, name="wait", arguments={"mark": "c"})
    async with (
        door.open(body=waiting("a", 1), **mine.headers) as first,
        door.open(body=waiting("b", 1), **theirs.headers) as second,
        door.open(body=body, **headers) as third,
        door.open(body=waiting("d", 1)) as fourth,
    ):
        await tools.wait_entered(4)
        for mark, exchange in (("d", fourth), ("b", second), ("c", third), ("a", first)):
            tools.finish(mark)
            with trio.fail_after(5):
                await exchange.finished.wait()
            assert exchange.response().result["content"][0]["text"] == mark


@pytest.mark.requirement("mcp.same-id")
async def test_07_a_cancellation_reaches_no_other_session(door: Door, tools: Tools) -> None:
    mine, theirs = await door.session(), await door.session()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with door.open(body=waiting("a", 1), **mine.headers) as exchange:
        await tools.wait_entered(1)
        assert (await door.ask(body=cancel, **theirs.headers)).status == 202
        assert (await door.ask(body=cancel)).status == 202
        assert tools.cancelled == []
        tools.finish("a")
        await exchange.finished.wait()
    assert exchange.response().result["content"][0]["text"] == "a"


@pytest.mark.requirement("mcp.ids")
@pytest.mark.parametrize(
    "id", ["null", "1.5", "1.0", "true", "{}", "[]", "9007199254740992", "-9007199254740992"]
)
async def test_08_an_id_of_a_wrong_form_is_an_invalid_request_and_no_notification(
    faked: Door, id: str
) -> None:
    session = await faked.session()
    body = f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}'.encode()
    for headers in ({}, session.headers, {"mcp_protocol_version": MODERN}):
        answer = await faked.ask(body=body, **headers)
        assert (answer.status, answer.error["code"]) == (400, -32600)


@pytest.mark.parametrize("id", [0, -1, 2**53 - 1, "", "ü", "1"])
async def test_08_a_good_id_comes_back_with_its_own_type(faked: Door, id: Any) -> None:
    answer = await faked.bare("ping", id)
    assert answer.json["id"] == id
    assert type(answer.json["id"]) is type(id)


@pytest.mark.requirement("mcp.batch")
async def test_09_a_batch_is_refused_before_anything_else(faked: Door) -> None:
    batch = [request("tools/call", name="echo"), {"jsonrpc": "2.0", "method": "x"}]
    for headers in ({}, {"mcp_protocol_version": "2025-03-26"}, {"mcp_session_id": "unknown"}):
        answer = await faked.ask(body=batch, **headers)
        assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, None)
    assert faked.broker.calls == []


async def test_10_11_14_15_no_event_is_empty_and_none_can_be_replayed(
    door: Door, autojump_clock: object
) -> None:
    session = await door.session()
    body = request("tools/call", name="count", arguments={}, _meta={"progressToken": 1})
    answer = await door.ask(body=body, **session.headers)
    lines = answer.body.decode().split("\n")
    assert all(json.loads(line[6:]) for line in lines if line.startswith("data:"))
    assert not [line for line in lines if line.startswith(("id:", "retry:"))]
    async with door.open("GET", **session.headers, last_event_id="1") as stream:
        await trio.sleep(20)
        assert all(line.startswith(":") or not line for line in stream.body.decode().split("\n"))


@pytest.mark.requirement("mcp.keep-alive")
async def test_12_every_stream_gives_a_sign_of_life_before_a_proxy_cuts_it(
    door: Door, tools: Tools, autojump_clock: object
) -> None:
    session = await door.session()
    async with (
        door.open("GET", **session.headers) as stream,
        door.open(body=waiting("a", 1), **session.headers) as call,
    ):
        await trio.sleep(60.5)
        for exchange in (stream, call):
            assert exchange.body.count(b": keep-alive\n\n") == 4
            assert b"data:" not in exchange.body
        tools.finish("a")
        await call.finished.wait()


@pytest.mark.requirement("mcp.newest-stream")
async def test_13_a_new_stream_is_never_refused_for_an_old_one(door: Door) -> None:
    session = await door.session()
    async with door.open("GET", **session.headers) as dead:
        await dead.started.wait()
        for _ in range(3):
            async with door.open("GET", **session.headers) as fresh:
                with trio.fail_after(5):
                    await fresh.started.wait()
                assert fresh.status == 200
        assert dead.finished.is_set()


@pytest.mark.requirement("mcp.cancel")
async def test_16_a_cancelled_legacy_call_stops_and_its_exchange_ends(door: Door, tools: Tools) -> None:
    session = await door.session()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}
    async with door.open(body=waiting("a", "x"), **session.headers) as exchange:
        await tools.wait_entered(1)
        assert (await door.ask(body=cancel, **session.headers)).status == 202
        with trio.fail_after(5):
            await exchange.finished.wait()
    assert tools.cancelled == ["a"]
    answer = exchange.response()
    assert (answer.status, answer.json["id"], answer.error["code"]) == (200, "x", -32800)


@pytest.mark.requirement("mcp.session-ends")
async def test_17_sessions_that_nobody_ends_are_forgotten(autojump_clock: object) -> None:
    tools = Tools()
    door = tools_door(tools, sessions=Sessions(idle_s=60))
    for _ in range(20):
        await door.session()
    busy = await door.session()
    async with door.open(body=waiting("a", 1), **busy.headers) as call:
        await trio.sleep(61)
        await door.session()
        assert door.app.sessions.statistics().sessions == 2
        tools.finish("a")
        await call.finished.wait()
    assert (await busy.ask("ping")).status == 200


@pytest.mark.requirement("mcp.session-bound")
async def test_18_a_session_belongs_to_its_principal_and_not_to_the_bytes_of_a_proof(faked: Door) -> None:
    session = await faked.session(authorization=f"Turret {proof(nonce='1')}")
    renewed = await faked.ask(
        body=request("ping"), **session.headers, authorization=f"Turret {proof(nonce='2')}"
    )
    stolen = await faked.ask(body=request("ping"), **session.headers)
    assert (renewed.status, stolen.status) == (200, 404)


@pytest.mark.requirement("mcp.handshake")
@pytest.mark.parametrize("header", ["2025-03-26", "2024-11-05", "2099-01-01", "nonsense"])
async def test_19_a_handshake_is_never_refused_for_its_header(faked: Door, header: str) -> None:
    body = request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t"})
    answer = await faked.ask(body=body, mcp_protocol_version=header)
    assert answer.result["protocolVersion"] == "2025-06-18"
    again = await faked.ask(
        body=request("ping"), mcp_session_id=answer.headers["mcp-session-id"], mcp_protocol_version="nonsense"
    )
    assert again.status == 400


async def test_20_every_error_is_json_rpc_and_echoes_the_id(faked: Door) -> None:
    body, headers = modern("server/discover", "probe")
    wrong = [
        await faked.ask(body=body),
        await faked.ask(body=body, **{**headers, "mcp_method": "x"}),
        await faked.ask(body=request("server/discover", "probe")),
        await faked.ask(body=request("server/discover", "probe"), mcp_session_id="x"),
        await faked.ask(body=body, **headers, authorization="Bearer x"),
    ]
    for answer in wrong:
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.json["jsonrpc"] == "2.0"
        assert answer.json["id"] == "probe"
        assert isinstance(answer.error["code"], int)
        assert isinstance(answer.error["message"], str)


async def test_21_a_subscription_is_refused_cleanly_where_nothing_is_pushed(door: Door) -> None:
    answer = await door.modern("subscriptions/listen", 4, notifications={})
    assert (answer.status, answer.error["code"], answer.json["id"]) == (404, -32601, 4)


@pytest.mark.requirement("mcp.listen")
async def test_21_a_listen_that_is_taken_is_answered_at_its_end_and_not_before(
    real: Door, bench: Bench, autojump_clock: object
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    wanted = {"resourceSubscriptions": [f"turret://conv/{line.conv}"]}
    for notifications in (wanted, {}, {"toolsListChanged": True}):
        body, headers = modern("subscriptions/listen", "L", notifications=notifications)
        async with real.open(body=body, **headers) as exchange:
            await trio.sleep(300)
            assert b"acknowledged" in exchange.body
            assert b"result" not in exchange.body
            assert not exchange.finished.is_set()


async def test_22_a_page_that_may_ask_is_told_what_it_may_send_and_see(faked: Door) -> None:
    allowed = Origins(allowed=("https://inspector.example",))
    guarded = Door(check_origin(faked.app, allowed, Bounds(linger_s=0.1)), faked.broker)  # type: ignore[arg-type]  # ASGI
    page = {"origin": "https://inspector.example", "host": "localhost:80"}
    preflight = await guarded.ask("OPTIONS", access_control_request_method="POST", **page)
    assert preflight.status == 204
    named = {each.strip().lower() for each in preflight.headers["access-control-allow-headers"].split(",")}
    assert {
        "authorization",
        "content-type",
        "accept",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    } <= named
    body, headers = modern("tools/list")
    answer = await guarded.ask(body=body, **headers, **page)
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "https://inspector.example"
    exposed = answer.headers["access-control-expose-headers"].lower()
    assert "mcp-session-id" in exposed
    assert "www-authenticate" in exposed
    stranger = await guarded.ask(body=body, **headers, **{**page, "origin": "https://evil.example"})
    assert stranger.status == 403


async def test_23_both_spellings_are_served_without_a_redirect(faked: Door) -> None:
    for path in ("/mcp", "/mcp/"):
        assert (await faked.modern("tools/list", path=path)).status == 200
        assert (await faked.session()).id


@pytest.mark.requirement("mcp.refusal")
async def test_25_a_refusal_fits_the_output_schema_and_its_text_says_it_all(real: Door, bench: Bench) -> None:
    schemas = {
        tool["name"]: tool["outputSchema"] for tool in (await real.modern("tools/list")).result["tools"]
    }
    for arguments, words in (({"code": "NOPE"}, "NOPE"), ({"code": 7}, "code"), ({}, "code")):
        result = (await real.modern("tools/call", name="resolve_code", arguments=arguments)).result
        jsonschema.validate(result["structuredContent"], schemas["resolve_code"])
        refusal = result["structuredContent"]["refusal"]
        text = result["content"][0]["text"]
        assert text.startswith(f"{refusal['code']}: {refusal['message']}")
        assert words in text


async def test_26_an_answer_is_always_there_as_text_too(real: Door, bench: Bench) -> None:
    for arguments in ({"code": "NOPE"}, {"code": 7}):
        result = (await real.modern("tools/call", name="resolve_code", arguments=arguments)).result
        assert json.loads(result["content"][1]["text"]) == result["structuredContent"]
        assert result["content"][0]["text"]


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [each for inner in value.values() for each in numbers(inner)]
    if isinstance(value, list):
        return [each for inner in value for each in numbers(inner)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


async def test_27_no_number_of_ours_is_beyond_what_every_reader_keeps(real: Door, bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    for name, arguments in (("wire_info", {}), ("read_conv", {"conv": line.conv})):
        result = (await real.modern("tools/call", name=name, arguments=arguments)).result
        assert all(abs(each) < 2**53 for each in numbers(result["structuredContent"]))


async def test_28_29_names_and_schemas_are_those_that_every_client_takes(real: Door) -> None:
    for tool in (await real.modern("tools/list")).result["tools"]:
        # MCP 2025-11-25, Tool Names; clients that take no dot ask for ?names=portable (mcp.names).
        assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,128}", tool["name"])
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", portable(tool["name"]))
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & {*tool["inputSchema"], *tool["outputSchema"]}


async def test_30_line_separators_are_escaped_in_json_and_in_events(faked: Door) -> None:
    arguments = {"text": "a\u2028b\u2029c ü"}
    body = request("tools/call", name="echo", arguments=arguments)
    for accept in (BOTH, "text/event-stream"):
        answer = await faked.ask(body=json.dumps(body, ensure_ascii=False).encode(), accept=accept)
        assert "charset=utf-8" in answer.headers["content-type"]
        assert b"\xe2\x80\xa8" not in answer.body
        assert b"\xe2\x80\xa9" not in answer.body
        message = answer.json if accept == BOTH else answer.events[0]
        assert message["result"]["structuredContent"] == {"echo": arguments}


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", "application/json;charset=utf8"])
async def test_30_any_spelling_of_utf8_is_read_and_another_charset_is_not(faked: Door, kind: str) -> None:
    assert (await faked.ask(body=request("ping"), content_type=kind)).status == 200
    assert (
        await faked.ask(body=request("ping"), content_type="application/json; charset=utf-16")
    ).status == 415


async def test_31_a_body_is_counted_as_it_comes_and_no_length_is_believed(faked: Door) -> None:
    answer = await faked.ask(body=b" " * 200_000, content_length="10")
    assert answer.status == 413
    assert "65536" in answer.error["message"]


async def test_32_nothing_is_promised_to_change_and_lists_say_how_long_they_keep(faked: Door) -> None:
    for method in ("tools/list", "prompts/list", "resources/list", "server/discover"):
        result = (await faked.modern(method)).result
        assert result["ttlMs"] >= 1000
        assert "listChanged" not in json.dumps(result.get("capabilities", {}))


async def test_33_what_breaks_parsers_is_a_plain_error(faked: Door) -> None:
    for value in ("[" * 30_000 + "]" * 30_000, "1" * 5_000, '"\\ud800"', '{"a":' * 5_000 + "1" + "}" * 5_000):
        body = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{value}}}}}'.encode()
        answer = await faked.ask(body=body)
        assert answer.status in (200, 400)
        assert (await faked.ask(body=value.encode())).status == 400


async def test_a_tool_that_answers_after_its_session_was_ended_harms_nobody(autojump_clock: object) -> None:
    tools = Tools()
    door = tools_door(tools)
    session = await door.session()
    async with door.open(body=waiting("a", 1), **session.headers) as call:
        await tools.wait_entered(1)
        assert (await door.ask("DELETE", **session.headers)).status == 204
        await call.finished.wait()
    assert call.response().error["code"] == -32800


async def test_a_list_of_many_tools_is_paged_and_each_tool_is_there_once() -> None:
    async def call(ask: Ask, arguments: bytes) -> Outcome:
        return text("ok")

    tools = {f"tool_{number:03}": offer(f"tool_{number:03}", call) for number in range(120)}
    broker = tools_door(Tools()).broker
    door = Door(mcp_app(broker, faces={"": Surface(tools=tools)}), broker)
    names, cursor = [], {}
    while True:
        result = (await door.modern("tools/list", **cursor)).result
        names += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            break
        cursor = {"cursor": result["nextCursor"]}
    assert names == list(tools)
