"""What a tool answers fits the schema that it shows: strict clients throw away what does not (mcp.client does)."""

from typing import Any

import jsonschema
import pytest

from broker.tools.registry import collect
from broker.wire.refusals import Refusal
from tests.isolation.rows import ROWS
from tests.isolation.world import open_world
from tests.support.agents import make_agent


@pytest.mark.requirement("mcp.official-client")
async def test_every_answer_fits_the_schema_that_its_tool_shows() -> None:
    fitted = set()
    async with open_world() as world:
        ends = world.bench.clock.now_ms() + 86_400_000
        world.people["young"] = await make_agent(world.bench, "Young", tier="unclaimed", expires_at=ends)
        for who in ("alice", "bob", "erin", "carol", "young"):
            for name, tool in collect().items():
                more: dict[str, Any] = {"include_inactive": True} if name == "list_agreements" else {}
                params = {**ROWS[name].params(world), **more}
                answer = await world.bench.call(name, world.people[who], **params)
                if not isinstance(answer, Refusal):
                    jsonschema.validate(answer, tool.output_schema)
                    fitted.add(name)
    assert {"get_inbox", "get_onboarding_status", "list_agreements", "get_channel_history"} <= fitted
