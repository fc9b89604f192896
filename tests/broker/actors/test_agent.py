"""An agent's actor, and what its keys' desks hear."""

import json
from typing import Any

import pytest
import trio

from broker.actors.agent import Claim, Create, SetPolicy
from broker.actors.agentdocs import find_claim, read_keys
from broker.core.agent import DAY_MS, AgentRow, Key
from broker.core.claim import ENTROPY, new_code, read_code
from broker.core.conversation import DUE
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Unavailable
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.broker import Bench, Party, code, open_bench


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
async def test_a_token_follows_its_agents_desk_by_code_and_no_other(bench: Bench) -> None:
    key = SigningKey.generate()
    caller = await make_agent(bench, "alice", key=key)
    await opened(bench, "ALFA", key)
    await bench.open("BRAV")
    reader = await bench.broker.follow(caller, code="ALFA")
    reader.close()
    refused = await bench.broker.follow(caller, code="BRAV")
    assert refused.code == "not_a_party"


async def ask(bench: Bench, agent_id: str | None, command: Any) -> Any:
    assert agent_id is not None
    return await bench.broker._services.house.ask("agent", agent_id, command)


@pytest.mark.requirement("identity.looks")
@pytest.mark.parametrize("what", ["name", "key"])
async def test_of_many_at_once_one_gets_the_name_and_one_the_key(bench: Bench, what: str) -> None:
    services, key = bench.broker._services, SigningKey.generate()
    answers: list[str] = []

    async def create(n: int) -> None:
        name = "Ann" if what == "name" else f"Ann {n}"
        keys = () if what == "name" else (Key("kid", key.pk, 1),)
        row = AgentRow(services.new_id("ag_"), name, "standard", 1, keys=keys)
        answers.append(code(await ask(bench, row.agent_id, Create(row, None))))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for n in range(8):
                nursery.start_soon(create, n)
    assert sorted(answers) == ["accepted"] + ["already_exists"] * 7


@pytest.mark.requirement("identity.gone")
async def test_an_agent_that_is_over_takes_no_key_back_when_it_is_read_again(bench: Bench) -> None:
    key = SigningKey.generate()
    ends = bench.clock.now_ms() + 7 * DAY_MS
    old = await make_agent(bench, "Ann", key=key, tier="unclaimed", expires_at=ends)
    bench.clock.step(7 * DAY_MS)
    new = await make_agent(bench, "Ann", key=key)
    services = bench.broker._services
    services.house.alive("agent", str(old.agent)).leave()  # type: ignore[union-attr]  # it is alive
    await trio.testing.wait_all_tasks_blocked()
    await ask(bench, old.agent, DUE)
    assert services.standing.holder(key.pk) == new.agent


@pytest.mark.requirement("identity.claim")
async def test_a_claim_in_doubt_is_settled_by_what_was_written(bench: Bench) -> None:
    shown = new_code(bytes(ENTROPY))
    kept = read_code(shown)
    assert kept is not None
    over = bench.clock.now_ms() + 1000
    ann = await make_agent(bench, "Ann", tier="unclaimed", claim=kept, expires_at=over)
    assert await find_claim(bench.store, kept, bench.clock.now_ms()) is not None
    assert await find_claim(bench.store, kept, over) is None
    assert isinstance(bench.store, MemoryStore)
    assert (
        code(await ask(bench, ann.agent, Claim("ow_1", "00" * 32))) == "not_found"
    )  # it was renewed meanwhile
    bench.store.gate.fail_next(InDoubt(), applied=True)
    assert code(await ask(bench, ann.agent, Claim("ow_1", kept.digest))) == "in_doubt"
    assert code(await ask(bench, ann.agent, Claim("ow_1", kept.digest))) == "not_found"
    assert (await bench.call("whoami", ann))["owner_id"] == "ow_1"
    assert await find_claim(bench.store, kept, bench.clock.now_ms()) is None


async def test_a_policy_is_the_agents_and_an_agent_that_is_none_has_none(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    assert await ask(bench, ann.agent, SetPolicy("deny")) == {"policy": "deny"}
    assert (await bench.call("whoami", ann))["policy"] == "deny"
    assert code(await ask(bench, "ag_none", SetPolicy("deny"))) == "not_found"
    assert code(await ask(bench, "ag_none", Claim("ow_1", "00"))) == "not_found"
    again = AgentRow(str(ann.agent), "Other", "standard", 1)
    assert code(await ask(bench, ann.agent, Create(again, None))) == "already_exists"


@pytest.mark.requirement("identity.gone")
async def test_a_name_and_a_key_are_free_at_the_very_end_before_anybody_swept() -> None:
    store, key = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store) as bench:
        over = bench.clock.now_ms() + 1000
        old = await make_agent(bench, "Ann", key=key, tier="unclaimed", expires_at=over)
        store.gate.fail_next(Unavailable("a sweep that fails"), when=lambda unit: unit.puts[0].doc is None)
        bench.clock.step(1000)
        new = await make_agent(bench, "Ann", key=key)
        await trio.testing.wait_all_tasks_blocked()  # the timers' own sweep is the one that fails
        assert await store.get("agent", str(old.agent)) is not None
        await bench.call("purge_expired_unclaimed", type(old)(operator=True))
        assert await store.get("agent", str(old.agent)) is None
        assert [each.agent_id for each in await read_keys(store, str(new.agent))] == [new.agent]
        other = await bench.call("update_my_profile", await make_agent(bench, "Bob"), name="Ann")
        assert code(other) == "already_exists"  # the sweep took nothing from the new one
        assert bench.broker._services.standing.holder(key.pk) == new.agent
