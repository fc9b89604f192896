"""Doors for the MCP tests: over tools that do as they are told, over the fake broker, over the real one."""

from collections.abc import AsyncIterator

import pytest

from gateways.mcp.endpoint import mcp_app
from tests.gateways.mcp.harness import Door, Tools, fake_broker, tools_door
from tests.support.broker import Bench, open_bench


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def door(tools: Tools) -> Door:
    """An endpoint whose only face has the tools of `tools`."""
    return tools_door(tools)


@pytest.fixture
def faked() -> Door:
    """An endpoint over the fake broker's registry."""
    broker = fake_broker()
    return Door(mcp_app(broker), broker)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as found:
        yield found


@pytest.fixture
def real(bench: Bench) -> Door:
    """An endpoint over a real broker in this process."""
    return Door(mcp_app(bench.broker), bench.broker)
