"""kestrel.grade over a socket, by the official client: grades, progress, a refusal and a fault in three shapes."""

import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from tests.gateways.mcp.test_clients import MODES, serving
from tests.isolation.world import CountingStore, World
from tests.support.agents import make_agent
from tests.support.broker import Bench, open_bench
from tests.support.trials import changed, market, publish, trial

pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
CONTENT = trial(*market(ticks=600))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


@asynccontextmanager
async def connected(mode: str) -> AsyncIterator[tuple[Client, Bench]]:
    """The official client with an agent's token, on the trials' face of a served broker."""
    store = CountingStore()
    async with open_bench(store=store) as bench:
        world = World(bench, store)
        world.people["ann"] = await make_agent(bench, "Ann")
        http = create_mcp_http_client({"authorization": f"Bearer {world.token('ann')}"})
        with trio.fail_after(20):
            async with (
                serving(world.mcp) as url,
                http,
                Client(streamable_http_client(f"{url}/trial", http_client=http), mode=mode) as client,
            ):
                yield client, bench


@pytest.mark.requirement("trial.grade-tool", "mcp.official-client")
@pytest.mark.parametrize("mode", MODES)
async def test_grades_progress_a_refusal_and_a_fault(mode: str) -> None:
    told: list[dict[str, int]] = []

    async def progress(step: float, total: float | None, message: str | None) -> None:
        told.append(json.loads(message or ""))

    async with connected(mode) as (client, bench):
        ref = await publish(bench, CONTENT)
        answer = await client.call_tool("kestrel.grade", {"ref": ref}, progress_callback=progress)
        found = answer.structured_content
        assert found is not None
        assert (answer.is_error, found["outcome"], found["grades"]["ticks"]) == (False, "DONE", 600)
        assert "untrusted" not in found
        sentence = answer.content[0].text  # type: ignore[union-attr]
        assert f"profit and loss {found['grades']['pnl']} millionths" in sentence
        assert told[-1]["of"] == 1_200
        assert told[-1]["ticks"] > 1_000
        other = await publish(bench, changed(CONTENT, "result", "pnl", to=1))
        for given, code in ((other, "NOT_GRADABLE"), ("0" * 64, "NOT_FOUND"), ("nothing", "bad_request")):
            refused = await client.call_tool("kestrel.grade", {"ref": given})
            assert refused.is_error
            assert refused.structured_content is not None
            assert refused.structured_content["refusal"]["code"] == code
        with pytest.raises(MCPError):
            await client.call_tool("kestrel.grades", {"ref": ref})
