"""What the sign-in keeps in memory is bounded and forgotten in time."""

import pytest

from broker.actors.signin import OTHERS, SPARE, Ask, SignIn
from broker.clock import VirtualClock
from broker.core.grant import ASK_MS
from tests.support.broker import START_MS


def ask(clock: VirtualClock, name: str) -> Ask:
    return Ask(
        ask=name,
        client_id="c",
        client_name="c",
        client_uri=None,
        redirect_uri="https://app.example/",
        named=True,
        state=None,
        challenge="",
        scopes=(),
        resource="",
        issuer="",
        until=clock.now_ms() + ASK_MS,
    )


@pytest.mark.requirement("signin.bounds")
async def test_beyond_the_bound_the_oldest_request_goes() -> None:
    clock = VirtualClock(START_MS)
    state = SignIn(clock, asks=2)
    for name in "abc":
        assert state.ask(ask(clock, name), "203.0.113.9") is None
    assert state.find("a") is None
    assert state.take("b") is not None
    assert state.take("b") is None
    assert state.find("c") is not None


@pytest.mark.requirement("signin.bounds")
async def test_requests_that_are_over_give_their_address_its_room_back() -> None:
    clock = VirtualClock(START_MS)
    state = SignIn(clock)
    names = [str(n) for n in range(65)]
    answers = [state.ask(ask(clock, name), "203.0.113.9") for name in names]
    assert [each is None for each in answers] == [True] * 64 + [False]
    assert state.ask(ask(clock, "another's"), "203.0.113.10") is None
    clock.step(ASK_MS)
    assert state.ask(ask(clock, "later"), "203.0.113.9") is None
    assert state.find("later") is not None


@pytest.mark.requirement("signin.refused")
async def test_refusals_are_summed_by_address_kind_and_minute_in_bounded_memory() -> None:
    clock = VirtualClock(START_MS - START_MS % 60_000)
    state = SignIn(clock, cap=2)
    for address in ("203.0.113.1", "203.0.113.1", "2001:db8::1", "2001:db8::2", "203.0.113.3", "203.0.113.4"):
        state.refused(address, "invalid_grant")
    assert state.take_refused() == []
    clock.step(60_000)
    taken = state.take_refused()
    assert {(each.place, each.count) for each in taken} == {
        ("203.0.113.1", 2),
        ("2001:db8::/64", 2),
        (OTHERS, 2),
    }
    assert state.take_refused() == []
    state.refused("127.0.0.1", "invalid_token")
    clock.step(60_000)
    assert [(each.place, each.kind) for each in state.take_refused()] == [("loopback", "invalid_token")]
    for _ in range(200):
        clock.step(60_000)
        state.refused("203.0.113.1", "invalid_grant")
    clock.step(60_000)
    assert len(state.take_refused()) == 2 + SPARE
