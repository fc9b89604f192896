"""The official client on the trials' face of a served broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.gateways.mcp.test_clients import serving
from tests.isolation.world import CountingStore, World
from tests.support.agents import make_agent
from tests.support.broker import Bench, open_bench


@asynccontextmanager
async def connected(mode: str) -> AsyncIterator[tuple[Client, Bench]]:
    """The client, with an agent's token, and the broker that it speaks to."""
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
