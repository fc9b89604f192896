"""Many agents at once: whatever the order, what is counted is what is there, and nobody has more than is allowed."""

import random
from collections import Counter
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from broker.app import Caller
from broker.core.agreement import PairRow, pair_key
from broker.store.stored import stored
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned

SETTINGS = tuned(
    network={
        "loop_messages": 1_000_000,
        "requests_per_day": 12,
        "requests_open": 3,
        "messages_kept": 2,
        "declined_days": 0.0,
        "declines_days": 0.0,
    }
)
KEPT = 2


async def act(bench: Bench, chance: random.Random, agents: list[Caller], asked: Counter[str]) -> None:
    """One thing that one of them does."""
    one, other = chance.sample(agents, 2)
    match chance.randrange(8):
        case 0 | 1:
            answer = await bench.call("request_contact", one, target_agent_id=other.agent, purpose="p")
            asked[str(one.agent)] += code(answer) == "accepted"
        case 2 | 3:
            found = (await bench.call("list_contact_requests", one, status="pending"))["requests"]
            for each in found[:1]:
                params = {"request_id": each["request_id"], "accept": chance.random() < 0.8}
                await bench.call("respond_to_contact_request", one, **params)
        case 4 if chance.random() < 0.3:
            held = (await bench.call("list_agreements", one))["agreements"]
            for each in held[:1]:
                await bench.call("revoke_agreement", one, agreement_id=each["agreement_id"])
        case 5:
            inbox = (await bench.call("get_inbox", one))["messages"]
            if inbox:
                ids = [each["message_id"] for each in inbox[:3]]
                await bench.call("mark_messages_read", one, message_ids=ids)
        case _:
            await bench.call("send_direct_message", one, recipient_agent_id=other.agent, body="x")


async def judge(bench: Bench, agent: Caller, asked: int) -> None:
    name = str(agent.agent)
    page = await bench.call("get_inbox", agent, limit=100)
    assert page["unread"] == sum(not each["read"] for each in page["messages"])
    for sender, count in Counter(each["from_agent_id"] for each in page["messages"]).items():
        document = await bench.store.get("pair", pair_key(name, sender))
        assert document is not None
        row = stored(PairRow, document.doc, "pair", document.id)
        assert row.lanes[name].kept == count <= KEPT
    outgoing = await bench.call("list_contact_requests", agent, direction="outgoing", limit=100)
    assert len(outgoing["requests"]) == asked <= 12
    waiting = [each["to_agent_id"] for each in outgoing["requests"] if each["status"] == "pending"]
    assert len(waiting) == len(set(waiting)) <= 3
    incoming = await bench.call("list_contact_requests", agent, status="pending", limit=100)
    assert not {each["from_agent_id"] for each in incoming["requests"]} & set(waiting)
    slot = await bench.store.get("slot", name)
    held = (await bench.call("list_agreements", agent))["agreements"]
    if slot is not None:
        assert len(held) == 1


async def run(seed: int) -> None:
    async with open_bench(SETTINGS) as bench:
        soon = bench.clock.now_ms() + 6 * 86_400_000
        young: dict[str, Any] = {"tier": "unclaimed", "expires_at": soon}
        agents = [await make_agent(bench, f"A{n}", **(young if n < 2 else {})) for n in range(5)]
        asked: Counter[str] = Counter()

        async def some(chance: random.Random) -> None:
            for _ in range(25):
                await act(bench, chance, agents, asked)

        async with trio.open_nursery() as nursery:
            for n in range(6):
                nursery.start_soon(some, random.Random(f"{seed} {n}"))
        for n, agent in enumerate(agents):
            await judge(bench, agent, asked[str(agent.agent)])
            if n < 2:
                held = await bench.call("list_agreements", agent, include_inactive=True)
                assert sum(each["status"] == "active" for each in held["agreements"]) <= 1
        assert bench.broker.statistics().crashes == 0


@pytest.mark.requirement("agreement.at-once")
@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_what_many_do_at_once_adds_up(seed: int) -> None:
    trio.run(run, seed, clock=MockClock(autojump_threshold=0))
