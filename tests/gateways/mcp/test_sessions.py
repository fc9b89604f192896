"""Sessions: whose they are, how long they stay, and what they can end."""

import json

import pytest
import trio
import trio.testing

from gateways import jsonrpc
from gateways.mcp import sessions
from gateways.mcp.sessions import Session, Sessions


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(all: Sessions, owner: str = "a", principal: str | None = None) -> Session:
    session = all.open(owner, principal, "2025-11-25", {})
    assert session is not None
    return session


@pytest.mark.requirement("mcp.session-bound")
def test_a_session_exists_for_its_principal_alone() -> None:
    all = Sessions(now=Time())
    session = opened(all, principal="k1")
    assert all.find(session.id, "k1") is session
    assert all.find(session.id, "k2") is None
    assert all.find(session.id, None) is None


@pytest.mark.requirement("oauth.session")
async def test_nobodys_session_becomes_that_of_the_first_who_shows_who_it_is() -> None:
    sessions = Sessions()
    session = sessions.open("203.0.113.9", None, "2025-11-25", {})
    assert session is not None
    stream = session.open_stream()
    assert sessions.find(session.id, None) is session
    assert sessions.find(session.id, "a") is session
    with pytest.raises(trio.EndOfChannel):  # whoever opened it may be another
        await stream.receive()
    assert sessions.find(session.id, "a") is session
    assert sessions.find(session.id, "b") is None
    assert sessions.find(session.id, None) is None


def test_ids_are_random_and_visible_ascii() -> None:
    all = Sessions(now=Time())
    ids = {opened(all).id for _ in range(50)}
    assert len(ids) == 50
    assert all.find("f" * 48, None) is None
    assert all.statistics().sessions == 50
    assert {len(each) for each in ids} == {48}


@pytest.mark.requirement("mcp.session-ends")
def test_an_idle_session_is_forgotten_and_a_used_one_is_not() -> None:
    time = Time()
    all = Sessions(now=time, idle_s=10)
    idle, used = opened(all), opened(all)
    time.now = 6
    assert all.find(used.id, None) is used
    time.now = 11
    assert all.find(used.id, None) is used
    assert all.find(idle.id, None) is None


@pytest.mark.requirement("mcp.session-ends")
def test_a_session_in_use_does_not_expire() -> None:
    time = Time()
    all = Sessions(now=time, idle_s=10)
    session = opened(all)
    with session.using():
        time.now = 100
        opened(all)
        assert all.find(session.id, None) is session
        assert all.statistics().busy == 1
    time.now = 200
    assert all.find(session.id, None) is None


@pytest.mark.requirement("mcp.session-caps")
@pytest.mark.parametrize("caps", [{"most": 3}, {"most_of_one": 3}])
def test_the_session_idle_longest_makes_room(caps: dict[str, int]) -> None:
    time = Time()
    all = Sessions(now=time, **caps)
    first, second, third = (opened(all) for _ in range(3))
    assert all.find(first.id, None) is first
    opened(all)
    assert all.find(second.id, None) is None
    assert all.find(first.id, None) is first
    assert all.find(third.id, None) is third


@pytest.mark.requirement("mcp.session-caps")
def test_no_place_when_all_are_in_use() -> None:
    all = Sessions(now=Time(), most_of_one=1)
    with opened(all, "a").using():
        assert all.open("a", None, "2025-11-25", {}) is None
        opened(all, "b")
    assert all.statistics() == sessions.Statistics(2, 0)


def test_closing_twice_is_harmless_and_leaves_nothing() -> None:
    all = Sessions(now=Time())
    session = opened(all)
    all.close(session)
    all.close(session)
    assert all.statistics().sessions == 0
    assert all._owners == {}


async def test_cancel_ends_the_request_with_that_id_and_type() -> None:
    session = Session("s", None, "2025-11-25", {})
    with session.cancellable(1) as number, session.cancellable("1") as word:
        session.cancel("1")
        assert word.cancel_called
        assert not number.cancel_called
        for wrong in (True, 1.0, None, [1], "2"):
            session.cancel(wrong)
        assert not number.cancel_called
    session.cancel(1)


@pytest.mark.requirement("mcp.same-id")
async def test_cancel_of_an_id_that_two_requests_carry_ends_neither() -> None:
    session = Session("s", None, "2025-11-25", {})
    with session.cancellable(1) as first, session.cancellable(1) as second:
        session.cancel(1)
        assert not first.cancel_called
        assert not second.cancel_called


async def test_closing_ends_what_is_under_way() -> None:
    all = Sessions()
    session = opened(all)
    with session.cancellable(1) as scope:
        all.close(session)
        assert scope.cancel_called


@pytest.mark.requirement("mcp.newest-stream")
async def test_a_new_stream_ends_the_one_before() -> None:
    session = Session("s", None, "2025-11-25", {})
    first = session.open_stream()
    first.push(b"one")
    second = session.open_stream()
    first.push(b"late")
    second.push(b"two")
    assert await first.receive() == b"one"
    with pytest.raises(trio.EndOfChannel):
        await first.receive()
    assert await second.receive() == b"two"


async def test_a_stream_that_is_not_read_is_ended() -> None:
    stream = Session("s", None, "2025-11-25", {}).open_stream()
    for _ in range(sessions.STREAM_BACKLOG + 1):
        stream.push(b"x")
    for _ in range(sessions.STREAM_BACKLOG):
        await stream.receive()
    with pytest.raises(trio.EndOfChannel):
        await stream.receive()


@pytest.mark.requirement("mcp.server-requests")
async def test_of_two_answers_to_one_request_the_first_stands() -> None:
    session = Session("s", None, "2025-11-25", {})
    sent: list[bytes] = []
    got: list[jsonrpc.Response] = []

    async def send(message: bytes) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    async def ask() -> None:
        got.append(await session.request(send, "roots/list", {}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        first, second = (jsonrpc.Response(1, text, None) for text in (b"{}", b"[]"))
        assert not session.answered(jsonrpc.Response("1", b"{}", None))
        assert not session.answered(jsonrpc.Response(None, None, b"{}"))
        assert session.answered(first)
        assert not session.answered(second)
    assert got == [first]
    assert json.loads(sent[0]) == {"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {}}
    assert not session.answered(first)


async def test_a_request_that_was_given_up_takes_no_answer() -> None:
    session = Session("s", None, "2025-11-25", {})

    async def send(message: bytes) -> None:
        await trio.lowlevel.checkpoint()

    with trio.move_on_after(0.01):
        await session.request(send, "roots/list", {})
    assert not session.answered(jsonrpc.Response(1, b"{}", None))
