"""An agent's actor, and what its keys' desks hear."""

import json

import pytest
import trio

from broker.actors.agent import facts_of, read_all_facts
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.broker import Bench, Party, open_bench


async def opened(bench: Bench, code: str, key: SigningKey) -> Party:
    party = Party(code, key)
    await bench.call("open_desk", **party.statement("open_desk", bench.broker.pk, bench.ts, code=code))
    return party


@pytest.mark.requirement("network.agent-stream")
async def test_what_its_keys_desk_gets_stands_on_the_agents_stream_too(bench: Bench) -> None:
    key = SigningKey.generate()
    caller = await make_agent(bench, "alice", key=key)
    mine, other = await opened(bench, "ALFA", key), await bench.open("BRAV")
    reader = await bench.broker.follow(caller, after="0")
    line = await bench.dial(other, mine)
    assert await line.send("PICKUP") is not None
    async with reader:
        with trio.fail_after(5):
            seen = []
            while len(seen) < 2:
                seen += [
                    (each.kind, each.own, json.loads(each.params)["n"]) for each in await reader.receive()
                ]
    assert seen == [("ring", False, 0), ("env", True, 1)]


@pytest.mark.requirement("network.agent-stream")
async def test_after_a_restart_keys_are_known_to_be_its_own() -> None:
    store, key = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store) as bench:
        caller = await make_agent(bench, "alice", key=key)
    async with open_bench(store=store) as bench:
        assert bench.broker._services.standing.holder(key.pk) == caller.agent
        assert [each async for each, _ in read_all_facts(store)] == [caller.agent]


@pytest.mark.requirement("network.agent-stream")
async def test_a_token_follows_its_agents_desk_by_code_and_no_other(bench: Bench) -> None:
    key = SigningKey.generate()
    caller = await make_agent(bench, "alice", key=key)
    await opened(bench, "ALFA", key)
    await bench.open("BRAV")
    reader = await bench.broker.follow(caller, code="ALFA")
    reader.close()
    refused = await bench.broker.follow(caller, code="BRAV")
    assert refused.code == "not_a_party"


def test_facts_of_a_row_are_its_keys_and_its_suspension() -> None:
    from broker.core.agent import AgentRow, Key, Suspension

    row = AgentRow("ag_1", "a", "standard", 1, keys=(Key("k", "ab", 1),), suspended=Suspension(1, "spam"))
    facts = facts_of(row)
    assert (facts.kids, facts.pks, facts.suspended, facts.gone) == (
        frozenset("k"),
        frozenset({"ab"}),
        True,
        False,
    )
