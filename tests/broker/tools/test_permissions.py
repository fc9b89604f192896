"""An operator's one-way permission, seen from both agents' side."""

from typing import Any

import pytest

from broker.app import Caller
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import agree, send, whats

OPERATOR = Caller(operator=True)
DAY_MS = 86_400_000


async def grant(bench: Bench, one: Caller, other: Caller, **params: Any) -> Any:
    named = {"from_agent_id": one.agent, "to_agent_id": other.agent}
    return await bench.call("grant_send_permission", OPERATOR, **named, **params)


async def take(bench: Bench, one: Caller, other: Caller) -> Any:
    named = {"from_agent_id": one.agent, "to_agent_id": other.agent}
    return await bench.call("revoke_send_permission", OPERATOR, **named)


async def listed(bench: Bench, caller: Caller) -> list[Any]:
    return list((await bench.call("list_agreements", caller))["agreements"])


@pytest.mark.requirement("agreement.operator")
async def test_a_grant_goes_one_way_and_is_listed_as_the_operators(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    made = await grant(bench, ann, bob)
    assert code(await send(bench, ann, bob)) == "accepted"
    assert code(await send(bench, bob, ann)) == "agreement_required"
    (hers,), (his,) = await listed(bench, ann), await listed(bench, bob)
    assert (hers["direction"], his["direction"]) == ("outgoing", "incoming")
    assert hers["made_by"] == his["made_by"] == "operator"
    assert hers["agreement_id"] == his["agreement_id"] == made["agreement_id"]
    assert hers["expires_at"] is None
    taken = await take(bench, ann, bob)
    assert (taken["status"], taken["ended_by"]) == ("revoked", "operator")
    assert code(await send(bench, ann, bob)) == "agreement_required"
    assert await whats(bench, ann, "agreement") == await whats(bench, bob, "agreement") == ["made", "revoked"]
    assert code(await take(bench, ann, bob)) == "not_found"


@pytest.mark.requirement("agreement.operator")
async def test_a_second_grant_takes_the_place_of_the_first(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await grant(bench, ann, bob)
    await grant(bench, bob, ann)
    await grant(bench, ann, bob, scopes=["task"], ttl_days=2)
    assert code(await send(bench, ann, bob)) == "agreement_required"
    assert code(await send(bench, bob, ann)) == "accepted"
    newest, _ = await listed(bench, ann)
    assert (newest["scopes"], newest["expires_at"] - newest["made_at"]) == (["task"], 2 * DAY_MS)


@pytest.mark.requirement("agreement.operator")
async def test_what_the_agents_agreed_is_not_the_operators_to_take_back(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob)
    assert code(await take(bench, ann, bob)) == "not_found"
    assert code(await send(bench, ann, bob)) == "accepted"


async def test_either_agent_may_refuse_a_grant(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    made = await grant(bench, ann, bob)
    assert code(await bench.call("revoke_agreement", bob, agreement_id=made["agreement_id"])) == "accepted"
    assert code(await send(bench, ann, bob)) == "agreement_required"


@pytest.mark.requirement("agreement.operator")
async def test_the_grant_is_for_two_agents_that_there_are(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    assert code(await grant(bench, ann, ann)) == "bad_request"
    assert code(await grant(bench, ann, Caller(agent="ag_01KVY19F5JERCW57K0QBWQ1Y7N"))) == "not_found"
    assert code(await grant(bench, Caller(agent="ag_01KVY19F5JERCW57K0QBWQ1Y7N"), ann)) == "not_found"
    with pytest.raises(LookupError):  # no public door knows the tool
        await bench.call("grant_send_permission", ann, from_agent_id="a", to_agent_id="b")
