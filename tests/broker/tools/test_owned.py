"""What an owner's page asks: the agents, and claiming one."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.agent import Assign
from broker.actors.attempts import CLAIMS
from broker.app import Caller
from broker.core.agent import Suspension
from broker.core.claim import ENTROPY, new_code, read_code
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.owners import CHEAP, new_owner, signin
from tests.support.pairs import agree, send, whats
from tests.support.webhooks import URL, registered

DAY_MS = 86_400_000


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        yield bench


async def unclaimed(bench: Bench, name: str = "Bob", **members: Any) -> tuple[str, str]:
    """An agent that registered itself: its id, and its claim code."""
    shown = new_code(bench.broker._services.entropy(ENTROPY))
    row = {"tier": "unclaimed", "claim": read_code(shown), "expires_at": bench.clock.now_ms() + 7 * DAY_MS}
    caller = await make_agent(bench, name, **{**row, **members})
    assert caller.agent is not None
    return caller.agent, shown


async def agents_of(bench: Bench, owner_id: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = (await signin(bench, "my_agents", owner_id=owner_id))["agents"]
    return answer


@pytest.mark.requirement("pages.claim")
async def test_a_code_makes_the_agent_the_owners_once(bench: Bench) -> None:
    ann, eve = await new_owner(bench), await new_owner(bench)
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
        await signin(bench, "claim_agent", owner_id=await new_owner(bench), code=given)
        for given in (over, suspended, other, "nonsense", "")
    ]
    assert [each.code for each in answers] == ["not_found"] * 5
    assert all(each == answers[0] for each in answers)
    assert "agent_id" in await signin(bench, "claim_agent", owner_id=await new_owner(bench), code=good)


@pytest.mark.requirement("owners.throttled")
async def test_an_owner_tries_five_codes_a_minute(bench: Bench, autojump_clock: object) -> None:
    ann = await new_owner(bench)
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

    async def claim(owner_id: str) -> None:
        answers.append(code(await signin(bench, "claim_agent", owner_id=owner_id, code=shown)))

    owners = [await new_owner(bench) for _ in range(CLAIMS)]
    async with trio.open_nursery() as nursery:
        for owner_id in owners:
            nursery.start_soon(claim, owner_id)
    assert sorted(answers) == ["accepted"] + ["not_found"] * (CLAIMS - 1)


@pytest.mark.requirement("pages.agents")
async def test_an_agent_is_shown_as_it_is_and_those_that_are_over_are_not(
    bench: Bench, autojump_clock: object
) -> None:
    ann = await new_owner(bench)
    held = Suspension(bench.clock.now_ms(), "x")
    party = await bench.open("ALFA")
    caller = await make_agent(
        bench, "Alfa", key=party.key, owner_id=ann, tier="claimed", description="d", public=True
    )
    await make_agent(bench, "Held", owner_id=ann, suspended=held, policy="owner-decides")
    await make_agent(bench, "Over", owner_id=ann, expires_at=bench.clock.now_ms() + 1)
    await make_agent(bench, "Others", owner_id=await new_owner(bench))
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
        "publishes": True,
    }
    assert (other["name"], other["suspended"], other["policy"]) == ("Held", True, "owner-decides")


async def asked(bench: Bench, owner_id: str, name: str = "Alfa", **params: Any) -> tuple[Caller, Caller, str]:
    """Somebody asks an agent that leaves it to its owner: both callers, and the request's id."""
    target = await make_agent(bench, name, owner_id=owner_id, tier="claimed", policy="owner-decides")
    asker = await make_agent(bench, f"{name} asks")
    given = {"purpose": "<b>quotes</b>", "scopes": ["message", "channel"], "ttl_days": 20, **params}
    answer = await bench.call("request_contact", asker, target_agent_id=target.agent, **given)
    return asker, target, answer["request_id"]


async def waiting(bench: Bench, owner_id: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = (await signin(bench, "waiting_requests", owner_id=owner_id))["requests"]
    return answer


async def agreements_of(bench: Bench, caller: Caller) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = (await bench.call("list_agreements", caller))["agreements"]
    return answer


@pytest.mark.requirement("pages.requests")
async def test_a_request_waits_for_the_owner_who_gives_less_than_was_asked(bench: Bench) -> None:
    ann = await new_owner(bench)
    asker, target, request_id = await asked(bench, ann)
    (shown,) = await waiting(bench, ann)
    assert {
        name: shown[name]
        for name in ("request_id", "from_agent", "to_agent", "purpose", "scopes", "ttl_days")
    } == {
        "request_id": request_id,
        "from_agent": asker.agent,
        "to_agent": target.agent,
        "purpose": "<b>quotes</b>",
        "scopes": ["message", "channel"],
        "ttl_days": 20,
    }
    assert (shown["from_name"], shown["to_name"]) == ("Alfa asks", "Alfa")
    decision = {
        "owner_id": ann,
        "request_id": request_id,
        "accept": True,
        "scopes": ["message"],
        "ttl_days": 3,
    }
    for more in ({"scopes": ["message", "task"]}, {"ttl_days": 21}, {"scopes": []}):
        assert code(await signin(bench, "decide_request", **{**decision, **more})) == "bad_request"
    assert await signin(bench, "decide_request", **decision) == {
        "request_id": request_id,
        "status": "accepted",
    }
    for caller in (asker, target):
        (made,) = await agreements_of(bench, caller)
        assert (made["scopes"], made["expires_at"] - made["made_at"]) == (["message"], 3 * DAY_MS)
    assert await waiting(bench, ann) == []


@pytest.mark.requirement("pages.requests")
async def test_declined_it_makes_nothing_and_waits_no_more(bench: Bench) -> None:
    ann = await new_owner(bench)
    asker, target, request_id = await asked(bench, ann)
    decision = {
        "owner_id": ann,
        "request_id": request_id,
        "accept": False,
        "scopes": ["message"],
        "ttl_days": 300,
    }
    assert await signin(bench, "decide_request", **decision) == {
        "request_id": request_id,
        "status": "declined",
    }
    assert await agreements_of(bench, asker) == await agreements_of(bench, target) == []
    assert await waiting(bench, ann) == []
    assert code(await signin(bench, "decide_request", **decision)) == "not_found"


@pytest.mark.requirement("pages.not-mine")
async def test_another_owners_request_looks_like_none(bench: Bench) -> None:
    ann, eve = await new_owner(bench), await new_owner(bench)
    _, target, request_id = await asked(bench, ann)
    assert await waiting(bench, eve) == []
    nothing = bench.broker._services.new_id("cr_")
    answers = [
        await signin(bench, "decide_request", owner_id=owner_id, request_id=given, accept=accept)
        for owner_id, given in ((eve, request_id), (ann, nothing), (eve, nothing), (ann, "x"))
        for accept in (True, False)
    ]
    assert {each.code for each in answers} == {"not_found"}
    assert all(each == answers[0] for each in answers)
    assert await agreements_of(bench, target) == []
    assert len(await waiting(bench, ann)) == 1


@pytest.mark.requirement("pages.not-mine")
async def test_a_request_to_an_agent_that_has_come_to_another_owner_is_nobodys_to_decide(
    bench: Bench,
) -> None:
    ann, eve = await new_owner(bench), await new_owner(bench)
    _, target, request_id = await asked(bench, ann)
    await bench.broker._services.house.ask("agent", target.agent or "", Assign(eve))
    for owner_id in (ann, eve):
        assert await waiting(bench, owner_id) == []
        decision = {"owner_id": owner_id, "request_id": request_id, "accept": True}
        assert code(await signin(bench, "decide_request", **decision)) == "not_found"


@pytest.mark.requirement("pages.requests")
async def test_a_request_that_nobody_answered_is_over(bench: Bench) -> None:
    ann = await new_owner(bench)
    _, _, request_id = await asked(bench, ann)
    (shown,) = await waiting(bench, ann)
    bench.clock.step(shown["expires_at"] - bench.clock.now_ms())
    assert await waiting(bench, ann) == []
    assert (
        code(await signin(bench, "decide_request", owner_id=ann, request_id=request_id, accept=True))
        == "not_found"
    )


@pytest.mark.requirement("moderation.care")
async def test_an_owner_takes_care_of_its_agent_as_the_agent_itself_may(bench: Bench) -> None:
    ann, key = await new_owner(bench), SigningKey.generate()
    mine = await make_agent(bench, "Mine", owner_id=ann, key=key)
    other = await make_agent(bench, "Other")
    agreement_id = await agree(bench, other, mine)
    await registered(bench, mine)
    own = {"owner_id": ann, "agent_id": mine.agent}
    kept = await signin(bench, "my_agent", **own)
    assert (kept["agent"]["policy"], [each["kid"] for each in kept["agent"]["keys"]]) == (
        "agent-decides",
        [f"kid-{key.pk[:8]}"],
    )
    assert [each["agreement_id"] for each in kept["agreements"]] == [agreement_id]
    assert kept["agreements"][0]["counterpart"]["name"] == "Other"
    assert (kept["webhook"]["url"], kept["webhook"]["state"]) == (URL, "active")
    assert code(await signin(bench, "end_webhook", **own, url="https://earlier.example/")) == "not_found"
    for verb, given in (
        ("choose_policy", {"policy": "deny"}),
        ("end_agreement", {"agreement_id": agreement_id}),
        ("end_webhook", {"url": URL}),
        ("revoke_agent_key", {"kid": f"kid-{key.pk[:8]}"}),
    ):
        assert await signin(bench, verb, **own, **given) == {"agent_id": mine.agent}, verb
    kept = await signin(bench, "my_agent", **own)
    assert (kept["agent"]["policy"], kept["agent"]["keys"], kept["agreements"]) == ("deny", [], [])
    assert kept["webhook"] is None
    assert "webhook_deleted" in await whats(bench, mine, "notice")
    assert code(await send(bench, other, mine)) == "agreement_required"
    by_key = msgspec.structs.replace(mine, kid=f"kid-{key.pk[:8]}")
    assert code(await bench.call("whoami", by_key)) == "unauthenticated"
    assert code(await signin(bench, "revoke_agent_key", **own, kid="kid-none")) == "not_found"


@pytest.mark.requirement("moderation.care", "pages.not-mine")
async def test_another_owners_agent_looks_like_none(bench: Bench) -> None:
    ann, eve, key = await new_owner(bench), await new_owner(bench), SigningKey.generate()
    mine, other = await make_agent(bench, "Mine", owner_id=ann, key=key), await make_agent(bench, "Other")
    hers = await make_agent(bench, "Hers", owner_id=eve)
    agreement_id = await agree(bench, other, mine)
    await registered(bench, mine)
    for verb, given in (
        ("my_agent", {}),
        ("choose_policy", {"policy": "deny"}),
        ("end_agreement", {"agreement_id": agreement_id}),
        ("end_webhook", {"url": URL}),
        ("revoke_agent_key", {"kid": f"kid-{key.pk[:8]}"}),
    ):
        foreign = await signin(bench, verb, owner_id=eve, agent_id=mine.agent, **given)
        missing = await signin(bench, verb, owner_id=eve, agent_id="ag_0", **given)
        assert code(foreign) == "not_found", verb
        assert foreign == missing
    beside = {"owner_id": eve, "agent_id": hers.agent, "agreement_id": agreement_id}
    assert code(await signin(bench, "end_agreement", **beside)) == "not_found"
    kept = await signin(bench, "my_agent", owner_id=ann, agent_id=mine.agent)
    assert (len(kept["agreements"]), len(kept["agent"]["keys"])) == (1, 1)
    assert kept["webhook"]["url"] == URL
