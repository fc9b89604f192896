"""The tools of channels: what they show, what they refuse, and what a stranger can tell from their answers."""

import json
from typing import Any

import msgspec
import pytest

from broker.app import Caller
from broker.tools.agents import NO_AGENT
from broker.wire.refusals import Refusal
from tests.support.agents import caller_of, make_agent
from tests.support.broker import Bench, code, open_bench
from tests.support.channels import enter, open_town
from tests.support.registration import OPERATOR

NOBODY = "ch_00000000000000000000000000"
BIG = "ä" * 8192


@pytest.mark.requirement("channel.name")
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ab", "accepted"),
        ("0-", "accepted"),
        ("a" * 63, "accepted"),
        ("a", "bad_request"),
        ("a" * 64, "bad_request"),
        ("-ab", "bad_request"),
        ("Ab", "bad_request"),
        ("a b", "bad_request"),
        ("ab\n", "bad_request"),
        ("é1", "bad_request"),
    ],
)
async def test_a_name_has_a_form(bench: Bench, name: str, answer: str) -> None:
    owner = await make_agent(bench, "owner")
    assert code(await bench.call("create_channel", owner, name=name)) == answer


@pytest.mark.requirement("channel.name")
async def test_a_name_is_given_once_also_a_private_one(bench: Bench) -> None:
    town = await open_town(bench, 1, private=True)
    stranger = await make_agent(bench, "stranger")
    for who in (town.owner, town.members[0], stranger):
        assert code(await bench.call("create_channel", who, name="town")) == "already_exists"
    made = await bench.call("create_channel", stranger, name="other", topic="of other things")
    assert (
        made
        == {
            "channel_id": made["channel_id"],
            "name": "other",
            "is_private": False,
            "topic": "of other things",
            "owner_agent_id": stranger.agent,
            "created_at": bench.clock.now_ms(),
            "members": 1,
            "head": 0,
            "role": "owner",
        }
        or abs(made["created_at"] - bench.clock.now_ms()) < 1000
    )


@pytest.mark.requirement("channel.unclaimed")
async def test_an_unclaimed_agent_owns_no_channel_but_may_be_in_one(bench: Bench) -> None:
    town = await open_town(bench)
    later = bench.clock.now_ms() + 86_400_000
    guest = await make_agent(bench, "guest", tier="unclaimed", expires_at=later)
    refused = await bench.call("create_channel", guest, name="mine")
    assert (code(refused), refused.detail["reason"]) == ("quota_exceeded", "channels")
    assert code(await town.call("join_channel", guest)) == "accepted"
    assert code(await town.send(guest)) == "accepted"
    given = await town.call("transfer_channel", town.owner, new_owner_agent_id=guest.agent)
    assert code(given) == "quota_exceeded"


def attempts(town_id: str, agent_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Every tool that names a channel, with params that would do."""
    return [
        ("join_channel", {}),
        ("leave_channel", {}),
        ("invite_agent_to_channel", {"invited_agent_id": agent_id}),
        ("remove_channel_member", {"target_agent_id": agent_id}),
        ("transfer_channel", {"new_owner_agent_id": agent_id}),
        ("list_channel_members", {}),
        ("send_channel_message", {"body": "hello"}),
        ("get_channel_history", {}),
    ]


@pytest.mark.requirement("channel.private")
async def test_a_private_channel_looks_missing_and_asking_starts_nothing(bench: Bench) -> None:
    town = await open_town(bench, 1, private=True)
    await town.send(town.owner)
    stranger = await make_agent(bench, "stranger")
    member = str(town.members[0].agent)
    actors = bench.broker.statistics().actors["channel"]
    for name, params in attempts(town.id, member):
        foreign = await bench.call(name, stranger, channel_id=town.id, **params)
        missing = await bench.call(name, stranger, channel_id=NOBODY, **params)
        assert isinstance(foreign, Refusal)
        assert foreign == missing, name
        assert code(foreign) == "not_found"
    assert bench.broker.statistics().actors["channel"] == actors
    assert await bench.call("list_channels", stranger) == {"channels": []}
    removed = await town.call("remove_channel_member", town.owner, target_agent_id=member)
    assert removed["removed"]
    for name, params in attempts(town.id, member):
        assert code(await bench.call(name, town.members[0], channel_id=town.id, **params)) == "not_found"


@pytest.mark.requirement("channel.private")
async def test_an_invited_agent_sees_the_channel_and_reads_it_once_it_has_joined(bench: Bench) -> None:
    town = await open_town(bench, 0, private=True)
    await town.send(town.owner, "before")
    guest = await make_agent(bench, "guest")
    invited = await town.call("invite_agent_to_channel", town.owner, invited_agent_id=guest.agent)
    assert invited == {"channel_id": town.id, "agent_id": guest.agent, "role": "invited"}
    listed = (await bench.call("list_channels", guest))["channels"]
    assert [(each["channel_id"], each["role"]) for each in listed] == [(town.id, "invited")]
    for name in ("get_channel_history", "list_channel_members"):
        assert code(await town.call(name, guest)) == "not_a_party"
    events = await bench.store.events(f"agent:{guest.agent}", 0)
    assert [(each.kind, json.loads(each.data)["what"]) for each in events] == [("notice", "channel_invited")]
    joined = await town.call("join_channel", guest)
    assert (joined["members"], joined["role"]) == (2, "member")
    assert [each["body"] for each in (await town.call("get_channel_history", guest))["messages"]] == [
        "before"
    ]
    nobody = "ag_00000000000000000000000000"
    assert (
        code(await town.call("invite_agent_to_channel", town.owner, invited_agent_id=nobody)) == "not_found"
    )


@pytest.mark.requirement("channel.roles")
async def test_the_owner_hands_over_and_leaves(bench: Bench) -> None:
    town = await open_town(bench, 1)
    (one,) = town.members
    assert code(await town.call("leave_channel", town.owner)) == "bad_request"
    given = await town.call("transfer_channel", town.owner, new_owner_agent_id=one.agent)
    assert (given["owner_agent_id"], given["role"]) == (one.agent, "member")
    assert (await town.call("leave_channel", town.owner))["left"]
    members = (await town.call("list_channel_members", one))["members"]
    assert [(each["agent_id"], each["role"]) for each in members] == [(one.agent, "owner")]
    events = await bench.store.events(f"agent:{one.agent}", 0)
    assert [json.loads(each.data)["what"] for each in events] == ["channel_transferred"]


@pytest.mark.requirement("channel.roles")
async def test_who_is_not_the_owner_is_told_nothing_of_agents(bench: Bench) -> None:
    town = await open_town(bench, 1, private=True)
    later = bench.clock.now_ms() + 1_000_000
    guest = await make_agent(bench, "guest", tier="unclaimed", expires_at=later)
    nobody = "ag_00000000000000000000000000"
    for target in (guest.agent, nobody, town.owner.agent):
        invited = await town.call("invite_agent_to_channel", town.members[0], invited_agent_id=target)
        given = await town.call("transfer_channel", town.members[0], new_owner_agent_id=target)
        assert (code(invited), code(given)) == ("not_a_party", "not_a_party")
    outside = [
        await town.call("transfer_channel", town.owner, new_owner_agent_id=target)
        for target in (guest.agent, nobody)
    ]
    assert code(outside[0]) == "not_found"
    assert outside[0] == outside[1]


@pytest.mark.requirement("channel.size")
async def test_bodies_and_metadata_have_limits_and_metadata_is_kept_canonical(bench: Bench) -> None:
    town = await open_town(bench, 0)
    assert code(await town.send(town.owner, BIG)) == "accepted"
    refused = await town.send(town.owner, BIG + "x")
    assert (code(refused), refused.detail) == ("too_large", {"path": "body", "limit": 16_384, "size": 16_385})
    assert code(await town.send(town.owner, "")) == "bad_request"

    async def send(metadata: str) -> Any:
        text = f'{{"channel_id":"{town.id}","body":"x","metadata":{metadata}}}'
        return await bench.broker.call(town.owner, "send_channel_message", text.encode())

    assert code(await send('{"b": 1.0, "a": [2e0, "\\u00e9"]}')) == "accepted"
    assert code(await send('{"a":"%s"}' % ("x" * 4088))) == "accepted"
    refused = await send('{"a":"%s"}' % ("x" * 4089))
    assert (code(refused), refused.detail["size"]) == ("too_large", 4097)
    for wrong in (
        '{"a":1,"a":2}',
        '{"a":9007199254740993}',
        "[1]",
        '"x"',
        "7",
        '{"a":%s}' % ("[" * 40 + "]" * 40),
    ):
        refused = await send(wrong)
        assert (code(refused), refused.detail["path"].split(".")[0]) == ("bad_request", "metadata"), wrong
    assert code(await send("null")) == "accepted"
    entries = await bench.store.entries(f"channel:{town.id}")
    assert entries[1].data.endswith('"metadata":{"a":[2,"é"],"b":1}}'.encode())
    assert b"metadata" not in entries[3].data
    message = (await town.call("get_channel_history", town.owner))["messages"][1]
    assert message["metadata"] == {"a": [2, "é"], "b": 1}


@pytest.mark.requirement("channel.history")
async def test_history_is_read_by_seq_from_either_end(bench: Bench) -> None:
    town = await open_town(bench, 1)
    for at in range(1, 13):
        await town.send(town.owner if at % 2 else town.members[0], f"{at}")

    async def read(**params: Any) -> list[int]:
        page = await town.call("get_channel_history", town.members[0], **params)
        assert page["head"] == 12
        assert [each["body"] for each in page["messages"]] == [f"{each['seq']}" for each in page["messages"]]
        return [each["seq"] for each in page["messages"]]

    assert await read() == list(range(1, 13))
    assert await read(limit=3) == [10, 11, 12]
    assert await read(limit=3, before_seq=10) == [7, 8, 9]
    assert await read(limit=3, before_seq=1) == []
    assert await read(limit=3, before_seq=0) == []
    assert await read(limit=3, after_seq=0) == [1, 2, 3]
    assert await read(after_seq=11) == [12]
    assert await read(after_seq=12) == []
    assert await read(after_seq=2**53 - 1) == []
    assert await read(after_seq=3, before_seq=6) == [4, 5]
    assert await read(after_seq=6, before_seq=3) == []
    for limit in (0, 101):
        assert code(await town.call("get_channel_history", town.owner, limit=limit)) == "bad_request"


@pytest.mark.requirement("channel.history")
async def test_a_page_of_large_messages_ends_early_and_goes_on_by_seq(bench: Bench) -> None:
    town = await open_town(bench, 0)
    for _ in range(30):
        await town.send(town.owner, "x" * 16_384)
    last = [each["seq"] for each in (await town.call("get_channel_history", town.owner))["messages"]]
    assert last == list(range(31 - len(last), 31))
    assert 10 < len(last) < 16
    seen: list[int] = []
    while len(seen) < 30:
        page = await town.call("get_channel_history", town.owner, after_seq=len(seen))
        seen += [each["seq"] for each in page["messages"]]
    assert seen == list(range(1, 31))


@pytest.mark.requirement("channel.gone")
async def test_an_agent_that_is_gone_vanishes_from_the_members(bench: Bench) -> None:
    town = await open_town(bench, 2)
    later = bench.clock.now_ms() + 5
    short = await make_agent(bench, "short", tier="unclaimed", expires_at=later)
    await town.call("join_channel", short)
    names = [each["name"] for each in (await town.call("list_channel_members", town.owner))["members"]]
    assert names[:3] == ["town-owner", "town-0", "town-1"]
    bench.clock.step(1000)
    names = [each["name"] for each in (await town.call("list_channel_members", town.owner))["members"]]
    assert names == ["town-owner", "town-0", "town-1"]


@pytest.mark.requirement("channel.gone")
async def test_a_suspended_agent_looks_like_none_until_it_is_back(bench: Bench) -> None:
    town = await open_town(bench, 2, private=True)
    held, other = town.members[0], await make_agent(bench, "other")
    for agent in (held, other):
        await bench.call("suspend_agent", OPERATOR, agent_id=agent.agent, reason="x")
    members = (await town.call("list_channel_members", town.owner))["members"]
    assert [each["name"] for each in members] == ["town-owner", "town-1"]
    for tool, param, agent in (
        ("invite_agent_to_channel", "invited_agent_id", other.agent),
        ("transfer_channel", "new_owner_agent_id", held.agent),
    ):
        assert await town.call(tool, town.owner, **{param: agent}) == NO_AGENT
    await bench.call("unsuspend_agent", OPERATOR, agent_id=held.agent)
    assert len((await town.call("list_channel_members", town.owner))["members"]) == 3
    assert code(await town.call("transfer_channel", town.owner, new_owner_agent_id=held.agent)) == "accepted"


@pytest.mark.requirement("channel.history")
async def test_lists_are_paged_by_a_cursor_and_say_each_once(bench: Bench) -> None:
    town = await open_town(bench, 6)
    me = town.members[0]
    ids = [town.id]
    for at in range(4):
        made = await bench.call("create_channel", town.owner, name=f"public-{at}")
        ids.append(made["channel_id"])
    for at in range(5):
        made = await bench.call("create_channel", town.owner, name=f"private-{at}", is_private=True)
        ids.append(made["channel_id"])
        await bench.call(
            "invite_agent_to_channel", town.owner, channel_id=made["channel_id"], invited_agent_id=me.agent
        )

    async def walk(tool: str, member: str, who: Caller, limit: int, **params: Any) -> list[Any]:
        found: list[Any] = []
        page = await bench.call(tool, who, limit=limit, **params)
        for _ in range(20):
            assert len(page[member]) <= limit
            found += page[member]
            if "next" not in page:
                return found
            page = await bench.call(tool, who, limit=limit, after=page["next"], **params)
        raise AssertionError("it does not end")

    for limit in (1, 2, 3, 5, 9, 10, 50):
        found = await walk("list_channels", "channels", me, limit)
        assert [each["channel_id"] for each in found] == ids, limit
        members = await walk("list_channel_members", "members", me, limit, channel_id=town.id)
        assert [each["agent_id"] for each in members] == [each.agent for each in (town.owner, *town.members)]
    for wrong in ("x", "public-", "channel-1", "public-1x", "1"):
        assert code(await bench.call("list_channels", me, after=wrong)) == "bad_request"
    assert code(await town.call("list_channel_members", me, after="public-1")) == "bad_request"


async def test_members_of_a_public_channel_are_shown_to_anybody(bench: Bench) -> None:
    town = await open_town(bench, 1)
    stranger = await make_agent(bench, "stranger")
    assert len((await town.call("list_channel_members", stranger))["members"]) == 2
    assert code(await town.call("get_channel_history", stranger)) == "not_a_party"
    assert code(await town.send(stranger)) == "not_a_party"


@pytest.mark.requirement("idempotency.same")
async def test_a_message_sent_twice_under_a_key_stands_there_once_also_after_a_restart() -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 1)
        first = await town.send(town.owner, "x", idempotency_key="k1")
        assert await town.send(town.owner, "x", idempotency_key="k1") == first
    async with open_bench(store=bench.store, clock=bench.clock) as bench:
        town.bench = bench
        assert await town.send(town.owner, "x", idempotency_key="k1") == first
        assert code(await town.send(town.owner, "y", idempotency_key="k1")) == "IDEMPOTENCY_MISMATCH"
        assert (await town.send(town.owner, "y"))["seq"] == 2
        made = await bench.call("create_channel", town.owner, name="new", idempotency_key="k2")
        assert await bench.call("create_channel", town.owner, name="new", idempotency_key="k2") == made


async def test_a_suspended_agent_and_one_without_the_scope_are_refused(bench: Bench) -> None:
    town = await open_town(bench, 1)
    narrow = msgspec.structs.replace(caller_of(bench, str(town.owner.agent)), scopes=frozenset({"message"}))
    assert code(await town.send(narrow)) == "insufficient_scope"
    assert code(await town.send(Caller())) == "unauthenticated"


async def test_what_is_said_in_a_channel_is_the_senders_name_of_that_time(bench: Bench) -> None:
    town = await open_town(bench, 0)
    late = await enter(town, "Late")
    await town.send(late)
    (message,) = (await town.call("get_channel_history", town.owner))["messages"]
    assert (message["agent_id"], message["name"]) == (late.agent, "Late")


@pytest.mark.requirement("channel.operator")
async def test_an_operator_makes_a_channel_that_the_agent_owns(bench: Bench) -> None:
    owner, other = await make_agent(bench, "owner"), await make_agent(bench, "other")
    made = await bench.call(
        "create_channel", OPERATOR, name="square", owner_agent_id=owner.agent, is_private=True, topic="all"
    )
    assert (made["owner_agent_id"], made["topic"]) == (owner.agent, "all")
    (listed,) = (await bench.call("list_channels", owner))["channels"]
    assert (listed["channel_id"], listed["role"]) == (made["channel_id"], "owner")
    invited = await bench.call(
        "invite_agent_to_channel", owner, channel_id=made["channel_id"], invited_agent_id=other.agent
    )
    assert invited["role"] == "invited"
    again = await bench.call("create_channel", OPERATOR, name="square", owner_agent_id=owner.agent)
    assert code(again) == "already_exists"


@pytest.mark.requirement("channel.operator", "channel.unclaimed")
async def test_it_is_refused_for_who_may_own_none_and_for_nobody(bench: Bench) -> None:
    later = bench.clock.now_ms() + 1_000_000
    guest = await make_agent(bench, "guest", tier="unclaimed", expires_at=later)
    refused = await bench.call("create_channel", OPERATOR, name="square", owner_agent_id=guest.agent)
    assert code(refused) == "quota_exceeded"
    nobody = "ag_00000000000000000000000000"
    assert code(await bench.call("create_channel", OPERATOR, name="sq", owner_agent_id=nobody)) == "not_found"
    agent = await make_agent(bench, "agent")
    # Without the operators' right the name is the agents' own tool, which takes no owner.
    assert (
        code(await bench.call("create_channel", agent, name="sq", owner_agent_id=agent.agent))
        == "bad_request"
    )


@pytest.mark.requirement("moderation.full-disk")
async def test_where_the_disk_is_short_no_channel_is_made_and_no_message_taken() -> None:
    async with open_bench() as bench:
        ann = await make_agent(bench, "Ann")
        town = (await bench.call("create_channel", ann, name="town"))["channel_id"]
        bench.store.free = 0  # type: ignore[attr-defined]  # the memory store's
        for name, caller, params in (
            ("create_channel", ann, {"name": "other"}),
            ("create_channel", OPERATOR, {"name": "other", "owner_agent_id": ann.agent}),
            ("send_channel_message", ann, {"channel_id": town, "body": "hello"}),
        ):
            assert code(await bench.call(name, caller, **params)) == "unavailable", name
        assert (await bench.call("get_channel_history", ann, channel_id=town))["messages"] == []


@pytest.mark.requirement("moderation.channels", "moderation.wrong-ids")
async def test_operators_hand_a_channel_over_to_who_may_own_one(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=bench.clock.now_ms() + 10**9)
    town = (await bench.call("create_channel", ann, name="town"))["channel_id"]
    for channel_id, agent_id, expected, path in (
        (town, "ag_01KVY19F5JERCW57K0QBWQ1Y7N", "not_found", "new_owner_agent_id"),
        ("ch_01KVY19F5JERCW57K0QBWQ1Y7N", ann.agent, "not_found", "channel_id"),
        (town, young.agent, "quota_exceeded", None),
    ):
        params = {"channel_id": channel_id, "new_owner_agent_id": agent_id}
        answer = await bench.call("transfer_channel", OPERATOR, **params)
        assert (code(answer), answer.detail.get("path")) == (expected, path)
    same = await bench.call("transfer_channel", OPERATOR, channel_id=town, new_owner_agent_id=ann.agent)
    assert (same["owner_agent_id"], same["members"]) == (ann.agent, 1)
    missing = await bench.call(
        "create_channel", OPERATOR, name="x1", owner_agent_id="ag_01KVY19F5JERCW57K0QBWQ1Y7N"
    )
    assert (code(missing), missing.detail["path"]) == ("not_found", "owner_agent_id")
