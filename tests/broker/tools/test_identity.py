"""Who an agent is, for itself and for others; the directory."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.app import Caller
from broker.core.names import judge_name
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.agents import caller_of, make_agent
from tests.support.broker import STRANGER, Bench, Party, code, open_bench
from tests.support.owners import signin
from tests.support.registration import OPERATOR, how_it_ends, jwk, register

NAUGHTY = json.loads((Path(__file__).parents[2] / "vectors/naughty/blns.json").read_text())
MISSING = "ag_01KVY19F5JERCW57K0QBWQ1Y7N"


async def with_desk(bench: Bench, name: str, desk: str, **members: Any) -> Caller:
    """An agent whose key holds a desk."""
    key = SigningKey.generate()
    caller = await make_agent(bench, name, key=key, **members)
    opening = Party(desk, key).statement("open_desk", bench.broker.pk, bench.ts, code=desk)
    assert not isinstance(await bench.call("open_desk", **opening), Refusal)
    return caller


@pytest.mark.requirement("identity.profile")
async def test_whoami_is_who_the_token_speaks_for(bench: Bench) -> None:
    ann = await with_desk(bench, "Ann", "ALFA")
    told = await bench.call("whoami", ann)
    assert told["agent_id"] == ann.agent
    assert (told["name"], told["tier"], told["policy"], told["public"]) == (
        "Ann",
        "standard",
        "agent-decides",
        False,
    )
    assert told["desk"] == {"code": "ALFA", "online": False}
    assert told["scopes"] == sorted(ann.scopes)
    assert len(told["kids"]) == 1


@pytest.mark.requirement("identity.profile")
async def test_get_agent_shows_anothers_profile_and_none_of_its_business(bench: Bench) -> None:
    ann = await with_desk(bench, "Ann", "ALFA", description="deals", capabilities=("fx",))
    bob = await make_agent(bench, "Bob")
    told = await bench.call("get_agent", bob, agent_id=ann.agent)
    assert told == {
        "agent_id": ann.agent,
        "name": "Ann",
        "description": "deals",
        "capabilities": ["fx"],
        "tier": "standard",
        "created_at": told["created_at"],
        "presence": "offline",
        "desk": {"code": "ALFA", "online": False},
    }


@pytest.mark.requirement("identity.gone")
async def test_a_suspended_an_expired_and_a_missing_agent_look_the_same(
    bench: Bench, autojump_clock: object
) -> None:
    bob = await make_agent(bench, "Bob")
    held = await make_agent(bench, "Held")
    await bench.call("suspend_agent", OPERATOR, agent_id=held.agent, reason="spam")
    brief = await make_agent(bench, "Brief", tier="unclaimed", expires_at=bench.clock.now_ms() + 1000)
    assert "name" in await bench.call("get_agent", bob, agent_id=brief.agent)
    await trio.sleep(1)
    answers = [
        await bench.call("get_agent", bob, agent_id=each) for each in (held.agent, brief.agent, MISSING)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert code(answers[0]) == "not_found"


@pytest.mark.requirement("identity.directory")
async def test_the_directory_shows_who_wants_to_be_found_to_anybody(bench: Bench) -> None:
    ann = await with_desk(bench, "Ann", "ALFA", capabilities=("fx", "gold"), description="quotes EURUSD")
    bob = await make_agent(bench, "Bob")
    assert await bench.call("search_directory", STRANGER) == {"agents": []}
    assert (await bench.call("set_directory_visibility", ann, public=True))["public"]
    for found in (
        await bench.call("search_directory", STRANGER),
        await bench.call("search_directory", STRANGER, query="ＡNN eurusd"),
        await bench.call("search_directory", STRANGER, capability="gold"),
        await signin(bench, "search_directory", query="ann", capability="gold"),
        await bench.call("list_agents", bob),
        await bench.call("list_agents", bob, capability="fx"),
    ):
        (entry,) = found["agents"]
        assert (entry["agent_id"], entry["desk"]["code"]) == (ann.agent, "ALFA")
    for missed in (
        await bench.call("search_directory", STRANGER, query="ann gbpusd"),
        await bench.call("search_directory", STRANGER, capability="silver"),
        await signin(bench, "search_directory", capability="no capability"),
        await bench.call("list_agents", bob, capability="gol"),
    ):
        assert missed == {"agents": []}
    await bench.call("set_directory_visibility", ann, public=False)
    assert await bench.call("search_directory", STRANGER) == {"agents": []}


@pytest.mark.requirement("identity.directory")
async def test_pages_follow_each_other_without_a_gap_or_a_repetition(bench: Bench) -> None:
    names = [f"agent {n:03}" for n in range(7)]
    for name in names:
        await make_agent(bench, name, public=True)
    seen, after, pages = [], None, 0
    while pages == 0 or after is not None:
        found = await bench.call("search_directory", STRANGER, limit=3, **({"after": after} if after else {}))
        seen += [each["name"] for each in found["agents"]]
        after, pages = found.get("next"), pages + 1
    assert (seen, pages) == (names, 3)
    assert code(await bench.call("search_directory", STRANGER, after="no cursor")) == "bad_request"


@pytest.mark.requirement("identity.presence")
async def test_online_while_it_or_its_key_listens_then_away_then_offline(
    bench: Bench, autojump_clock: object
) -> None:
    ann = await with_desk(bench, "Ann", "ALFA", public=True)
    bob = await make_agent(bench, "Bob")

    async def presence() -> str:
        told: str = (await bench.call("get_agent", bob, agent_id=ann.agent))["presence"]
        listed = await bench.call("list_agents", bob, online_only=True)
        assert [each["name"] for each in listed["agents"]] == (["Ann"] if told == "online" else [])
        return told

    assert await presence() == "offline"
    async with await bench.broker.follow(ann):
        assert await presence() == "online"
    await trio.sleep(15)
    assert await presence() == "offline"
    async with await bench.broker.follow(ann, code="ALFA"):
        assert await presence() == "online"
    await trio.sleep(15)
    await bench.call("whoami", ann)
    assert await presence() == "away"
    await trio.sleep(900)
    assert await presence() == "offline"


@pytest.mark.requirement("identity.profile")
async def test_only_what_is_given_changes(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann", description="deals", capabilities=("fx",))
    for change in (
        {"description": "quotes\nonly"},
        {"capabilities": ["gold", "gold", "a-1"]},
        {"name": "Anne"},
        {},
    ):
        last = await bench.call("update_my_profile", ann, **change)
    assert last == {
        "agent_id": ann.agent,
        "name": "Anne",
        "description": "quotes\nonly",
        "capabilities": ["gold", "a-1"],
    }
    told = await bench.call("whoami", ann)
    assert {name: told[name] for name in last} == last


@pytest.mark.requirement("identity.profile")
async def test_a_profile_keeps_its_bounds(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    for change in (
        {"description": "x" * 301},
        {"description": "a\u0000"},
        {"capabilities": [f"t{n}" for n in range(11)]},
        {"capabilities": ["Fx"]},
        {"name": ""},
        {"name": "аnn"},
        {"name": "x" * 65},
    ):
        refused = await bench.call("update_my_profile", ann, **change)
        assert (code(refused), refused.detail["path"]) == ("bad_request", *change)


@pytest.mark.requirement("identity.looks")
async def test_a_new_name_is_claimed_and_the_old_one_is_free(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    assert code(await bench.call("update_my_profile", bob, name="ANN")) == "already_exists"
    assert (
        code(await bench.call("update_my_profile", ann, name="ann")) == "accepted"
    )  # its own look, otherwise written
    assert code(await bench.call("update_my_profile", ann, name="Anna")) == "accepted"
    assert code(await bench.call("update_my_profile", bob, name="Ann")) == "accepted"
    assert code(await bench.call("update_my_profile", ann, name="Bob")) == "accepted"


@pytest.mark.requirement("identity.names")
async def test_naughty_strings_are_kept_byte_for_byte_or_refused_by_rule(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    described = 0
    for text in NAUGHTY:
        answer = await bench.call("update_my_profile", ann, description=text)
        if code(answer) == "accepted":
            described += 1
            assert answer["description"] == text
        else:
            assert (answer.code, answer.detail["path"]) == ("bad_request", "description")
        if judge_name(text) is None:
            named = await bench.call("update_my_profile", ann, name=text)
            assert named["name"] == text
            assert (await bench.call("whoami", ann))["name"] == text
    assert described > 400


@pytest.mark.requirement("identity.keys")
async def test_a_revoked_key_ends_what_was_opened_with_it_at_once_and_stays_listed(bench: Bench) -> None:
    key, other = SigningKey.generate(), SigningKey.generate()
    made = await register(bench, "Ann", key)
    me = caller_of(bench, made["agent_id"], kid=made["kid"])
    bind = Party("", other).statement("bind_key", bench.broker.pk, bench.ts, agent_id=me.agent)
    added = await bench.call(
        "add_agent_public_key", OPERATOR, agent_id=me.agent, public_key=jwk(other), proof=bind
    )
    by_other = caller_of(bench, made["agent_id"], kid=added["kid"])
    reader = await bench.broker.follow(me, after="0")
    async with reader:
        revoked = await bench.call("revoke_my_public_key", by_other, kid=made["kid"])
        assert await how_it_ends(reader) == "unauthenticated"
    assert code(await bench.call("whoami", me)) == "unauthenticated"
    listed = (await bench.call("list_my_public_keys", by_other))["keys"]
    assert [(each["kid"], each.get("revoked_at")) for each in listed] == [
        (made["kid"], revoked["revoked_at"]),
        (added["kid"], None),
    ]
    assert listed[0]["public_jwk"] == jwk(key)
    assert code(await bench.call("revoke_my_public_key", by_other, kid=made["kid"])) == "not_found"


@pytest.mark.requirement("identity.keys")
async def test_the_last_key_of_an_agent_without_a_credential_stays_and_it_is_told_what_to_do(
    bench: Bench,
) -> None:
    made = await register(bench, "Ann")
    me = caller_of(bench, made["agent_id"])
    refused = await bench.call("revoke_my_public_key", me, kid=made["kid"])
    assert code(refused) == "bad_request"
    assert "bind_key" in refused.message


@pytest.mark.requirement("identity.tiers")
async def test_onboarding_says_the_tiers_limits(bench: Bench) -> None:
    made = await register(bench, "Ann")
    told = await bench.call("get_onboarding_status", caller_of(bench, made["agent_id"]))
    assert told == {
        "agent_id": made["agent_id"],
        "tier": "unclaimed",
        "limits": {
            "agreements": 1,
            "direct_messages_a_day": 20,
            "own_channels": 0,
            "webhook": False,
            "resources": False,
            "lifetime_days": 7,
        },
        "public": False,
        "claim_code_waits": True,
        "expires_at": made["expires_at"],
    }
    told = await bench.call("get_onboarding_status", await make_agent(bench, "Bob"))
    assert (told["tier"], told["claim_code_waits"]) == ("standard", False)
    assert set(told["limits"].values()) == {None, True}


@pytest.mark.requirement("identity.claim")
async def test_a_new_claim_code_ends_the_old_one_and_is_for_the_unclaimed_alone(bench: Bench) -> None:
    made = await register(bench, "Ann")
    me, owner_id = caller_of(bench, made["agent_id"]), "ow_01KVY19F5JERCW57K0QBWQ1Y7N"
    renewed = await bench.call("renew_claim_code", me)
    assert renewed["expires_at"] == made["expires_at"]
    assert code(await signin(bench, "claim_agent", owner_id=owner_id, code=made["claim_code"])) == "not_found"
    reader = await bench.broker.follow(me, after="0")
    assert (
        code(await signin(bench, "claim_agent", owner_id=owner_id, code=renewed["claim_code"])) == "accepted"
    )
    async with reader:
        with trio.fail_after(5):
            (event,) = await reader.receive()
    assert event.kind == "notice"
    assert json.loads(event.params)["what"] == "claimed"
    told = await bench.call("get_onboarding_status", me)
    assert (told["tier"], told["owner_id"], told.get("expires_at")) == ("claimed", owner_id, None)
    assert code(await bench.call("renew_claim_code", me)) == "not_found"


@pytest.mark.requirement("identity.claim")
async def test_of_two_owners_with_one_code_at_once_one_gets_the_agent(bench: Bench) -> None:
    made = await register(bench, "Ann")
    answers: list[tuple[str, str]] = []

    async def claim(owner_id: str) -> None:
        answers.append(
            (owner_id, code(await signin(bench, "claim_agent", owner_id=owner_id, code=made["claim_code"])))
        )

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for last in "ABCDE":
                nursery.start_soon(claim, f"ow_01KVY19F5JERCW57K0QBWQ1Y7{last}")
    assert sorted(each for _, each in answers) == ["accepted"] + ["not_found"] * 4
    (winner,) = [owner_id for owner_id, each in answers if each == "accepted"]
    assert (await bench.call("whoami", caller_of(bench, made["agent_id"])))["owner_id"] == winner


@pytest.mark.requirement("identity.gone")
async def test_an_unclaimed_agent_is_gone_after_seven_days_to_the_millisecond_and_its_name_is_free(
    autojump_clock: object,
) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        key = SigningKey.generate()
        made = await register(bench, "Ann", key)
        me, bob = caller_of(bench, made["agent_id"]), await make_agent(bench, "Bob")
        reader = await bench.broker.follow(me)
        bench.clock.step(made["expires_at"] - bench.clock.now_ms() - 200_000)
        await trio.sleep(199.999)
        assert code(await bench.call("get_agent", bob, agent_id=me.agent)) == "accepted"
        assert code(await bench.call("whoami", me)) == "accepted"
        store.gate.hold()  # whether it is swept makes no difference
        await trio.sleep(0.001)
        assert code(await bench.call("get_agent", bob, agent_id=me.agent)) == "not_found"
        assert code(await bench.call("whoami", me)) == "unauthenticated"
        store.gate.release()
        async with reader:
            assert await how_it_ends(reader) == "unauthenticated"
        again = await register(bench, "Ann", key)
        assert again["agent_id"] != made["agent_id"]
        assert await store.get("agent", made["agent_id"]) is None
    async with open_bench(store=store, clock=bench.clock) as bench:
        assert code(await bench.call("whoami", me)) == "unauthenticated"


async def test_what_needs_no_token_is_the_search_alone(bench: Bench) -> None:
    mine = [tool for tool in bench.broker.tools.values() if tool.area == "identity"]
    assert {tool.name for tool in mine if tool.scope is None} == {"search_directory"}
    assert {tool.scope for tool in mine} == {None, "profile"}
    assert all(tool.keyed for tool in mine if not tool.read_only)
