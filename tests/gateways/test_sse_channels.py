"""`GET /channels/<id>`: a channel's messages as events, for its members' tokens."""

from typing import Any

import pytest
import trio

from gateways.metrics import Metrics
from gateways.sse import channels_app
from gateways.web import web_app
from tests.support.agents import make_agent, suspend
from tests.support.broker import Bench
from tests.support.channels import SseFollower, open_town
from tests.support.tokens import FakeBearers, gate_of


class Door:
    """The door before a broker, and its clients' tokens."""

    def __init__(self, bench: Bench) -> None:
        self.bearers = FakeBearers(bench.broker)
        self.gate = gate_of(bench.broker, self.bearers)[0]
        self.app = channels_app(bench.broker, gate=self.gate)


@pytest.mark.requirement("channel.doors", "channel.resume")
@pytest.mark.parametrize("whole", [False, True])
async def test_resume_says_from_which_seq_and_messages_follow(bench: Bench, whole: bool) -> None:
    town = await open_town(bench, 1)
    for at in range(3):
        await town.send(town.owner, f"line\n\nevent: x{at}")
    door = Door(bench)
    door.bearers.give("t", town.members[0], until=bench.ts + 900)
    app = web_app(bench.broker, Metrics(bench.broker), gate=door.gate) if whole else door.app
    follower = SseFollower(app, town.id, "t", "after_seq=1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follower.run)
        events = await follower.wait(3)
        assert follower.status == 200
        assert (events[0][0], events[0][1]["from_seq"], events[0][1]["head_seq"]) == ("resume", 1, 3)
        assert [(name, each["seq"], each["body"]) for name, each in events[1:]] == [
            ("channel_message", at + 1, f"line\n\nevent: x{at}") for at in (1, 2)
        ]
        await town.send(town.owner)
        await follower.wait(4)
        follower.left.set()
    by_cursor = SseFollower(app, town.id, "t", f"after={events[1][1]['cursor']}")
    by_header = SseFollower(app, town.id, "t", "after_seq=0")
    by_header._scope["headers"] += [(b"last-event-id", events[1][1]["cursor"].encode())]  # type: ignore[operator]
    async with trio.open_nursery() as nursery:
        for each in (by_cursor, by_header):
            nursery.start_soon(each.run)
            assert [event["seq"] for _, event in (await each.wait(3))[1:]] == [3, 4]
            each.left.set()


@pytest.mark.requirement("channel.cut-off", "channel.doors")
@pytest.mark.parametrize(("how", "why"), [("removed", "not_a_party"), ("suspended", "suspended")])
async def test_the_stream_says_why_it_ends(bench: Bench, how: str, why: str) -> None:
    town = await open_town(bench, 1)
    (one,) = town.members
    door = Door(bench)
    door.bearers.give("t", one, until=bench.ts + 900)
    follower = SseFollower(door.app, town.id, "t")
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.run)
            await follower.wait(1)
            if how == "removed":
                await town.call("remove_channel_member", town.owner, target_agent_id=one.agent)
            else:
                suspend(bench, one)
    name, said = follower.events[-1]
    assert (name, said["reason"], said["refusal"]["code"]) == ("closed", why, why)
    assert len(bench.broker._services.followers) == 0


@pytest.mark.requirement("channel.private", "channel.doors")
async def test_who_may_not_follow_gets_a_status_and_no_stream(bench: Bench) -> None:
    town = await open_town(bench, 1, private=True)
    door = Door(bench)
    stranger = await make_agent(bench, "stranger")
    door.bearers.give("stranger", stranger)
    door.bearers.give("member", town.members[0])
    door.bearers.give("poor", town.members[0], scopes=frozenset({"message"}))

    async def refused(name: str, token: str, query: str = "") -> tuple[int, bytes]:
        follower = SseFollower(door.app, name, token, query)
        follower._decoder.feed = lambda _: []  # type: ignore[method-assign]  # it is no stream
        with trio.fail_after(5):
            await follower.run()
        return follower.status, follower.body

    foreign: Any = await refused(town.id, "stranger")
    assert foreign == await refused("ch_00000000000000000000000000", "stranger")
    assert foreign[0] == 404
    assert (await refused("town", "member"))[0] == 404
    assert (await refused(town.id, "bad"))[0] == 401
    assert (await refused(town.id, "poor"))[0] == 403
    for query in (
        "after_seq=x",
        "after_seq=-1",
        "after_seq=1&after=0",
        "after=" + "x" * 200,
        "after_seq=" + "9" * 16,
    ):
        assert (await refused(town.id, "member", query))[0] == 400, query
