"""Every tool × every caller, over every door: what each is told."""

import json
from typing import Any

import httpx
import pytest

from broker.app import AREAS
from broker.tools.registry import Tool, collect
from gateways.mcp.revisions import MODERN
from tests.gateways.mcp.harness import modern
from tests.isolation.rows import ROWS, Row
from tests.isolation.world import WHO, World, client_of, open_world
from tests.support.ws import open_session

assert AREAS
TOOLS = collect()


@pytest.mark.requirement("isolation.every-tool")
def test_every_tool_has_a_row_and_every_row_a_tool() -> None:
    assert sorted(set(TOOLS) ^ set(ROWS)) == []


@pytest.mark.requirement("isolation.every-tool")
def test_a_row_says_of_a_tool_for_tokens_what_the_registry_makes_sure_of() -> None:
    for name, tool in TOOLS.items():
        row = ROWS[name]
        if tool.scope is not None:
            assert (row.nobody, row.scopeless) == ("unauthenticated", "insufficient_scope"), name
            assert row.owner == ("agent_required" if tool.agent else row.owner), name
        assert (row.suspended, row.expired) == ("suspended", "unauthenticated"), name


@pytest.mark.requirement("isolation.every-tool")
def test_a_tool_that_takes_an_id_of_anothers_thing_says_what_a_missing_one_is() -> None:
    things = {
        "request_id",
        "agreement_id",
        "message_ids",
        "channel_id",
        "conv",
        "kid",
        "resource_id",
        "task_id",
        "session_id",
    }
    for name, tool in TOOLS.items():
        if things & set(tool.params) and name not in ("send_env",):
            assert ROWS[name].foreign is not None, name


def expected(row: Row) -> dict[str, str]:
    return {who: getattr(row, who) for who in WHO}


@pytest.mark.requirement("isolation.every-tool", "doors.plain")
@pytest.mark.parametrize("door", ["v1", "mcp", "ws"])
async def test_every_caller_is_told_what_the_table_says(door: str) -> None:
    wrong = {}
    async with open_world() as world, client_of(world) as client:
        for name, row in ROWS.items():
            for who in WHO:
                if door == "ws":
                    told = await over_ws(world, TOOLS[name], row, who)
                else:
                    told = await (over_v1 if door == "v1" else over_mcp)(client, world, TOOLS[name], row, who)
                if told != getattr(row, who):
                    wrong[name, who] = told
    assert wrong == {}


def authorization(world: World, tool: Tool, who: str) -> dict[str, str]:
    token = world.shown(who, tool.scope, tool.also)
    return {"authorization": f"Bearer {token}"} if token is not None else {}


async def over_v1(client: httpx.AsyncClient, world: World, tool: Tool, row: Row, who: str) -> str:
    """Plain HTTP: the code, and that status and challenge fit it."""
    answer = await client.post(
        f"/v1/{tool.name}", json=row.params(world), headers=authorization(world, tool, who)
    )
    body = answer.json()
    if answer.status_code == 200:
        return "accepted"
    refusal = body["refusal"]
    assert refusal["status"] == answer.status_code
    ways = answer.headers.get_list("www-authenticate")
    asks = refusal["status"] == 401 or refusal["code"] == "insufficient_scope"
    assert bool(ways) == asks
    assert not ways or ways[0].startswith("Bearer resource_metadata=")
    return str(refusal["code"])


async def over_mcp(client: httpx.AsyncClient, world: World, tool: Tool, row: Row, who: str) -> str:
    """The open face, in the era without a handshake: 401 and 403 by status, all else as a result."""
    body, named = modern("tools/call", name=tool.name, arguments=row.params(world))
    headers = {each.replace("_", "-"): value for each, value in named.items()}
    assert headers["mcp-protocol-version"] == MODERN
    accept = {"accept": "application/json", "content-type": "application/json"}
    shown = authorization(world, tool, who)
    answer = await client.post("/mcp", content=json.dumps(body), headers={**accept, **headers, **shown})
    told = answer.json()
    if answer.status_code == 200:
        result = told["result"]
        return str(result["structuredContent"]["refusal"]["code"]) if result["isError"] else "accepted"
    assert answer.status_code in (401, 403)
    assert ("www-authenticate" in answer.headers) == (told["error"]["data"]["code"] != "suspended")
    return str(told["error"]["data"]["code"])


async def over_ws(world: World, tool: Tool, row: Row, who: str) -> str:
    """A connection that bears the token, if it is let in with it."""
    async with open_session(world.bench.broker, bearing=world.gate.admit) as peer:
        try:
            token = world.shown(who, tool.scope, tool.also)
            if token is not None:
                told: Any = await peer.ask("authenticate", token=token)
                if "error" in told:
                    return str(told["error"]["data"]["code"])
            told = await peer.ask(tool.name, **row.params(world))
            if "result" in told:
                return "accepted"
            data = told["error"]["data"]
            return str(data.get("refusal", data)["code"])
        finally:
            peer.session.close()
