"""Sessions: how long they last, how many, and who is told of their end."""

import pytest
import trio

from gateways.console.sessions import IDLE_S, LIFE_S, MOST, Sessions
from tests.support.operators import OPERATOR


@pytest.mark.requirement("console.sessions-end")
async def test_a_session_ends_unused_after_two_hours_and_in_any_case_after_twelve(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sessions = Sessions()
    secret = sessions.open(OPERATOR)
    began = trio.current_time()
    while trio.current_time() - began < LIFE_S - IDLE_S:
        await trio.sleep(IDLE_S - 1)
        assert sessions.find(secret) is not None
    await trio.sleep(LIFE_S - (trio.current_time() - began))
    assert sessions.find(secret) is None
    unused = sessions.open(OPERATOR)
    await trio.sleep(IDLE_S)
    assert sessions.find(unused) is None


@pytest.mark.requirement("console.sessions-end", "console.live-ends")
async def test_what_a_session_has_open_is_told_of_its_end_once() -> None:
    sessions, told = Sessions(), list[str]()
    secret = sessions.open(OPERATOR)
    session = sessions.find(secret)
    assert session is not None
    session.on_end(lambda: told.append("one"))

    def other() -> None:
        told.append("two")

    session.on_end(other)
    session.forget(other)
    sessions.close(secret)
    sessions.close(secret)
    sessions.close("another's")
    assert told == ["one"]
    assert session.over


async def test_there_are_so_many_and_the_one_unused_longest_goes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sessions = Sessions()
    secrets = []
    for _ in range(MOST):
        secrets.append(sessions.open(OPERATOR))
        await trio.sleep(1)
    assert sessions.find(secrets[0]) is not None
    newest = sessions.open(OPERATOR)
    assert sessions.find(secrets[1]) is None
    assert sessions.find(secrets[0]) is not None
    assert sessions.find(newest) is not None
