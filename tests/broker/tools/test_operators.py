"""What operators do with agents, seen from the agents' side."""

import hashlib
from typing import Any

import msgspec
import pytest
import trio

from broker.app import Caller
from broker.core.agent import UNCLAIMED_MS
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Put, Unit
from broker.tools.registry import collect
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.agents import caller_of, make_agent
from tests.support.broker import STRANGER, Bench, Party, code, open_bench
from tests.support.owners import signin
from tests.support.registration import OPERATOR, how_it_ends, jwk, register

MISSING = "ag_01KVY19F5JERCW57K0QBWQ1Y7N"
OWNER = "ow_01KVY19F5JERCW57K0QBWQ1Y7N"
KEY = SigningKey.generate()


async def ask(bench: Bench, tool: str, /, **params: Any) -> Any:
    return await bench.call(tool, OPERATOR, **params)


def binding(bench: Bench, key: SigningKey, agent_id: str | None) -> dict[str, Any]:
    """public_key and proof of a key that joins an agent."""
    proof = Party("", key).statement("bind_key", bench.broker.pk, bench.ts, agent_id=agent_id)
    return {"public_key": jwk(key), "proof": proof}


async def has_owner(bench: Bench, owner_id: str = OWNER) -> None:
    await bench.store.commit(Unit(puts=(Put("owner", owner_id, 0, b"{}"),)))


async def signs_in(bench: Bench, agent_id: str | None, credential: str) -> str:
    """Whether the credential is good for a token: the code of the answer."""
    answer = await signin(bench, "take_credential", agent_id=agent_id, secret=credential)
    return str(answer.detail.get("error", answer.code)) if isinstance(answer, Refusal) else "accepted"


def test_each_of_the_seeds_tools_for_agents_is_there_and_keyed_where_it_changes_something() -> None:
    tools = {name: tool for name, tool in collect("operator").items() if tool.area == "operators"}
    assert set(tools) == {
        "register_agent",
        "rotate_agent_credential",
        "add_agent_public_key",
        "revoke_agent_public_key",
        "list_agent_public_keys",
        "assign_agent_owner",
        "suspend_agent",
        "unsuspend_agent",
        "list_suspended_agents",
        "list_agents",
        "list_unclaimed_agents",
        "delete_unclaimed_agent",
        "purge_expired_unclaimed",
        "delete_test_agent",
    }
    assert {name for name, tool in tools.items() if not tool.read_only and not tool.keyed} == {
        "purge_expired_unclaimed"
    }


@pytest.mark.requirement("identity.operators")
async def test_a_registered_agent_has_a_credential_that_is_shown_once_and_kept_hashed(bench: Bench) -> None:
    proof = Party("", KEY).statement("register_agent", bench.broker.pk, bench.ts, name="Ann")
    params = {
        "name": "Ann",
        "description": "deals",
        "capabilities": ["fx"],
        "public_key": jwk(KEY),
        "proof": proof,
    }
    made = await ask(bench, "register_agent", **params, idempotency_key="k")
    assert await ask(bench, "register_agent", **params, idempotency_key="k") == made
    told = await bench.call("whoami", caller_of(bench, made["agent_id"]))
    assert (told["tier"], told["description"], told["kids"]) == ("standard", "deals", [made["kid"]])
    assert await signs_in(bench, made["agent_id"], made["credential"]) == "accepted"
    document = await bench.store.get("agent", made["agent_id"])
    assert document is not None
    assert hashlib.sha256(made["credential"].encode()).hexdigest().encode() in document.doc
    assert made["credential"] not in repr(vars(bench.store))


@pytest.mark.requirement("identity.operators")
async def test_what_is_wrong_with_a_new_agent_is_said(bench: Bench) -> None:
    await ask(bench, "register_agent", name="Ann")
    cases = {
        "already_exists": {"name": "ANN"},
        "bad_request": {"name": "Bob", "public_key": jwk(KEY)},
        "not_found": {"name": "Bob", "owner_id": OWNER},
        "bad_statement": {
            "name": "Bob",
            "public_key": jwk(KEY),
            "proof": Party("", KEY).statement("register_agent", bench.broker.pk, bench.ts, name="Bobby"),
        },
    }
    assert {
        expected: code(await ask(bench, "register_agent", **params)) for expected, params in cases.items()
    } == {each: each for each in cases}
    await has_owner(bench)
    made = await ask(bench, "register_agent", name="Bob", owner_id=OWNER, test=True)
    assert (made["owner_id"], made["tier"], made["test"]) == (OWNER, "standard", True)


@pytest.mark.requirement("identity.operators")
async def test_a_new_credential_ends_all_tokens_and_what_they_hold(
    bench: Bench, autojump_clock: object
) -> None:
    made = await ask(bench, "register_agent", name="Ann")
    me = caller_of(bench, made["agent_id"])
    reader = await bench.broker.follow(me)
    renewed = await ask(bench, "rotate_agent_credential", agent_id=me.agent, idempotency_key="k")
    assert renewed["credential"] != made["credential"]
    assert await ask(bench, "rotate_agent_credential", agent_id=me.agent, idempotency_key="k") == renewed
    async with reader:
        assert await how_it_ends(reader) == "unauthenticated"
    assert code(await bench.call("whoami", me)) == "unauthenticated"
    shown = [await signs_in(bench, me.agent, each["credential"]) for each in (made, renewed)]
    assert shown == ["invalid_client", "accepted"]
    await trio.sleep(1)
    assert code(await bench.call("whoami", caller_of(bench, made["agent_id"]))) == "accepted"


@pytest.mark.requirement("identity.one-agent-a-key")
async def test_a_key_joins_by_its_own_word_and_no_other_agent_ever_again(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    stolen = {**binding(bench, SigningKey.generate(), ann.agent), "public_key": jwk(KEY)}
    assert code(await ask(bench, "add_agent_public_key", agent_id=ann.agent, **stolen)) == "bad_statement"
    meant = binding(bench, KEY, bob.agent)
    assert code(await ask(bench, "add_agent_public_key", agent_id=ann.agent, **meant)) == "bad_statement"
    added = await ask(bench, "add_agent_public_key", agent_id=ann.agent, **binding(bench, KEY, ann.agent))
    assert (await bench.call("whoami", ann))["kids"] == [added["kid"]]
    again = await ask(bench, "add_agent_public_key", agent_id=bob.agent, **binding(bench, KEY, bob.agent))
    assert code(again) == "already_exists"
    await ask(bench, "revoke_agent_public_key", agent_id=ann.agent, kid=added["kid"])
    for agent in (ann, bob):
        refused = await ask(
            bench, "add_agent_public_key", agent_id=agent.agent, **binding(bench, KEY, agent.agent)
        )
        assert code(refused) == "already_exists"
    (listed,) = (await ask(bench, "list_agent_public_keys", agent_id=ann.agent))["keys"]
    assert listed["revoked_at"] > 0


@pytest.mark.requirement("identity.one-agent-a-key")
async def test_a_key_stays_revoked_when_its_agent_is_gone(bench: Bench) -> None:
    made, other = await register(bench, "Ann"), SigningKey.generate()
    me = made["agent_id"]
    added = await ask(bench, "add_agent_public_key", agent_id=me, **binding(bench, other, me))
    await ask(bench, "revoke_agent_public_key", agent_id=me, kid=added["kid"])
    await ask(bench, "delete_unclaimed_agent", agent_id=me)
    bob = await make_agent(bench, "Bob")
    refused = await ask(bench, "add_agent_public_key", agent_id=bob.agent, **binding(bench, other, bob.agent))
    assert code(refused) == "already_exists"


@pytest.mark.requirement("identity.keys")
async def test_the_desk_of_a_key_is_the_agents_from_joining_to_revocation(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    party = await bench.open("ALFA")
    assert "desk" not in await bench.call("whoami", ann)
    added = await ask(
        bench, "add_agent_public_key", agent_id=ann.agent, **binding(bench, party.key, ann.agent)
    )
    assert (await bench.call("whoami", ann))["desk"]["code"] == "ALFA"
    reader = await bench.broker.follow(ann, code="ALFA")
    reader.close()
    await ask(bench, "revoke_agent_public_key", agent_id=ann.agent, kid=added["kid"])
    assert "desk" not in await bench.call("whoami", ann)
    assert code(await bench.broker.follow(ann, code="ALFA")) == "not_a_party"


@pytest.mark.requirement("identity.operators")
async def test_an_agent_given_to_an_owner_is_claimed_and_an_earlier_owners_tokens_end(bench: Bench) -> None:
    made = await register(bench, "Ann")
    me = caller_of(bench, made["agent_id"])
    assert code(await ask(bench, "assign_agent_owner", agent_id=me.agent, owner_id=OWNER)) == "not_found"
    await has_owner(bench)
    given = await ask(bench, "assign_agent_owner", agent_id=me.agent, owner_id=OWNER)
    assert (given["owner_id"], given["tier"]) == (OWNER, "claimed")
    assert code(await bench.call("whoami", me)) == "accepted"
    assert (await bench.call("get_onboarding_status", me))["claim_code_waits"] is False
    second = OWNER[:-1] + "M"
    await has_owner(bench, second)
    await ask(bench, "assign_agent_owner", agent_id=me.agent, owner_id=second)
    assert code(await bench.call("whoami", me)) == "unauthenticated"


@pytest.mark.requirement("identity.suspended", "identity.directory")
async def test_a_suspended_agent_is_refused_everywhere_at_once_and_restored_by_unsuspending() -> None:
    store, wire = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store, key=wire) as bench:
        ann = await make_agent(bench, "Ann", public=True)
        bob = await make_agent(bench, "Bob")
        mine, other = await bench.open("ALFA"), await bench.open("BRAV")
        added = await ask(
            bench, "add_agent_public_key", agent_id=ann.agent, **binding(bench, mine.key, ann.agent)
        )
        line = await bench.connect(other, mine)
        reader = await bench.broker.follow(ann)
        await ask(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
        async with reader:
            assert await how_it_ends(reader) == "suspended"
    async with open_bench(store=store, key=wire, clock=bench.clock) as bench:  # and so after a restart
        line.bench = bench
        assert code(await bench.call("whoami", ann)) == "suspended"
        assert code(await bench.call("get_agent", bob, agent_id=ann.agent)) == "not_found"
        assert await bench.call("search_directory", STRANGER) == {"agents": []}
        assert code(await line.send("QUOTE")) == "accepted"  # the other party's
        assert code(await line.send("HIT")) == "suspended"  # the agent's key's
        assert code(await bench.call("send_call", **bench.calling(other, mine, "ab" * 8))) == "suspended"
        (held,) = (await ask(bench, "list_suspended_agents"))["agents"]
        assert (held["agent_id"], held["suspended"]["reason"]) == (ann.agent, "spam")
    async with open_bench(store=store, key=wire, clock=bench.clock) as bench:
        line.bench = bench
        assert await ask(bench, "unsuspend_agent", agent_id=ann.agent) == {
            "agent_id": ann.agent,
            "suspended": False,
        }
        assert code(await bench.call("whoami", ann)) == "accepted"
        assert code(await line.send("HIT")) == "accepted"
        assert [each["name"] for each in (await bench.call("search_directory", STRANGER))["agents"]] == [
            "Ann"
        ]
        assert (await ask(bench, "list_suspended_agents"))["agents"] == []
        assert added["kid"] in (await bench.call("whoami", ann))["kids"]


@pytest.mark.requirement("network.standing")
async def test_a_suspension_that_was_in_doubt_and_landed_ends_what_is_held_when_it_is_repeated(
    bench: Bench, autojump_clock: object
) -> None:
    ann = await make_agent(bench, "Ann")
    reader = await bench.broker.follow(ann)
    assert isinstance(bench.store, MemoryStore)
    bench.store.gate.fail_next(InDoubt(), applied=True)
    assert code(await ask(bench, "suspend_agent", agent_id=ann.agent, reason="spam")) == "in_doubt"
    assert code(await ask(bench, "suspend_agent", agent_id=ann.agent, reason="spam")) == "accepted"
    async with reader:
        assert await how_it_ends(reader) == "suspended"
    assert code(await bench.call("whoami", ann)) == "suspended"


@pytest.mark.requirement("network.standing")
async def test_a_key_whose_revocation_was_in_doubt_and_landed_is_none_any_more(bench: Bench) -> None:
    key = SigningKey.generate()
    ann = await make_agent(bench, "Ann", key=key)
    kid = f"kid-{key.pk[:8]}"
    token = msgspec.structs.replace(ann, kid=kid)
    assert isinstance(bench.store, MemoryStore)
    bench.store.gate.fail_next(InDoubt(), applied=True)
    revoke = {"agent_id": ann.agent, "kid": kid}
    assert code(await ask(bench, "revoke_agent_public_key", **revoke)) == "in_doubt"
    assert code(await ask(bench, "revoke_agent_public_key", **revoke)) == "not_found"  # it is done
    assert code(await bench.call("whoami", token)) == "unauthenticated"


@pytest.mark.requirement("identity.suspended-keys")
async def test_a_desks_suspension_and_its_agents_lift_each_for_itself(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    mine, other = await bench.open("ALFA"), await bench.open("BRAV")
    await ask(bench, "add_agent_public_key", agent_id=ann.agent, **binding(bench, mine.key, ann.agent))

    async def dials() -> str:
        answer = await bench.call("send_call", **bench.calling(mine, other))
        return code(answer)

    await ask(bench, "suspend_agent", agent_id=ann.agent, reason="x")
    await ask(bench, "suspend_desk", code="ALFA")
    await ask(bench, "unsuspend_agent", agent_id=ann.agent)
    assert await dials() == "suspended"
    await ask(bench, "suspend_agent", agent_id=ann.agent, reason="x")
    await ask(bench, "release_desk", code="ALFA")
    assert await dials() == "suspended"
    await ask(bench, "unsuspend_agent", agent_id=ann.agent)
    assert await dials() == "accepted"


@pytest.mark.requirement("identity.operators")
async def test_lists_are_filtered_and_paged(bench: Bench) -> None:
    made = [await register(bench, f"self {n}") for n in range(3)]
    await make_agent(bench, "Ann")
    await has_owner(bench)
    await make_agent(bench, "Bob", owner_id=OWNER)

    async def names(tool: str, **params: Any) -> list[str]:
        return [each["name"] for each in (await ask(bench, tool, **params))["agents"]]

    assert await names("list_unclaimed_agents") == ["self 0", "self 1", "self 2"]
    assert await names("list_agents", tier="standard") == ["Ann", "Bob"]
    assert await names("list_agents", owner_id=OWNER) == ["Bob"]
    assert await names("list_agents", owner_id=OWNER, tier="claimed") == []
    assert await names("list_agents", name="bOB") == ["Bob"]
    assert await names("list_agents", name="\uff22ob") == ["Bob"], "what looks like it is it"
    assert await names("list_agents", name="Nobody") == []
    assert await names("list_agents", agent_id=made[1]["agent_id"]) == ["self 1"]
    gone = await ask(bench, "list_agents", agent_id="ag_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert code(gone) == "not_found"
    for more in ({"tier": "claimed"}, {"owner_id": OWNER}, {"agent_id": made[1]["agent_id"]}):
        assert code(await ask(bench, "list_agents", name="Bob", **more)) == "bad_request"
    page = await ask(bench, "list_agents", limit=2)
    assert [each["agent_id"] for each in page["agents"]] == [each["agent_id"] for each in made[:2]]
    assert len(await names("list_agents", after=page["next"])) == 3


@pytest.mark.requirement("identity.gone")
async def test_a_deleted_agent_is_gone_for_everyone_and_its_name_and_key_are_free(bench: Bench) -> None:
    key = SigningKey.generate()
    made, bob = await register(bench, "Ann", key), await make_agent(bench, "Bob")
    me = caller_of(bench, made["agent_id"])
    reader = await bench.broker.follow(me)
    for tool, agent_id, expected in (
        ("delete_test_agent", me.agent, "bad_request"),
        ("delete_unclaimed_agent", bob.agent, "bad_request"),
        ("delete_unclaimed_agent", MISSING, "not_found"),
        ("delete_unclaimed_agent", me.agent, "accepted"),
        ("delete_unclaimed_agent", me.agent, "not_found"),
    ):
        assert code(await ask(bench, tool, agent_id=agent_id)) == expected
    async with reader:
        assert await how_it_ends(reader) == "unauthenticated"
    assert code(await bench.call("whoami", me)) == "unauthenticated"
    assert code(await bench.call("get_agent", bob, agent_id=me.agent)) == "not_found"
    assert (await register(bench, "Ann", key))["agent_id"] != me.agent
    tested = await ask(bench, "register_agent", name="Test", test=True)
    assert code(await ask(bench, "delete_test_agent", agent_id=tested["agent_id"])) == "accepted"


@pytest.mark.requirement("identity.gone")
async def test_a_purge_deletes_those_whose_time_is_over(autojump_clock: object) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        for n in range(3):
            await register(bench, f"self {n}")
        bench.clock.step(UNCLAIMED_MS)
        await register(bench, "young")
        assert await ask(bench, "purge_expired_unclaimed") == {"deleted": 3}
        assert await ask(bench, "purge_expired_unclaimed") == {"deleted": 0}
        (left,) = (await ask(bench, "list_agents"))["agents"]
        assert left["name"] == "young"


async def test_no_tool_of_the_operators_is_there_for_anybody_else(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    with pytest.raises(LookupError):
        await bench.call("suspend_agent", ann, agent_id=ann.agent, reason="x")
    assert isinstance(await bench.call("list_agents", Caller()), Refusal)


async def test_what_there_is_not_is_not_found(bench: Bench) -> None:
    for tool, params in {
        "rotate_agent_credential": {},
        "revoke_agent_public_key": {"kid": "k"},
        "list_agent_public_keys": {},
        "suspend_agent": {"reason": "x"},
        "unsuspend_agent": {},
        "delete_test_agent": {},
        "add_agent_public_key": binding(bench, KEY, MISSING),
    }.items():
        assert code(await ask(bench, tool, agent_id=MISSING, **params)) == "not_found", tool
    assert await bench.store.get("agent", MISSING) is None
