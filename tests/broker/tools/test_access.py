"""Who may call a tool of the network, in the order of the answers."""

from collections.abc import Iterator

import msgspec
import pytest

from broker.actors.standing import Facts
from broker.tools import registry
from broker.tools.access import me
from broker.tools.context import Caller, Context
from broker.tools.registry import tool
from tests.support.agents import make_agent, owner_caller
from tests.support.broker import Bench, code


@pytest.fixture
def echo() -> Iterator[registry.Tool]:
    async def echo_agent(context: Context, text: str) -> dict[str, str]:
        """Says who calls."""
        return {"agent": me(context), "text": text}

    tool(face="signin", title="Echo", scope="message")(echo_agent)
    yield registry._TOOLS["signin", "echo_agent"]
    del registry._TOOLS["signin", "echo_agent"]


@pytest.mark.requirement("network.access")
async def test_a_tool_of_two_faces_takes_the_scope_of_either(bench: Bench) -> None:
    caller = await make_agent(bench, "alice")
    told = {}
    for scope in ("profile", "arena", "message"):
        scoped = msgspec.structs.replace(caller, scopes=frozenset({scope}))
        told[scope] = code(await bench.call("get_agent", scoped, agent_id=caller.agent))
    assert told == {"profile": "accepted", "arena": "accepted", "message": "insufficient_scope"}


@pytest.mark.requirement("network.access")
async def test_token_standing_scope_and_agent_come_before_the_params(
    bench: Bench, echo: registry.Tool
) -> None:
    caller = await make_agent(bench, "alice")
    services = bench.broker._services
    services.standing.told("ow_1", Facts())
    owner = owner_caller(bench, "ow_1")
    unscoped = Caller(principal=caller.agent, agent=caller.agent, issued=bench.ts)
    stale = Caller(principal="ag_missing", agent="ag_missing", issued=bench.ts)
    for who, expect in (
        (Caller(), "unauthenticated"),
        (stale, "unauthenticated"),
        (unscoped, "insufficient_scope"),
        (owner, "agent_required"),
        (caller, "bad_request"),
    ):
        refused = await echo.run(Context(who, services), b"{}")
        assert code(refused) == expect
        assert ("on a WebSocket" in refused.message) is (who == Caller()), "where a token goes, at each door"
    assert await echo.run(Context(caller, services), b'{"text":"x"}') == {"agent": caller.agent, "text": "x"}
