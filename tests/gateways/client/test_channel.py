"""A channel is read in its order, without a hole, however slow the reader and whatever breaks."""

import pytest
import trio
from trio.testing import MockClock

from broker.wire.refusals import refuse
from gateways import jsonrpc
from gateways.client import channel as module
from gateways.client.channel import Channel
from gateways.client.errors import Missed, Refused, WireFault
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_network import CHANNEL, FakeNetwork


async def take(channel: Channel, count: int) -> list[int]:
    """The numbers of the next messages."""
    with trio.fail_after(120):
        return [(await anext(channel)).seq for _ in range(count)]


async def test_it_is_read_from_now_from_a_seq_or_from_the_first(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    for number in range(5):
        await network.say(str(number))
    async with agent() as me:
        async with me.channel(CHANNEL) as channel:
            await network.say("5")
            post = await anext(channel)
            assert (post.seq, post.body, channel.seq) == (6, "5", 6)
        async with me.channel(CHANNEL, after_seq=2) as channel:
            assert await take(channel, 4) == [3, 4, 5, 6]
        async with me.channel(CHANNEL, after_seq=0) as channel:
            assert await take(channel, 6) == [1, 2, 3, 4, 5, 6]
        await network.say("7")
    assert network.sent("unfollow") == [b'{"channel":"%s"}' % CHANNEL.encode()] * 3


@pytest.mark.requirement("client.agent-channel")
async def test_breaks_in_the_middle_leave_no_hole_and_repeat_nothing(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me, me.channel(CHANNEL) as channel:
        got: list[int] = []
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                for number in range(60):
                    await network.say(str(number))
                    await trio.sleep(0.1)

            nursery.start_soon(write)
            with trio.fail_after(120):
                async for post in channel:
                    got.append(post.seq)
                    if len(got) % 7 == 0:
                        await network.drop_all(*[(), (4008,), (1012,)][len(got) % 3])
                    if len(got) == 60:
                        break
        assert got == list(range(1, 61))
    follows = network.sent("follow")
    assert len(follows) > 5
    assert all(b"after_seq" in each for each in follows[1:])


@pytest.mark.requirement("client.agent-channel")
async def test_a_slow_reader_has_a_bounded_room_and_reads_the_rest_from_the_history(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM", 10)
    monkeypatch.setattr(module, "PAGE", 7)
    async with agent() as me, me.channel(CHANNEL) as channel:
        for number in range(40):
            await network.say(str(number))
        await trio.testing.wait_all_tasks_blocked()
        assert len(channel._posts) == 10
        assert await take(channel, 25) == list(range(1, 26))
        await network.say("40")
        assert await take(channel, 16) == list(range(26, 42))
        await network.drop_all()
        await network.say("41")
        assert await take(channel, 1) == [42]


@pytest.mark.requirement("client.agent-channel")
async def test_what_is_gone_for_good_is_said_once_and_reading_goes_on(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    network.lost[CHANNEL] = 10
    await network.say("eleven")
    async with agent() as me, me.channel(CHANNEL, after_seq=3) as channel:
        with pytest.raises(Missed, match="trimmed"):
            await anext(channel)
        assert await take(channel, 1) == [11]


@pytest.mark.requirement("client.agent-channel")
async def test_after_a_restore_the_channels_new_story_is_told_from_where_it_goes_on(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me, me.channel(CHANNEL) as channel:
        for number in range(8):
            await network.say(str(number))
        assert await take(channel, 6) == list(range(1, 7))  # the seventh and the eighth wait
        del network.posts[CHANNEL][5:]
        await network.drop_all()
        await trio.sleep(20)
        for number in (6, 7):
            await network.say(f"another {number}")
        with pytest.raises(Missed, match="future"):
            await anext(channel)
        posts = [await anext(channel) for _ in range(2)]
        await network.say("another 8")
        posts.append(await anext(channel))
        assert [(post.seq, post.body) for post in posts] == [(n, f"another {n}") for n in (6, 7, 8)]


@pytest.mark.requirement("client.agent-channel")
async def test_cancelling_in_the_middle_of_the_history_loses_none(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM", 2)
    async with agent() as me, me.channel(CHANNEL) as channel:
        for number in range(5):
            await network.say(str(number))
        assert await take(channel, 2) == [1, 2]
        network.script("get_channel_history", "swallow")
        with trio.move_on_after(1):
            raise AssertionError(await anext(channel))
        assert await take(channel, 3) == [3, 4, 5]


async def test_a_history_that_begins_before_what_was_asked_is_a_fault(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me, me.channel(CHANNEL) as channel:
        for number in range(3):
            await network.say(str(number))
        assert await take(channel, 3) == [1, 2, 3]
        row = network.posts[CHANNEL][0]
        network.script("get_channel_history", lambda _: {"messages": [row], "head": 9})
        channel.resumed(9, None)
        with pytest.raises(WireFault, match="begins with 1"):
            await anext(channel)


async def test_who_is_removed_reads_what_came_before_and_hears_why(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        async with me.channel(CHANNEL) as channel:
            await network.say("one")
            no = refuse("not_a_party", "you are not a member of this channel")
            note = jsonrpc.notification("ended", {"channel": CHANNEL, "refusal": no.body()})
            await network.sessions[0].send(note)
            assert await take(channel, 1) == [1]
            for _ in range(2):
                with pytest.raises(Refused, match="not_a_party"):
                    await anext(channel)
        await me.whoami()
    assert network.sent("unfollow") == []


async def test_who_was_removed_while_away_hears_it_and_others_go_on(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    other = CHANNEL[:-1] + "D"
    network.members.add(other)
    async with agent() as me, me.channel(CHANNEL) as channel, me.channel(other) as kept:
        network.members.remove(CHANNEL)
        await network.drop_all()
        with trio.fail_after(30), pytest.raises(Refused, match="not_a_party"):
            await anext(channel)
        await network.say("still there", other)
        assert await take(kept, 1) == [1]


async def test_a_member_writes_and_who_is_none_joins_first(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    network.members.clear()

    def sent(session: object, params: object) -> dict[str, object]:
        return {"channel_id": CHANNEL, "seq": 7, "message_id": "msg_1", "at": 1}

    network.do_send_channel_message = sent  # type: ignore[attr-defined]
    async with agent() as me, me.channel(CHANNEL) as channel:
        assert network.members == {CHANNEL}
        assert (await channel.send("hello", {"a": 1})).seq == 7
        with pytest.raises(ValueError, match="open already"):
            async with me.channel(CHANNEL):
                pass
    (params,) = network.sent("send_channel_message")
    assert b'"metadata":{"a":1}' in params
    assert b'"idempotency_key"' in params


async def test_a_channel_is_found_by_its_name_on_any_page_or_not_at_all(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    pages = {
        None: {"channels": [{"channel_id": "ch_other", "name": "other"}], "next": "p.1"},
        "p.1": {"channels": [{"channel_id": CHANNEL, "name": "desk-talk"}]},
    }

    def listed(session: object, params: dict[str, bytes]) -> object:
        after = bytes(params["after"]).decode().strip('"') if "after" in params else None
        return pages[after]

    network.do_list_channels = listed  # type: ignore[attr-defined]
    async with agent() as me:
        async with me.channel("desk-talk") as channel:
            assert channel.channel_id == CHANNEL
        with pytest.raises(Refused, match="not_found"):
            async with me.channel("nobodys"):
                pass
