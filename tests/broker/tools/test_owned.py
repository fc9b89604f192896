"""What an owner's page asks: the agents, and claiming one."""

from typing import Any

import pytest
import trio

from broker.actors.attempts import CLAIMS
from broker.core.agent import Suspension
from broker.core.claim import ENTROPY, new_code, read_code
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.owners import signin

DAY_MS = 86_400_000


async def unclaimed(bench: Bench, name: str = "Bob", **members: Any) -> tuple[str, str]:
    """An agent that registered itself: its id, and its claim code."""
    shown = new_code(bench.broker._services.entropy(ENTROPY))
    row = {"tier": "unclaimed", "claim": read_code(shown), "expires_at": bench.clock.now_ms() + 7 * DAY_MS}
    caller = await make_agent(bench, name, **{**row, **members})
    assert caller.agent is not None
    return caller.agent, shown


def new_owner(bench: Bench) -> str:
    return bench.broker._services.new_id("ow_")


async def agents_of(bench: Bench, owner_id: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = (await signin(bench, "my_agents", owner_id=owner_id))["agents"]
    return answer


@pytest.mark.requirement("pages.claim")
async def test_a_code_makes_the_agent_the_owners_once(bench: Bench) -> None:
    ann, eve = new_owner(bench), new_owner(bench)
    agent_id, shown = await unclaimed(bench)
    (found,) = [await signin(bench, "claim_agent", owner_id=ann, code=f" {shown.lower()} ")]
    assert found == {"agent_id": agent_id, "name": "Bob", "tier": "claimed"}
    for owner_id in (ann, eve):
        assert code(await signin(bench, "claim_agent", owner_id=owner_id, code=shown)) == "not_found"
    assert [each["agent_id"] for each in await agents_of(bench, ann)] == [agent_id]
    assert await agents_of(bench, eve) == []


@pytest.mark.requirement("pages.claim")
async def test_a_code_that_is_none_is_one_answer_whatever_the_reason(
    bench: Bench, autojump_clock: object
) -> None:
    _, over = await unclaimed(bench, "Over", expires_at=bench.clock.now_ms() + 1000)
    held = Suspension(bench.clock.now_ms(), "x")
    _, suspended = await unclaimed(bench, "Suspended", suspended=held)
    _, good = await unclaimed(bench, "Good")
    await trio.sleep(1)
    other = good[:-1] + ("0" if good[-1] != "0" else "1")
    answers = [
        await signin(bench, "claim_agent", owner_id=new_owner(bench), code=given)
        for given in (over, suspended, other, "nonsense", "")
    ]
    assert [each.code for each in answers] == ["not_found"] * 5
    assert all(each == answers[0] for each in answers)
    assert "agent_id" in await signin(bench, "claim_agent", owner_id=new_owner(bench), code=good)


@pytest.mark.requirement("owners.throttled")
async def test_an_owner_tries_five_codes_a_minute(bench: Bench, autojump_clock: object) -> None:
    ann = new_owner(bench)
    _, shown = await unclaimed(bench)
    for n in range(CLAIMS):
        assert code(await signin(bench, "claim_agent", owner_id=ann, code=str(n))) == "not_found"
    assert code(await signin(bench, "claim_agent", owner_id=ann, code=shown)) == "rate_limited"
    await trio.sleep(60)
    assert "agent_id" in await signin(bench, "claim_agent", owner_id=ann, code=shown)


@pytest.mark.requirement("pages.claim")
async def test_two_owners_at_once_are_one(bench: Bench) -> None:
    _, shown = await unclaimed(bench)
    answers: list[str] = []

    async def claim() -> None:
        answers.append(code(await signin(bench, "claim_agent", owner_id=new_owner(bench), code=shown)))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(claim)
    assert sorted(answers) == ["accepted"] + ["not_found"] * 9


@pytest.mark.requirement("pages.agents")
async def test_an_agent_is_shown_as_it_is_and_those_that_are_over_are_not(
    bench: Bench, autojump_clock: object
) -> None:
    ann = new_owner(bench)
    held = Suspension(bench.clock.now_ms(), "x")
    party = await bench.open("ALFA")
    caller = await make_agent(
        bench, "Alfa", key=party.key, owner_id=ann, tier="claimed", description="d", public=True
    )
    await make_agent(bench, "Held", owner_id=ann, suspended=held, policy="owner-decides")
    await make_agent(bench, "Over", owner_id=ann, expires_at=bench.clock.now_ms() + 1)
    await make_agent(bench, "Others", owner_id=new_owner(bench))
    await trio.sleep(1)
    alfa, other = await agents_of(bench, ann)
    assert alfa["agent_id"] == caller.agent
    assert {
        name: alfa[name] for name in ("name", "description", "tier", "public", "suspended", "policy")
    } == {
        "name": "Alfa",
        "description": "d",
        "tier": "claimed",
        "public": True,
        "suspended": False,
        "policy": "agent-decides",
    }
    assert [each["pk"] for each in alfa["keys"]] == [party.pk]
    assert alfa["limits"] == {
        "agreements": None,
        "messages_a_day": None,
        "own_channels": None,
        "webhook": True,
    }
    assert (other["name"], other["suspended"], other["policy"]) == ("Held", True, "owner-decides")
