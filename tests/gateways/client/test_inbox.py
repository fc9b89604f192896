"""An agent's messages and events: by cursor, each once, whatever breaks in between."""

import pytest
import trio
from trio.testing import MockClock

from broker.wire.refusals import refuse
from gateways.client.errors import Missed
from gateways.client.inbox import Inbox, Message
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_network import OTHER, FakeNetwork


async def take(inbox: Inbox, count: int) -> list[str]:
    """The bodies of the next messages."""
    with trio.fail_after(120):
        return [(await anext(inbox)).body for _ in range(count)]


async def nothing_more(inbox: Inbox) -> None:
    with trio.move_on_after(60):
        raise AssertionError(await anext(inbox))


@pytest.mark.requirement("client.agent-inbox")
async def test_messages_come_from_the_opening_on_or_after_a_cursor(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    network.message("before")
    async with agent() as me:
        network.message("one")
        inbox = me.inbox()
        network.message("two")
        first = await anext(inbox)
        assert first == Message("msg_0002", OTHER, "brav", "one", first.sent_at)
        cursor = inbox.cursor
        assert await take(inbox, 1) == ["two"]
        assert await take(me.inbox(after=cursor), 1) == ["two"]
        assert await take(me.inbox(after="0"), 3) == ["before", "one", "two"]
        await nothing_more(inbox)


@pytest.mark.requirement("client.agent-inbox")
async def test_a_connection_that_breaks_in_the_middle_loses_and_repeats_nothing(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        inbox, got = me.inbox(), list[str]()
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                for number in range(40):
                    network.message(str(number))
                    await trio.sleep(0.3)

            nursery.start_soon(write)
            with trio.fail_after(300):
                async for message in inbox:
                    got.append(message.body)
                    if len(got) == 40:
                        break
                    if len(got) % 7 == 0:  # in the handler of an event
                        await network.drop_all(*[(), (4008,), (1012,)][len(got) % 3])
                    if len(got) % 11 == 0:
                        network.script("wait_for_events", "lose answer", "break after")
        assert got == [str(number) for number in range(40)]
        await nothing_more(inbox)


@pytest.mark.requirement("client.agent-inbox")
async def test_cancelling_loses_none(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        inbox, got = me.inbox(), list[str]()
        for number in range(30):
            network.message(str(number))
            with trio.move_on_after(0.001 * (number % 4)):
                got.append((await anext(inbox)).body)
        got += await take(inbox, 30 - len(got))
        assert got == [str(number) for number in range(30)]


@pytest.mark.requirement("client.agent-catch-up")
@pytest.mark.parametrize("reason", ["trimmed", "epoch_changed", "unknown", "future"])
async def test_what_the_stream_has_no_more_is_read_from_the_inbox(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, reason: str
) -> None:
    async with agent() as me:
        inbox = me.inbox()
        network.message("0")
        await trio.sleep(5)
        assert await take(inbox, 1) == ["0"]
        await network.drop_all()
        for number in range(1, 12):
            network.message(str(number))
        if reason == "trimmed":
            network.trimmed = 9  # the last ones come both ways
        else:
            network.epoch, network.reason = "f", reason
        network.message("12")
        assert await take(inbox, 12) == [str(number) for number in range(1, 13)]
        network.message("13")
        assert await take(inbox, 1) == ["13"]
        await nothing_more(inbox)


@pytest.mark.requirement("client.agent-catch-up")
async def test_cancelling_while_it_is_read_loses_none(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        inbox = me.inbox()
        network.message("0")
        assert await take(inbox, 1) == ["0"]
        await network.drop_all()
        network.message("1")
        network.epoch = "f"
        network.message("2")
        network.script("get_inbox", "swallow")
        with trio.move_on_after(5):
            raise AssertionError(await anext(inbox))
        assert await take(inbox, 2) == ["1", "2"]
        await nothing_more(inbox)


@pytest.mark.requirement("client.agent-catch-up")
async def test_without_anything_to_go_by_it_is_what_is_unread(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    for number in range(8):
        network.message(str(number), read=number < 3)
    async with agent() as me:
        inbox = me.inbox(after="s.of-old.77")
        network.message("8")
        assert await take(inbox, 6) == ["3", "4", "5", "6", "7", "8"]
        await nothing_more(inbox)


async def test_who_starts_again_begins_with_what_is_unread(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    for number in range(5):
        network.message(str(number), read=number % 2 == 0)
    async with agent() as me:
        network.message("5")
        inbox = me.inbox(unread=True)
        network.message("6")
        assert await take(inbox, 4) == ["1", "3", "5", "6"]
        await nothing_more(inbox)


async def test_events_say_that_some_are_missing_and_go_on(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        events = me.events()
        network.happen("contact", {"what": "requested"})
        network.happen("notice", {"what": "x"})
        assert [(await anext(events)).kind for _ in range(2)] == ["contact", "notice"]
        network.happen("agreement", {"what": "made"})
        network.epoch = "f"
        with pytest.raises(Missed, match="epoch_changed") as missed:
            await anext(events)
        assert missed.value.reason == "epoch_changed"
        network.happen("agreement", {"what": "revoked"})
        event = await anext(events)
        assert (event.kind, event.data["what"], event.cursor) == ("agreement", "revoked", "s.f.4")
        assert events.cursor == "s.f.4"


async def test_a_broker_that_does_not_wait_is_not_asked_in_a_loop(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        empty = {"resume": {"recovered": True}, "cursor": "s.e.0", "events": []}
        network.script("wait_for_events", *[lambda _: empty] * 1000)
        await nothing_more(me.inbox())
        assert len(network.sent("wait_for_events")) < 20


async def test_a_passing_refusal_is_waited_out(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        network.script("wait_for_events", refuse("overloaded", "busy", retry_after_ms=9000))
        network.message("one")
        assert await take(me.inbox(), 1) == ["one"]
        assert trio.current_time() >= 9
