"""Tries to sign in: by e-mail and by address, from their beginning."""

import pytest
import trio

from broker.actors.attempts import BY_ADDRESS, BY_EMAIL, CLAIMS, OPERATORS, SIGN_UPS, Attempts
from broker.clock import VirtualClock

FAR = "203.0.113.7"


@pytest.mark.requirement("owners.throttled")
async def test_five_tries_of_an_email_a_minute_wherever_they_come_from(
    clock: VirtualClock, autojump_clock: object
) -> None:
    attempts = Attempts(clock)
    for n in range(BY_EMAIL):
        assert attempts.begin("a@x", f"203.0.113.{n}") is None
        await trio.sleep(1)
    stopped = attempts.begin("a@x", "198.51.100.1")
    assert stopped is not None
    assert (stopped.code, stopped.detail["retry_after_ms"]) == ("rate_limited", 55_000)
    assert attempts.begin("b@x", FAR) is None
    await trio.sleep(54.9)
    assert attempts.begin("a@x", FAR) is not None  # what is stopped doesn't count: it is not put off
    await trio.sleep(0.1)
    assert attempts.begin("a@x", FAR) is None
    assert attempts.begin("a@x", FAR) is not None


@pytest.mark.requirement("owners.throttled")
async def test_twenty_tries_of_an_address_a_minute_whatever_the_email(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    for n in range(BY_ADDRESS):
        assert attempts.begin(f"{n}@x", f"2001:db8::{n:x}") is None
    assert attempts.begin("new@x", "2001:db8::ffff") is not None
    assert attempts.begin("new@x", "2001:db8:1::1") is None
    for n in range(BY_ADDRESS + 5):
        assert attempts.begin(f"local{n}@x", "127.0.0.1") is None


async def test_a_good_one_is_taken_back(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    for _ in range(3 * BY_ADDRESS):
        assert attempts.begin("a@x", FAR) is None
        attempts.take_back("a@x", FAR)
    attempts.take_back("a@x", FAR)  # more than there is, is nothing


@pytest.mark.requirement("owners.throttled")
async def test_five_claim_codes_a_minute_of_an_owner_from_an_address_and_of_those_that_begin_alike(
    clock: VirtualClock, autojump_clock: object
) -> None:
    tries = (
        lambda n, attempts: attempts.claim("ow_1", None, "127.0.0.1"),
        lambda n, attempts: attempts.claim(f"ow_{n}", f"AAA{n}", FAR),
        lambda n, attempts: attempts.claim(f"ow_{n}", "AAAA", f"203.0.113.{n}"),
    )
    for attempt in tries:
        attempts = Attempts(clock)
        assert [attempt(n, attempts) for n in range(CLAIMS)] == [None] * CLAIMS
        stopped = attempt(CLAIMS, attempts)
        assert stopped is not None
        assert stopped.detail["retry_after_ms"] == 60_000
        assert attempts.claim("ow_x", "BBBB", "198.51.100.1") is None
        await trio.sleep(60)
        assert attempt(CLAIMS, attempts) is None


async def test_new_owners_from_an_address(clock: VirtualClock, autojump_clock: object) -> None:
    attempts = Attempts(clock)
    for _ in range(SIGN_UPS):
        assert attempts.sign_up(FAR) is None
        assert attempts.sign_up("::1") is None
    stopped = attempts.sign_up(FAR)
    assert stopped is not None
    await trio.sleep(stopped.detail["retry_after_ms"] / 1000)
    assert attempts.sign_up(FAR) is None


async def test_its_memory_is_bounded(clock: VirtualClock) -> None:
    attempts = Attempts(clock, cap=10)
    for n in range(100):
        attempts.begin(f"{n}@x", f"198.51.100.{n}")
    assert len(attempts._emails) == len(attempts._places) == 10


@pytest.mark.requirement("operator.guesses")
async def test_wrong_tokens_of_the_operators_are_counted_from_this_machine_too(
    clock: VirtualClock, autojump_clock: object
) -> None:
    attempts = Attempts(clock)
    for address in ("127.0.0.1", FAR):
        for _ in range(OPERATORS):
            assert attempts.operator(address) is None
        stopped = attempts.operator(address)
        assert stopped is not None
        assert (stopped.code, stopped.detail["retry_after_ms"]) == ("rate_limited", 60_000)
    assert attempts.operator("::1") is not None, "all of loopback is one place"
    await trio.sleep(60)
    assert attempts.operator("127.0.0.1") is None
