"""Channels on a WebSocket connection: followed by a member's token, resumed by seq or cursor, ended with the right."""

import pytest
from trio.testing import wait_all_tasks_blocked

from gateways.session import Session
from tests.support.agents import make_agent, suspend
from tests.support.broker import Bench
from tests.support.channels import open_town
from tests.support.ws import capability, open_session, request

assert Session  # what is tested, through tests.support.ws


@pytest.mark.requirement("channel.doors", "channel.resume")
async def test_a_member_follows_and_goes_on_after_a_seq_or_a_cursor(bench: Bench) -> None:
    town = await open_town(bench, 1)
    await town.send(town.owner, "one")
    async with open_session(bench.broker, town.members[0]) as peer:
        resume = await peer.result("follow", channel=town.id)
        assert (resume["from_seq"], resume["head_seq"]) == (1, 1)
        params = {"channel_id": town.id, "body": "two", "metadata": {"a": 1}}
        await peer.session.receive([request("s", "send_channel_message", **params)])
        frames = await peer.rest()
        (sent,) = [each["result"] for each in frames if "id" in each]
        (event,) = [each for each in frames if "id" not in each]
        assert (event["method"], event["params"]["metadata"]) == ("channel_message", {"a": 1})
        assert {name: event["params"][name] for name in ("seq", "message_id", "at")} == {
            name: sent[name] for name in ("seq", "message_id", "at")
        }
        cursor = event["params"]["cursor"]
        assert (await peer.result("follow", channel=town.id, after_seq=0))["from_seq"] == 0
        assert [each["params"]["body"] for each in await peer.rest()] == ["one", "two"]
        assert (await peer.result("follow", channel=town.id, after=cursor))["from_seq"] == 2
        await town.send(town.owner, "three")
        assert [each["params"]["body"] for each in await peer.rest()] == ["three"]
        assert await peer.result("unfollow", channel="ch_00000000000000000000000000") == {"ended": 0}
        assert await peer.result("unfollow", channel=town.id) == {"ended": 1}
        await town.send(town.owner, "four")
        assert await peer.rest() == []


@pytest.mark.requirement("channel.doors", "channel.unread")
async def test_the_agents_own_stream_tells_of_a_channel_that_is_not_followed_once(bench: Bench) -> None:
    town = await open_town(bench, 1)
    async with open_session(bench.broker, town.members[0]) as peer:
        await peer.result("follow")
        for _ in range(3):
            await town.send(town.owner)
        (event,) = await peer.rest()
        assert event["method"] == "channel"
        assert (event["params"]["channel_id"], event["params"]["seq"]) == (town.id, 1)
        await peer.result("follow", channel=town.id, after_seq=0)
        assert [each["params"]["seq"] for each in await peer.rest()] == [1, 2, 3]
        await town.send(town.owner)
        assert [each["method"] for each in await peer.rest()] == ["channel_message"]


@pytest.mark.requirement("channel.doors", "ws.sends-in-order")
async def test_what_is_sent_without_waiting_stands_in_the_order_in_which_it_was_sent(bench: Bench) -> None:
    town = await open_town(bench, 1)
    async with open_session(bench.broker, town.owner) as peer:
        bodies = [f"{at}" for at in range(20)]
        params = [{"channel_id": town.id, "body": each} for each in bodies]
        await peer.session.receive(
            [request(at, "send_channel_message", **each) for at, each in enumerate(params)]
        )
        assert {each["id"]: each["result"]["seq"] for each in await peer.rest()} == {
            at: at + 1 for at in range(20)
        }
    history = await town.call("get_channel_history", town.owner)
    assert [each["body"] for each in history["messages"]] == bodies


@pytest.mark.requirement("channel.cut-off", "channel.doors")
async def test_who_is_removed_is_told_why_its_stream_ends(bench: Bench) -> None:
    town = await open_town(bench, 2)
    async with (
        open_session(bench.broker, town.members[0]) as peer,
        open_session(bench.broker, town.members[1]) as other,
    ):
        for each in (peer, other):
            await each.result("follow", channel=town.id)
        await town.call("remove_channel_member", town.owner, target_agent_id=town.members[0].agent)
        await town.send(town.owner)
        (ended,) = await peer.rest()
        assert (ended["method"], ended["params"]["channel"]) == ("ended", town.id)
        assert ended["params"]["refusal"]["code"] == "not_a_party"
        assert (await peer.refusal("follow", channel=town.id))["code"] == "not_a_party"
        assert [each["method"] for each in await other.rest()] == ["channel_message"]
        suspend(bench, town.members[1])
        await wait_all_tasks_blocked()
        assert len(bench.broker._services.followers) == 0


@pytest.mark.requirement("channel.private", "channel.doors")
async def test_who_may_not_follow_is_refused_alike(bench: Bench) -> None:
    town = await open_town(bench, 1, private=True)
    alfa = await bench.open("ALFA")
    stranger = await make_agent(bench, "stranger")
    nobody = "ch_00000000000000000000000000"
    async with open_session(bench.broker, stranger) as peer:
        foreign = await peer.refusal("follow", channel=town.id)
        assert foreign == await peer.refusal("follow", channel=nobody)
        assert foreign["code"] == "not_found"
        assert (await peer.refusal("follow", channel="town"))["path"] == "channel"
        assert (await peer.refusal("follow", channel=town.id, after_seq=-1))["path"] == "after_seq"
        assert (await peer.refusal("follow", channel=town.id, code="ALFA"))["code"] == "bad_request"
        proof = capability(alfa, bench)
        assert (await peer.refusal("follow", channel=town.id, **proof))["code"] == "bad_request"
        assert (await peer.refusal("follow", code="ALFA", after_seq=1))["path"] == "after_seq"
    async with open_session(bench.broker) as peer:
        assert (await peer.refusal("follow", channel=town.id))["code"] == "unauthenticated"
