"""What tools look up of agents."""

from pathlib import Path

import pytest

from broker.store.sqlite import SqliteStore
from broker.tools import agents
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench
from tests.support.signin import new_owner


async def test_a_call_looks_at_so_many_and_leads_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.tools.paging.LOOKED_AT", 3)
    services = bench.broker._services
    for n in range(4):
        await make_agent(bench, f"agent {n}")
    found = await agents.page(services, ("all", "1"), lambda row: row.name.endswith(" 3"), 5, None)
    assert not isinstance(found, Refusal)
    assert found.rows == []
    assert found.next is not None
    found = await agents.page(services, ("all", "1"), lambda row: row.name.endswith(" 3"), 5, found.next)
    assert not isinstance(found, Refusal)
    assert [row.name for row in found.rows] == ["agent 3"]
    assert found.next is None


async def test_a_cursor_that_nobody_gave_leads_nowhere(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store) as bench:
        await make_agent(bench, "Ann", public=True)
        assert await bench.call("search_directory", after="public-" + "9" * 18) == {"agents": []}
        assert code(await bench.call("search_directory", after="public-" + "9" * 19)) == "bad_request"
        assert len((await bench.call("search_directory", after="public-0"))["agents"]) == 1
    await store.aclose()


@pytest.mark.requirement("identity.gone")
async def test_suspended_agents_live_and_are_not_seen(bench: Bench) -> None:
    services = bench.broker._services
    ann = await make_agent(bench, "Ann")
    assert ann.agent is not None
    assert await agents.seen(services, ann.agent) is not None
    await bench.call("suspend_agent", type(ann)(operator=True), agent_id=ann.agent, reason="x")
    assert await agents.seen(services, ann.agent) is None
    assert await agents.find(services, ann.agent) is not None


async def test_an_agent_is_found_while_it_lives_and_as_its_owners_alone(bench: Bench) -> None:
    services = bench.broker._services
    owner = await new_owner(bench)
    caller = await make_agent(bench, "short", owner_id=owner, expires_at=bench.clock.now_ms() + 60_000)
    assert caller.agent is not None
    assert await agents.find(services, caller.agent) is not None
    assert await agents.find(services, caller.agent, owner) is not None
    assert await agents.find(services, caller.agent, await new_owner(bench)) is None
    bench.clock.step(60_000)
    assert await agents.find(services, caller.agent) is None
    assert await agents.find(services, "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV") is None
