"""Lists that change, and who hears of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from gateways.mcp.endpoint import mcp_app
from gateways.mcp.lists import Lists
from gateways.mcp.surface import Ask, Outcome, PromptOffer, Surface, ToolOffer
from tests.gateways.mcp.harness import Door, Exchange, fake_broker, modern, offer, text

KEY = "io.modelcontextprotocol/subscriptionId"


class Changing:
    """A face whose tools change when the test says so."""

    def __init__(self, *kinds: str) -> None:
        async def get(ask: Ask, arguments: dict[str, str]) -> Outcome:
            return {"messages": []}

        self.lists = Lists(kinds)
        self.tools: dict[str, ToolOffer] = {}
        self.add("first")
        prompt = PromptOffer(descriptor={"name": "p", "description": "p"}, get=get)
        surface = Surface(tools=self.tools, prompts={"p": prompt}, lists=self.lists)
        broker = fake_broker()
        self.door = Door(mcp_app(broker, faces={"": surface}), broker)

    def add(self, name: str) -> None:
        async def call(ask: Ask, arguments: bytes) -> Outcome:
            return text(name)

        self.tools[name] = offer(name, call)


@asynccontextmanager
async def listening(door: Door, **notifications: bool) -> AsyncIterator[Exchange]:
    body, headers = modern("subscriptions/listen", "L", notifications=notifications)
    async with door.open(body=body, **headers) as exchange:
        with trio.fail_after(5):
            await exchange.wait_said(b"acknowledged")
        yield exchange


@pytest.mark.requirement("mcp.list-changed")
async def test_a_list_that_changes_is_announced_and_listed_as_it_is_now() -> None:
    changing = Changing("tools")
    async with listening(changing.door, toolsListChanged=True, promptsListChanged=True) as exchange:
        changing.add("second")
        changing.lists.changed("tools")
        with trio.fail_after(5):
            await exchange.wait_said(b"tools/list_changed")
    first, *rest = exchange.response().events
    assert first["params"]["notifications"] == {"toolsListChanged": True}  # prompts were said not to change
    assert [each["method"] for each in rest] == ["notifications/tools/list_changed"]
    assert rest[0]["params"]["_meta"] == {KEY: "L"}
    tools = (await changing.door.modern("tools/list")).result["tools"]
    assert [tool["name"] for tool in tools] == ["first", "second"]
    assert (await changing.door.modern("tools/call", name="second")).result["content"][0]["text"] == "second"


@pytest.mark.requirement("mcp.list-changed")
async def test_nobody_hears_of_a_list_that_was_not_asked_for(autojump_clock: object) -> None:
    changing = Changing("tools", "prompts")
    async with listening(changing.door, promptsListChanged=True, toolsListChanged=False) as exchange:
        changing.lists.changed("tools")
        await trio.sleep(5)
        changing.lists.changed("prompts")
        await exchange.wait_said(b"prompts/list_changed")
    assert exchange.body.count(b"list_changed") == 1


@pytest.mark.requirement("mcp.list-changed")
async def test_a_session_hears_on_its_stream() -> None:
    changing = Changing("tools")
    session = await changing.door.session()
    async with changing.door.open("GET", **session.headers) as stream:
        await stream.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        changing.lists.changed("tools")
        with trio.fail_after(5):
            await stream.wait_said(b'"method":"notifications/tools/list_changed"')


@pytest.mark.requirement("mcp.list-changed")
async def test_only_lists_that_may_change_are_declared_to() -> None:
    changing = Changing("tools", "resources")
    declared = (await changing.door.modern("server/discover")).result["capabilities"]
    assert declared == {"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": True}}
    with pytest.raises(LookupError):
        changing.lists.changed("prompts")


async def test_changes_that_nobody_waited_for_are_told_once(autojump_clock: object) -> None:
    lists = Lists()
    async with lists.watch("tools") as updates:
        for _ in range(3):
            lists.changed("tools")
        lists.changed("prompts")
        assert await updates.changed()
        with trio.move_on_after(1) as waited:
            await updates.changed()
        assert waited.cancelled_caught
    lists.changed("tools")
    assert lists.version == 5
