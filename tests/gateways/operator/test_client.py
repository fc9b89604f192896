"""The official MCP client at the operators' port, over real sockets, in both eras."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.gateways.mcp.test_clients import MODES
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.network import Served
from tests.support.operators import BEARER

# The client leaves its response iterators to the garbage collector; nothing of ours.
pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


@pytest.mark.requirement("operator.endpoint")
@pytest.mark.parametrize("mode", MODES)
async def test_an_operators_client_suspends_an_agent_and_restores_it(
    port: Served, bench: Bench, mode: str
) -> None:
    ann = await make_agent(bench, "ann")
    given: dict[str, Any] = {"agent_id": ann.agent}
    with trio.fail_after(20):
        async with (
            create_mcp_http_client(BEARER) as http,
            Client(streamable_http_client(f"{port.url}/mcp", http_client=http), mode=mode) as client,
        ):
            tools = await client.list_tools()
            assert [tool.name for tool in tools.tools] == list(bench.broker.operator_tools)
            done = await client.call_tool("suspend_agent", {**given, "reason": "spam"})
            assert not done.is_error, done
            assert code(await bench.call("whoami", ann)) == "suspended"
            refused = await client.call_tool("suspend_agent", {"agent_id": "ag_" + "0" * 26, "reason": "x"})
            assert refused.structured_content is not None
            assert refused.structured_content["refusal"]["code"] == "not_found"
            assert not (await client.call_tool("unsuspend_agent", given)).is_error
    assert (await bench.call("whoami", ann))["agent_id"] == ann.agent
