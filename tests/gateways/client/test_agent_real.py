"""Agents at the real broker, in memory and on virtual time: hours pass, connections break, rights end."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from broker.actors.agent import AddKey
from broker.wire.keys import SigningKey
from gateways.client.agent import Agent
from gateways.client.errors import Missed, Refused
from tests.gateways.client.real_network import RealNetwork, real_network
from tests.support.agents import caller_of, make_agent, suspend
from tests.support.broker import tuned

SCOPES = ["message", "channel"]


@pytest.fixture
async def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealNetwork]:
    async with real_network(tmp_path, monkeypatch) as network:
        yield network


async def standard(net: RealNetwork, name: str, stack: AsyncExitStack) -> Agent:
    """An agent that an operator has registered."""
    key = SigningKey.generate()
    caller = await make_agent(net.bench, name, key=key)
    return await stack.enter_async_context(net.agent(key, caller.agent))


async def two(net: RealNetwork, stack: AsyncExitStack) -> tuple[Agent, Agent]:
    """Two agents that have agreed."""
    alfa, brav = await standard(net, "alfa", stack), await standard(net, "brav", stack)
    assert brav.agent_id is not None
    request = await alfa.request_contact(brav.agent_id, "prices", SCOPES)
    await brav.respond(await anext(brav.requests()), True)
    outcome = await alfa.outcome(request)
    assert outcome.status == "accepted"
    return alfa, brav


async def another_key(net: RealNetwork, me: Agent) -> str:
    """An operator adds a key; the kid of the first one."""
    (first,) = (await me.call("list_my_public_keys"))["keys"]
    house = net.bench.broker._services.house
    await house.ask("agent", str(me.agent_id), AddKey(SigningKey.generate().pk, "another"))
    return str(first["kid"])


@pytest.mark.requirement("client.agent-register", "client.agent-token", "client.agent-once")
async def test_two_strangers_register_agree_and_talk_for_hours_over_one_connection_each(
    autojump_clock: MockClock, net: RealNetwork, alfa: SigningKey, brav: SigningKey
) -> None:
    async with net.agent(alfa) as one, net.agent(brav) as other:
        made, _ = await one.register("alfa"), await other.register("brav")
        assert made.claim_code
        assert other.agent_id is not None
        request = await one.request_contact(other.agent_id, "prices")
        async for asked in other.requests():
            assert (asked.request_id, asked.purpose) == (request.request_id, "prices")
            await other.respond(asked, True)
            break
        (agreement,) = await one.contacts()
        assert (agreement.agreement_id, agreement.scopes) == (
            (await one.outcome(request)).agreement_id,
            ("message",),
        )
        questions, answers = other.inbox(), one.inbox()
        for part in range(3):
            await one.send(other.agent_id, f"question {part}")
            message = await anext(questions)
            assert (message.body, message.from_name) == (f"question {part}", "alfa")
            for _ in range(2):  # the second time as after a crash
                await other.reply(message, f"answer {part}")
            assert (await anext(answers)).in_reply_to == message.message_id
            await other.mark_read(message)
            await trio.sleep(1200)
        await one.revoke(agreement)
        for _ in range(2):
            with pytest.raises(Refused, match="agreement_required"):
                await other.reply(message, "and now?")
        renewed = await other.request_contact(message.from_agent_id, "and now")
        await one.respond(await anext(one.requests()), True)
        assert (await other.outcome(renewed)).status == "accepted"
        await other.reply(message, "and now?")
        assert (await anext(answers)).body == "and now?"
    assert len(net.connections) == 2


@pytest.mark.requirement("client.agent-inbox", "client.agent-once")
async def test_messages_between_broken_connections_arrive_each_once_and_in_order(
    autojump_clock: MockClock, net: RealNetwork
) -> None:
    async with AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)
        assert brav.agent_id is not None
        got: list[str] = []

        async def write(to: str) -> None:
            for number in range(30):
                await alfa.send(to, str(number))
                await trio.sleep(0.2)

        async def disturb() -> None:
            while True:
                await trio.sleep(0.37)
                await net.cut()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, brav.agent_id)
            nursery.start_soon(disturb)
            with trio.fail_after(600):
                async for message in brav.inbox():
                    got.append(message.body)
                    if len(got) == 30:
                        break
            nursery.cancel_scope.cancel()
        assert got == [str(number) for number in range(30)]
        listed = await brav.call("get_inbox", limit=100)
        assert len(listed["messages"]) == 30
    assert len(net.connections) > 20


@pytest.mark.requirement("client.agent-channel")
async def test_a_private_channel_is_read_without_a_hole_by_who_was_invited(
    autojump_clock: MockClock, net: RealNetwork
) -> None:
    async with AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)
        channel_id = await alfa.create_channel("desk-talk", private=True, topic="EURUSD")
        with pytest.raises(Refused, match="not_found"):
            async with brav.channel(channel_id):
                pass
        mine = await stack.enter_async_context(alfa.channel(channel_id))
        await mine.invite(str(brav.agent_id))
        theirs = await stack.enter_async_context(brav.channel("desk-talk"))
        assert {each["role"] for each in await mine.members()} == {"owner", "member"}

        async def write() -> None:
            for number in range(40):  # beyond what a member may say in a minute
                assert (await mine.send(str(number), {"n": number})).seq == number + 1
                if number % 9 == 4:
                    await net.cut()

        got = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            with trio.fail_after(300):
                async for post in theirs:
                    got.append((post.seq, post.body, post.metadata))
                    if post.seq == 40:
                        break
        assert got == [(number + 1, str(number), {"n": number}) for number in range(40)]
        assert [post.seq for post in await theirs.history(3, before_seq=11)] == [8, 9, 10]
        await alfa.call("remove_channel_member", channel_id=channel_id, target_agent_id=brav.agent_id)
        with trio.fail_after(5), pytest.raises(Refused, match="not_found"):
            await anext(theirs)


@pytest.mark.requirement("client.agent-catch-up", "client.agent-channel")
async def test_what_the_streams_keep_no_more_is_read_from_inbox_and_history(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = tuned(streams={"keep_days": 0.0, "keep_events": 1}, store={"sweep_s": 5.0})
    async with real_network(tmp_path, monkeypatch, forgetful) as net, AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)
        inbox, to = brav.inbox(), str(brav.agent_id)
        await alfa.send(to, "0")
        assert (await anext(inbox)).body == "0"
        async with alfa.channel(await alfa.create_channel("talk")) as channel:
            for number in range(1, 130):
                await alfa.send(to, str(number))
                if number < 30:
                    await channel.send(str(number))
        await trio.sleep(30)
        with trio.fail_after(60):
            assert [(await anext(inbox)).body for _ in range(129)] == [str(n) for n in range(1, 130)]
            async with brav.channel("talk", after_seq=0) as channel:
                assert [(await anext(channel)).seq for _ in range(29)] == list(range(1, 30))
        with pytest.raises(Missed, match="trimmed"):
            await anext(alfa.events())


@pytest.mark.requirement("client.agent-revoked")
@pytest.mark.parametrize("how", ["key revoked", "suspended"])
async def test_who_loses_its_right_is_out_within_a_second_and_does_not_come_back(
    autojump_clock: MockClock, net: RealNetwork, how: str
) -> None:
    async def stay() -> None:
        async with AsyncExitStack() as stack:
            me = await standard(net, "alfa", stack)
            assert me.agent_id is not None
            if how == "suspended":
                suspend(net.bench, caller_of(net.bench, me.agent_id))
            else:
                await me.call("revoke_my_public_key", kid=await another_key(net, me))
            with trio.fail_after(3):
                async for message in me.inbox():
                    raise AssertionError(message)

    with pytest.raises(Refused, match=r"unauthenticated|suspended"):
        await stay()
    opened = len(net.connections)
    await trio.sleep(600)
    assert len(net.connections) == opened == 1


async def test_the_agents_key_is_its_desk_and_its_ring_is_an_event(
    autojump_clock: MockClock, net: RealNetwork
) -> None:
    async with AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)
        events = alfa.events()
        async with alfa.dealer("ALFA") as desk, brav.dealer("BRAV") as other:
            assert desk.pk == alfa.pk

            async def answer() -> None:
                ring = await desk.next_ring()
                async with ring.answer() as call:
                    await call.wait_ended()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                async with other.dial("ALFA") as call:
                    await call.send("RFQ", {"qty": "1"})
            with trio.fail_after(10):
                kinds = [(await anext(events)).kind for _ in range(6)]
            assert kinds == ["contact", "agreement", "ring", "env", "env", "end"]
        assert (await brav.call("get_agent", agent_id=alfa.agent_id))["desk"]["code"] == "ALFA"
