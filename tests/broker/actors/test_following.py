"""Who follows which channel: all of one's streams end together, and only those."""

import pytest

from broker.actors.following import Following
from broker.wire.refusals import Refusal, refuse

pytestmark = pytest.mark.requirement("channel.cut-off")
WHY = refuse("not_found", "there is no channel of this id")


def test_what_an_agent_follows_of_a_channel_ends_together() -> None:
    following = Following()
    ended: list[tuple[str, Refusal]] = []
    with (
        following.hold("ch", "a", lambda why: ended.append(("one", why))),
        following.hold("ch", "a", lambda why: ended.append(("two", why))),
        following.hold("ch", "b", lambda why: ended.append(("b", why))),
        following.hold("other", "a", lambda why: ended.append(("other", why))),
    ):
        following.end("ch", "a", WHY)
        assert ended == [("one", WHY), ("two", WHY)]
        assert following.live("ch", "a")
    following.end("ch", "b", WHY)
    assert len(ended) == 2
    assert not following.live("ch", "a")
    assert len(following) == 0


def test_one_follows_until_the_last_of_its_streams_ends() -> None:
    following = Following()
    with following.hold("ch", "a", lambda _: None):
        with following.hold("ch", "a", lambda _: None):
            pass
        assert following.live("ch", "a")
    assert not following.live("ch", "a")
