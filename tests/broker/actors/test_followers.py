"""Who follows which channel: all of one's streams end together, and only those."""

import pytest
import trio

from broker.actors.followers import Followers
from broker.actors.streams import Ended, Hub
from broker.clock import VirtualClock
from broker.config import Streams
from broker.wire.refusals import Refusal, refuse
from tests.support.streams import SteppedStore, Writer

pytestmark = pytest.mark.requirement("channel.cut-off")
WHY = refuse("not_found", "there is no channel of this id")


def test_what_an_agent_follows_of_a_channel_ends_together() -> None:
    followers = Followers()
    ended: list[tuple[str, Refusal]] = []
    with (
        followers.hold("ch", "a", lambda why: ended.append(("one", why))),
        followers.hold("ch", "a", lambda why: ended.append(("two", why))),
        followers.hold("ch", "b", lambda why: ended.append(("b", why))),
        followers.hold("other", "a", lambda why: ended.append(("other", why))),
    ):
        followers.end("ch", "a", WHY)
        assert ended == [("one", WHY), ("two", WHY)]
        assert followers.live("ch", "a")
    followers.end("ch", "b", WHY)
    assert len(ended) == 2
    assert not followers.live("ch", "a")
    assert len(followers) == 0


def test_one_follows_until_the_last_of_its_streams_ends() -> None:
    followers = Followers()
    with followers.hold("ch", "a", lambda _: None):
        with followers.hold("ch", "a", lambda _: None):
            pass
        assert followers.live("ch", "a")
    assert not followers.live("ch", "a")


async def test_an_end_at_once_gives_nothing_more_of_what_was_committed(clock: VirtualClock) -> None:
    store = SteppedStore()
    hub, writer = Hub(store, Streams(), clock), Writer(store)
    await writer.write(200)
    async with await hub.read("pk:aa", "0") as behind, await hub.read("pk:aa", None) as live:
        assert len(await behind.receive()) == 128
        await writer.write(1)
        for reader, position in ((behind, 128), (live, 200)):
            reader.end(WHY, at_once=True)
            with trio.fail_after(5), pytest.raises(Ended):
                await reader.receive()
            assert reader.position == position
