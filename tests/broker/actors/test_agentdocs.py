"""What is stored of agents, read back."""

import pytest

from broker.actors.agentdocs import (
    KeyRow,
    facts_of,
    find_claim,
    put_key,
    read_agent,
    read_all_facts,
    read_facts,
)
from broker.core.agent import AgentRow, Key, Suspension
from broker.core.claim import ENTROPY, new_code, read_code
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.broker import Bench, open_bench


@pytest.mark.requirement("network.agent-stream")
async def test_after_a_restart_keys_are_known_to_be_its_own() -> None:
    store, key = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store) as bench:
        caller = await make_agent(bench, "alice", key=key)
    async with open_bench(store=store) as bench:
        assert bench.broker._services.standing.holder(key.pk) == caller.agent
        assert [each async for each, _ in read_all_facts(store)] == [caller.agent]


def test_facts_of_a_row_are_its_keys_its_end_and_its_suspension() -> None:
    row = AgentRow(
        "ag_1", "a", "unclaimed", 1, keys=(Key("k", "ab", 1),), suspended=Suspension(1, "spam"), expires_at=9
    )
    facts = facts_of(row)
    assert (facts.kids, facts.pks, facts.suspended, facts.gone, facts.ends_at) == (
        frozenset("k"),
        frozenset({"ab"}),
        True,
        False,
        9,
    )


@pytest.mark.requirement("identity.gone")
async def test_an_agent_is_read_until_the_very_end_of_its_time(bench: Bench) -> None:
    over, kept = bench.clock.now_ms() + 1000, read_code(new_code(bytes(ENTROPY)))
    assert kept is not None
    ann = await make_agent(bench, "Ann", tier="unclaimed", claim=kept, expires_at=over)
    assert ann.agent is not None
    for now, there in ((over - 1, True), (over, False)):
        assert (await read_agent(bench.store, ann.agent, now) is not None) is there
        assert (await find_claim(bench.store, kept, now) is not None) is there
    assert await read_agent(bench.store, "ag_none", 0) is None
    assert await read_facts(bench.store, "ag_none") is None


def test_a_key_is_found_by_its_agent_and_by_its_name() -> None:
    put = put_key(KeyRow("ab", "k", "ag_1", 1), 3)
    assert (put.kind, put.id, put.expect, put.index) == ("key", "ab", 3, (("agent", "ag_1"), ("kid", "k")))
