"""What is listed, and under which names it is called."""

import json

import pytest

from gateways.mcp.catalogue import Catalogue
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.listing import portable
from gateways.mcp.surface import Ask, Outcome, Surface, ToolOffer
from tests.gateways.mcp.harness import Door, fake_broker, offer, text

NAMES = ("kestrel.session.open", "send_env")


def named(name: str) -> ToolOffer:
    async def call(ask: Ask, arguments: bytes) -> Outcome:
        return text(name)

    return offer(name, call)


@pytest.fixture
def dotted() -> Door:
    broker = fake_broker()
    return Door(mcp_app(broker, faces={"": Surface(tools={name: named(name) for name in NAMES})}), broker)


async def listed(door: Door, query: bytes) -> list[str]:
    door.query = query
    return [tool["name"] for tool in (await door.modern("tools/list")).result["tools"]]


@pytest.mark.requirement("mcp.names")
async def test_names_are_listed_as_they_are_and_without_dots_where_that_is_asked_for(dotted: Door) -> None:
    assert await listed(dotted, b"") == [*NAMES]
    assert await listed(dotted, b"names=dotted&x=1") == [*NAMES]
    assert await listed(dotted, b"x=%zz&names=portable") == ["kestrel_session_open", "send_env"]


@pytest.mark.requirement("mcp.names")
@pytest.mark.parametrize("query", [b"", b"names=portable"])
async def test_a_dotted_tool_answers_to_both_spellings(dotted: Door, query: bytes) -> None:
    dotted.query = query
    for name in ("kestrel.session.open", "kestrel_session_open"):
        result = (await dotted.modern("tools/call", name=name)).result
        assert result["content"][0]["text"] == "kestrel.session.open"
    for name in ("send.env", "kestrel.session_open", "kestrel"):
        assert (await dotted.modern("tools/call", name=name)).error["code"] == -32602


def test_of_two_tools_whose_portable_names_are_one_each_keeps_its_own() -> None:
    surface = Surface(tools={"a.b": named("a.b"), "a_b": named("a_b")})
    found = Catalogue.of(surface, str)
    assert found.tools["a_b"].descriptor["name"] == "a_b"
    assert found.tools["a.b"].descriptor["name"] == "a.b"


def test_the_descriptor_that_was_given_keeps_its_name() -> None:
    surface = Surface(tools={"a.b": named("a.b")})
    page = Catalogue.of(surface, portable).pages["tools/list"].page(None)
    assert isinstance(page, dict)
    assert json.loads(bytes(page["tools"][0]))["name"] == "a_b"
    assert surface.tools["a.b"].descriptor["name"] == "a.b"
