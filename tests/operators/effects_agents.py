"""What operators do to agents, their keys and their owners, seen from the other end."""

import msgspec

from broker.wire.jwk import thumbprint
from broker.wire.keys import SigningKey
from tests.operators.effects import as_agent, binding, effect, knows, operator, owner, takes
from tests.support.agents import caller_of, make_agent
from tests.support.broker import Bench, code
from tests.support.owners import PASSWORD, signin
from tests.support.pairs import agree, send, told, whats
from tests.support.registration import OPERATOR, register


@effect("register_agent")
async def registered(bench: Bench) -> None:
    made = await operator(bench, "register_agent", name="Ann")
    assert await takes(bench, made["agent_id"], made["credential"]) == "accepted"
    me = await bench.call("whoami", caller_of(bench, made["agent_id"]))
    assert (me["name"], me["tier"]) == ("Ann", "standard")


@effect("rotate_agent_credential")
async def rotated(bench: Bench) -> None:
    made = await operator(bench, "register_agent", name="Ann")
    before = caller_of(bench, made["agent_id"])
    new = await operator(bench, "rotate_agent_credential", agent_id=made["agent_id"])
    assert await as_agent(bench, before) == "unauthenticated"
    assert await takes(bench, made["agent_id"], made["credential"]) != "accepted"
    assert await takes(bench, made["agent_id"], new["credential"]) == "accepted"


@effect("add_agent_public_key")
async def key_added(bench: Bench) -> None:
    ann, party = await make_agent(bench, "Ann"), await bench.open("ANNE")
    await operator(bench, "add_agent_public_key", **binding(bench, party.key, str(ann.agent)))
    bob = await make_agent(bench, "Bob")
    seen = await bench.call("get_agent", bob, agent_id=ann.agent)
    assert seen["desk"]["code"] == "ANNE"  # the key's desk is the agent's now
    await bench.dial(await bench.open("BOBB"), party)
    assert len(await told(bench, ann, "ring")) == 1


@effect("revoke_agent_public_key")
async def key_revoked(bench: Bench) -> None:
    key = SigningKey.generate()
    ann = await make_agent(bench, "Ann")
    await operator(bench, "add_agent_public_key", **binding(bench, key, str(ann.agent)))
    by_key = msgspec.structs.replace(ann, kid=thumbprint(key.pk))
    assert await as_agent(bench, by_key) == "accepted"
    await operator(bench, "revoke_agent_public_key", agent_id=ann.agent, kid=thumbprint(key.pk))
    assert await as_agent(bench, by_key) == "unauthenticated"


@effect("list_agent_public_keys")
async def keys_listed(bench: Bench) -> None:
    made = await register(bench, "Ann")
    mine = (await bench.call("list_my_public_keys", caller_of(bench, made["agent_id"])))["keys"]
    listed = (await operator(bench, "list_agent_public_keys", agent_id=made["agent_id"]))["keys"]
    assert [each["kid"] for each in listed] == [each["kid"] for each in mine] != []


@effect("create_owner")
async def owner_made(bench: Bench) -> None:
    await operator(bench, "create_owner", email="ann@x.example", password=PASSWORD)
    assert code(await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)) == "accepted"
    invited = await operator(bench, "create_owner", email="bob@x.example", invitation=True)
    params = {"email": "bob@x.example", "password": PASSWORD, "invitation": invited["invitation"]}
    assert (await signin(bench, "sign_up", **params))["owner_id"] == invited["owner_id"]


@effect("list_owners")
async def owners_listed(bench: Bench) -> None:
    made = await signin(bench, "sign_up", email="ann@x.example", password=PASSWORD)
    young = await register(bench, "Young")
    await signin(bench, "claim_agent", owner_id=made["owner_id"], code=young["claim_code"])
    (listed,) = (await operator(bench, "list_owners"))["owners"]
    assert (listed["owner_id"], listed["agents"]) == (made["owner_id"], 1)


@effect("assign_agent_owner")
async def assigned(bench: Bench) -> None:
    ann, owner_id = await make_agent(bench, "Ann"), await owner(bench)
    await operator(bench, "assign_agent_owner", agent_id=ann.agent, owner_id=owner_id)
    owned = (await signin(bench, "my_agents", owner_id=owner_id))["agents"]
    assert [(each["agent_id"], each["tier"]) for each in owned] == [(ann.agent, "claimed")]
    assert await whats(bench, ann, "notice") == ["owner_assigned"]


@effect("suspend_agent")
async def suspended(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob)
    await operator(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
    assert await as_agent(bench, ann) == "suspended"
    assert await knows(bench, bob, str(ann.agent)) == "not_found"
    assert code(await send(bench, bob, ann)) == "agreement_required"


@effect("unsuspend_agent")
async def unsuspended(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob)
    await operator(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
    await operator(bench, "unsuspend_agent", agent_id=ann.agent)
    assert (await as_agent(bench, ann), await knows(bench, bob, str(ann.agent))) == ("accepted", "accepted")
    assert code(await send(bench, bob, ann)) == "accepted"


@effect("list_suspended_agents")
async def suspended_listed(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await operator(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
    (listed,) = (await operator(bench, "list_suspended_agents"))["agents"]
    assert (listed["agent_id"], listed["suspended"]["reason"]) == (ann.agent, "spam")
    await operator(bench, "unsuspend_agent", agent_id=ann.agent)
    assert (await operator(bench, "list_suspended_agents"))["agents"] == []


@effect("list_agents")
async def agents_listed(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await bench.call("set_contact_policy", ann, policy="deny")
    (listed,) = (await operator(bench, "list_agents"))["agents"]
    assert (listed["agent_id"], listed["policy"], listed["public"]) == (ann.agent, "deny", False)


@effect("list_unclaimed_agents")
async def unclaimed_listed(bench: Bench) -> None:
    made = await register(bench, "Young")
    (listed,) = (await operator(bench, "list_unclaimed_agents"))["agents"]
    assert (listed["agent_id"], listed["tier"]) == (made["agent_id"], "unclaimed")


@effect("delete_unclaimed_agent")
async def unclaimed_deleted(bench: Bench) -> None:
    made, bob = await register(bench, "Young"), await make_agent(bench, "Bob")
    young = caller_of(bench, made["agent_id"])
    await operator(bench, "delete_unclaimed_agent", agent_id=made["agent_id"])
    assert await as_agent(bench, young) == "unauthenticated"
    assert await knows(bench, bob, made["agent_id"]) == "not_found"
    assert "agent_id" in await register(bench, "Young")  # the name is free


@effect("purge_expired_unclaimed")
async def purged(bench: Bench) -> None:
    bob = await make_agent(bench, "Bob")
    over = await make_agent(bench, "Old", tier="unclaimed", expires_at=bench.clock.now_ms())
    await operator(bench, "purge_expired_unclaimed")
    assert await bench.store.get("agent", str(over.agent)) is None
    assert await as_agent(bench, over) == "unauthenticated"
    assert await knows(bench, bob, str(over.agent)) == "not_found"


@effect("delete_test_agent")
async def agent_deleted(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann", test=True), await make_agent(bench, "Bob")
    await operator(bench, "delete_test_agent", agent_id=ann.agent)
    assert await as_agent(bench, ann) == "unauthenticated"
    assert await knows(bench, bob, str(ann.agent)) == "not_found"
    assert code(await bench.call("delete_test_agent", OPERATOR, agent_id=bob.agent)) == "bad_request"
