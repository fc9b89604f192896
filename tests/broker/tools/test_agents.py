"""What tools look up of agents."""

import pytest

from broker.tools import agents
from tests.support.agents import make_agent
from tests.support.broker import Bench


async def test_a_call_looks_at_so_many_and_leads_on(bench: Bench) -> None:
    services = bench.broker._services
    for n in range(agents.LOOKED_AT + 1):
        await make_agent(bench, f"agent {n}")
    found = await agents.page(services, ("all", "1"), lambda row: row.name.endswith(" 500"), 5, None)
    assert found.rows == []
    assert found.next is not None
    found = await agents.page(services, ("all", "1"), lambda row: row.name.endswith(" 500"), 5, found.next)
    assert [row.name for row in found.rows] == ["agent 500"]
    assert found.next is None


@pytest.mark.requirement("identity.gone")
async def test_suspended_agents_live_and_are_not_seen(bench: Bench) -> None:
    services = bench.broker._services
    ann = await make_agent(bench, "Ann")
    assert ann.agent is not None
    assert await agents.seen(services, ann.agent) is not None
    await bench.call("suspend_agent", type(ann)(operator=True), agent_id=ann.agent, reason="x")
    assert await agents.seen(services, ann.agent) is None
    assert await agents.find(services, ann.agent) is not None
