"""Whole answers, streams, silence, and clients that leave."""

from typing import Any

import pytest
import trio

from gateways.mcp import exchange as exchanges
from gateways.mcp.exchange import Answer, Http, Reply
from gateways.mcp.headers import Headers, read_accept
from tests.gateways.mcp.harness import Door, Tools, modern, request, tools_door


async def test_a_waiting_tool_that_is_quick_is_answered_as_json(door: Door, tools: Tools) -> None:
    tools.finish("a")
    answer = await door.modern("tools/call", name="wait", arguments={"mark": "a"})
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.result["content"][0]["text"] == "a"


@pytest.mark.requirement("mcp.progress")
async def test_progress_is_streamed_and_the_result_ends_the_stream(
    door: Door, autojump_clock: object
) -> None:
    call = {"name": "count", "arguments": {}, "_meta": {"progressToken": "t"}}
    for answer in (await door.modern("tools/call", 9, **call), await door.bare("tools/call", 9, **call)):
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["x-accel-buffering"] == "no"
        *steps, last = answer.events
        assert [step["method"] for step in steps] == ["notifications/progress"] * 3
        assert [step["params"]["progress"] for step in steps] == [1, 2, 3]
        assert {step["params"]["progressToken"] for step in steps} == {"t"}
        assert last["id"] == 9
        assert last["result"]["content"][0]["text"] == "counted"


@pytest.mark.requirement("mcp.progress")
async def test_a_client_that_takes_no_stream_gets_json_alone(door: Door, autojump_clock: object) -> None:
    body = request("tools/call", name="count", arguments={}, _meta={"progressToken": 1})
    answer = await door.ask(body=body, accept="application/json")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.result["content"][0]["text"] == "counted"


async def test_a_client_without_a_progress_token_is_told_nothing_early(
    door: Door, autojump_clock: object
) -> None:
    answer = await door.modern("tools/call", name="count", arguments={})
    assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.requirement("mcp.keep-alive")
async def test_silence_is_filled_with_comments_every_fifteen_seconds(
    door: Door, tools: Tools, autojump_clock: object
) -> None:
    body, headers = modern("tools/call", name="wait", arguments={"mark": "a"})
    async with door.open(body=body, **headers) as exchange:
        await trio.sleep(14.9)
        assert not exchange.started.is_set()
        await trio.sleep(30.2)
        assert exchange.body == b": keep-alive\n\n" * 3
        tools.finish("a")
        await exchange.finished.wait()
    assert [each["result"]["content"][0]["text"] for each in exchange.response().events] == ["a"]


async def test_silence_never_makes_a_stream_for_who_did_not_ask_for_one(
    door: Door, tools: Tools, autojump_clock: object
) -> None:
    async with door.open(
        body=request("tools/call", name="wait", arguments={"mark": "a"}), accept="*/*"
    ) as exchange:
        await trio.sleep(60)
        assert not exchange.started.is_set()
        tools.finish("a")
        await exchange.finished.wait()
    assert exchange.response().result["content"][0]["text"] == "a"


@pytest.mark.requirement("mcp.disconnect")
async def test_a_modern_client_that_leaves_ends_its_call_and_gets_nothing_more(
    door: Door, tools: Tools
) -> None:
    body, headers = modern("tools/call", name="wait", arguments={"mark": "a"})
    async with door.open(body=body, **headers) as exchange:
        await tools.wait_entered(1)
        exchange.leave()
    assert tools.cancelled == ["a"]
    assert not exchange.started.is_set()


@pytest.mark.requirement("mcp.disconnect")
async def test_a_legacy_client_that_leaves_ends_nothing(door: Door, tools: Tools) -> None:
    async with door.open(body=request("tools/call", name="wait", arguments={"mark": "a"})) as exchange:
        await tools.wait_entered(1)
        exchange.leave()
        await trio.testing.wait_all_tasks_blocked()
        assert tools.cancelled == []
        tools.finish("a")
        await exchange.finished.wait()


async def test_a_client_that_leaves_in_mid_stream_ends_its_call(
    door: Door, tools: Tools, autojump_clock: object
) -> None:
    body, headers = modern("tools/call", name="count", arguments={}, _meta={"progressToken": 1})
    async with door.open(body=body, **headers) as exchange:
        await exchange.wait_said(b'"progress":2')
        exchange.leave()
    assert not exchange.finished.is_set()
    assert b'"progress":3' not in exchange.body


async def test_a_client_that_takes_nothing_is_given_up_and_its_call_ended(autojump_clock: object) -> None:
    tools = Tools()
    door = tools_door(tools)
    never = trio.Event()

    async def send(message: object) -> None:
        await never.wait()

    pieces = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, object]:
        if pieces:
            return pieces.pop()
        await never.wait()
        raise AssertionError("not reached")

    body = request("tools/call", name="count", arguments={}, _meta={"progressToken": 1})
    pieces[0]["body"] = __import__("json").dumps(body).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "query_string": b"",
    }
    with trio.fail_after(60):
        await door.app(scope, receive, send)
    assert trio.current_time() >= 31


@pytest.mark.requirement("mcp.one-after-the-other")
async def test_what_several_say_at_once_goes_out_one_after_the_other(autojump_clock: object) -> None:
    said: list[bytes] = []
    under_way = 0

    async def send(message: dict[str, Any]) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1, "a message within another"
        await trio.sleep(1)
        said.append(message.get("body", b"start"))
        under_way -= 1

    async def receive() -> dict[str, Any]:
        await trio.sleep_forever()
        raise AssertionError("not reached")

    async def work(notify: exchanges.Notify | None) -> Answer:
        assert notify is not None
        async with trio.open_nursery() as nursery:
            for each in (b"1", b"2", b"3"):
                nursery.start_soon(notify, each)
        return Answer(200, b"4")

    accept = read_accept("text/event-stream, application/json")
    http = Http(scope={}, head=Headers([]), accept=accept, receive=receive, reply=Reply(send, accept))
    await exchanges.run(work, http, ends_with_client=True, keep_alive_s=2.5)
    assert said.count(b"start") == 1
    events = [each.partition(b"data: ")[2].strip() for each in said if b"data: " in each]
    assert (sorted(events[:3]), events[3:]) == ([b"1", b"2", b"3"], [b"4"])
