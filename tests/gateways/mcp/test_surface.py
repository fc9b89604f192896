"""What a request can tell its client while it is under way: progress and log messages."""

import json
from typing import Any

import pytest
import trio

from broker.app import Caller
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.surface import Ask, Outcome, Surface
from tests.gateways.mcp.harness import Door, fake_broker, modern, offer, request, text

LEVEL = "io.modelcontextprotocol/logLevel"


class Told:
    """A client's ear."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def __call__(self, message: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.messages.append(json.loads(message))

    def ask(self, **members: Any) -> Ask:
        return Ask(
            caller=Caller(), revision="2026-07-28", meta=members.pop("meta", {}), notify=self, **members
        )


async def test_progress_carries_the_clients_own_token_and_grows_as_told() -> None:
    told = Told()
    for token in (7, "t"):
        await told.ask(meta={"progressToken": token}).progress(1.5, "half", total=3)
    await told.ask(meta={"progressToken": 7}).progress(2, "more")
    assert [each["params"] for each in told.messages] == [
        {"progressToken": 7, "progress": 1.5, "message": "half", "total": 3},
        {"progressToken": "t", "progress": 1.5, "message": "half", "total": 3},
        {"progressToken": 7, "progress": 2, "message": "more"},
    ]


async def test_a_client_that_did_not_ask_or_takes_no_stream_is_told_nothing() -> None:
    told = Told()
    await told.ask().progress(1, "x")
    await told.ask(meta={"progressToken": True}).progress(1, "x")
    await told.ask().log("emergency", "x")
    deaf = Ask(caller=Caller(), revision="2026-07-28", meta={"progressToken": 1}, log_level="debug")
    await deaf.progress(1, "x")
    await deaf.log("error", "x")
    assert told.messages == []


@pytest.mark.requirement("mcp.logging")
async def test_messages_below_the_wanted_level_are_kept_back() -> None:
    told = Told()
    ask = told.ask(log_level="warning")
    for level in ("debug", "info", "notice", "warning", "error", "emergency"):
        await ask.log(level, {"at": level}, "desk")
    assert [each["params"]["level"] for each in told.messages] == ["warning", "error", "emergency"]
    assert told.messages[0] == {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "warning", "logger": "desk", "data": {"at": "warning"}},
    }


@pytest.fixture
def chatty() -> Door:
    async def call(ask: Ask, arguments: bytes) -> Outcome:
        for level in ("debug", "info", "error"):
            await ask.log(level, level)
        return text("done")

    broker = fake_broker()
    surface = Surface(tools={"chat": offer("chat", call, waits=True)}, logs=True)
    return Door(mcp_app(broker, faces={"": surface}), broker)


def levels(answer: Any) -> list[str]:
    if answer.headers["content-type"].startswith("application/json"):
        return []
    return [each["params"]["level"] for each in answer.events if "method" in each]


@pytest.mark.requirement("mcp.logging")
async def test_a_modern_request_says_itself_whether_it_wants_to_be_told(chatty: Door) -> None:
    for level, heard in ((None, []), ("debug", ["debug", "info", "error"]), ("error", ["error"])):
        meta = {} if level is None else {LEVEL: level}
        body, headers = modern("tools/call", name="chat", _meta=meta)
        assert levels(await chatty.ask(body=body, **headers)) == heard
    answer = await chatty.modern("tools/call", name="chat", _meta={LEVEL: "loud"})
    assert (answer.status, answer.error["code"]) == (400, -32602)
    assert "logging" in (await chatty.modern("server/discover")).result["capabilities"]


@pytest.mark.requirement("mcp.logging")
async def test_a_session_hears_from_info_on_until_it_sets_another_level(chatty: Door) -> None:
    session = await chatty.session()
    body = request("tools/call", name="chat")
    assert levels(await chatty.ask(body=body, **session.headers)) == ["info", "error"]
    assert (await session.ask("logging/setLevel", level="error")).result == {}
    assert levels(await chatty.ask(body=body, **session.headers)) == ["error"]
    for level in ("loud", 7, None, ["info"]):
        assert (await session.ask("logging/setLevel", level=level)).error["code"] == -32602
    assert (await session.ask("logging/setLevel")).error["code"] == -32602
    assert (await chatty.bare("logging/setLevel", level="info")).error["code"] == -32600


@pytest.mark.requirement("mcp.logging")
async def test_a_face_without_messages_has_no_level_to_set(door: Door) -> None:
    session = await door.session()
    assert (await session.ask("logging/setLevel", level="info")).error["code"] == -32601
