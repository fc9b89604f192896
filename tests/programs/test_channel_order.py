"""All who follow a channel, over WebSocket and over SSE, get the same messages in the same order.

200 of them here, 1,000 in the long run (HYPOTHESIS_PROFILE=soak).
"""

import os
from contextlib import AsyncExitStack

import pytest
import trio

from broker.app import Caller
from gateways.sse import channels_app
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.channels import SseFollower, Town, enter, open_town
from tests.support.tokens import FakeBearers, gate_of
from tests.support.ws import Direct, open_session

FOLLOWERS = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 200
MESSAGES = 30
SPEAKERS = 6


async def followers(town: Town, count: int) -> list[Caller]:
    """Members that only listen."""
    made = []
    for at in range(count):
        agent = await make_agent(town.bench, f"listener-{at}")
        assert code(await town.call("join_channel", agent)) == "accepted"
        made.append(agent)
    return made


@pytest.mark.timeout(300)
@pytest.mark.requirement("channel.order", "channel.doors")
async def test_all_who_follow_get_the_same_messages_in_the_same_order(bench: Bench) -> None:
    town = await open_town(bench, 0)
    speakers = [await enter(town, f"speaker-{at}") for at in range(SPEAKERS)]
    listeners = await followers(town, FOLLOWERS)
    bearers = FakeBearers(bench.broker)
    app = channels_app(bench.broker, gate=gate_of(bench.broker, bearers)[0])
    over_sse = [
        SseFollower(app, town.id, bearers.give(f"t{at}", each, until=bench.ts + 3600))
        for at, each in enumerate(listeners[: FOLLOWERS // 2])
    ]
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        sockets: list[Direct] = []
        for each in listeners[FOLLOWERS // 2 :]:
            sockets.append(await stack.enter_async_context(open_session(bench.broker, each)))
            resume = await sockets[-1].result("follow", channel=town.id)
            assert resume["from_seq"] == 0
        for follower in over_sse:
            nursery.start_soon(follower.run)
            await follower.wait(1)

        async def speak(who: Caller, at: int) -> None:
            for n in range(MESSAGES // SPEAKERS):
                assert code(await town.send(who, f"{at}.{n}")) == "accepted"

        async with trio.open_nursery() as speaking:
            for at, who in enumerate(speakers):
                speaking.start_soon(speak, who, at)
        history = (await town.call("get_channel_history", speakers[0]))["messages"]
        expected = [(each["seq"], each["message_id"], each["body"]) for each in history]
        assert [each[0] for each in expected] == list(range(1, MESSAGES + 1))
        for socket in sockets:
            got = [(await socket.next())["params"] for _ in range(MESSAGES)]
            assert [(each["seq"], each["message_id"], each["body"]) for each in got] == expected
        for follower in over_sse:
            events = (await follower.wait(1 + MESSAGES))[1:]
            assert {name for name, _ in events} == {"channel_message"}
            assert [(each["seq"], each["message_id"], each["body"]) for _, each in events] == expected
            follower.left.set()
