import pytest

from broker.actors.guard import Guard, place_of
from broker.config import Limits

HERE = "198.51.100.7"


class HandClock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def now_ms(self) -> int:
        return round(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> None:
        self.seconds = round(self.seconds + seconds, 6)


@pytest.fixture
def hand() -> HandClock:
    return HandClock()


@pytest.fixture
def guard(hand: HandClock) -> Guard:
    return Guard(Limits(), hand)


def retry_ms(guard: Guard, address: str = HERE) -> int | None:
    refusal = guard.check(address, False)
    if refusal is None:
        return None
    assert refusal.code == "rate_limited"
    return int(refusal.detail["retry_after_ms"])


@pytest.mark.requirement("limits.guessing")
@pytest.mark.parametrize("what", ["bad_signature", "unknown_conv"])
def test_twenty_guesses_stop_an_address_for_ten_seconds(guard: Guard, hand: HandClock, what: str) -> None:
    count = getattr(guard, what)
    for _ in range(19):
        count(HERE)
        hand.passes(0.5)
    assert retry_ms(guard) is None
    count(HERE)
    assert retry_ms(guard) == 10_000
    assert guard.check("198.51.100.8", False) is None
    hand.passes(9.75)
    assert retry_ms(guard) == 250
    hand.passes(0.25)
    assert retry_ms(guard) is None
    for _ in range(19):
        count(HERE)
    assert retry_ms(guard) is None
    count(HERE)
    assert retry_ms(guard) == 10_000


def test_a_check_that_was_under_way_does_not_prolong_the_stop(guard: Guard, hand: HandClock) -> None:
    for _ in range(20):
        guard.bad_signature(HERE)
    hand.passes(5)
    guard.bad_signature(HERE)
    assert retry_ms(guard) == 5_000


@pytest.mark.requirement("limits.guessing")
def test_twenty_guesses_in_more_than_ten_seconds_stop_nobody(guard: Guard, hand: HandClock) -> None:
    for _ in range(100):
        guard.bad_signature(HERE)
        assert retry_ms(guard) is None
        hand.passes(10 / 19)


def test_bad_signatures_and_unknown_ids_are_counted_apart(guard: Guard) -> None:
    for _ in range(19):
        guard.bad_signature(HERE)
        guard.unknown_conv(HERE)
    assert retry_ms(guard) is None


@pytest.mark.requirement("limits.guessing-exempt")
@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_never_stopped(guard: Guard, address: str) -> None:
    for _ in range(100):
        guard.bad_signature(address)
        guard.unknown_conv(address)
        assert guard.open_desk(address, False) is None
    assert guard.check(address, False) is None


@pytest.mark.requirement("limits.guessing-exempt")
def test_who_is_exempt_goes_on_while_its_address_is_stopped(guard: Guard) -> None:
    for _ in range(20):
        guard.bad_signature(HERE)
    assert guard.check(HERE, True) is None
    assert guard.check(HERE, False) is not None


@pytest.mark.requirement("limits.opens")
def test_twenty_desks_an_hour_are_opened_from_one_address(guard: Guard, hand: HandClock) -> None:
    for _ in range(20):
        assert guard.open_desk(HERE, False) is None
        hand.passes(60)
    for _ in range(50):
        refusal = guard.open_desk(HERE, False)
        assert refusal is not None
        assert refusal.detail["retry_after_ms"] == 2_400_000
    assert guard.open_desk(HERE, True) is None
    assert guard.open_desk("198.51.100.8", False) is None
    hand.passes(2_400)
    assert guard.open_desk(HERE, False) is None
    assert guard.open_desk(HERE, False) is not None


@pytest.mark.requirement("limits.opens")
def test_an_opening_that_came_to_nothing_is_given_back(guard: Guard) -> None:
    for _ in range(100):
        assert guard.open_desk(HERE, False) is None
        guard.unopened(HERE, False)
    assert guard.statistics().opening == 0
    guard.unopened(HERE, False)
    for _ in range(20):
        assert guard.open_desk(HERE, False) is None
    guard.unopened(HERE, True)
    assert guard.open_desk(HERE, False) is not None


def test_it_is_the_last_opening_that_is_given_back(guard: Guard, hand: HandClock) -> None:
    guard.open_desk(HERE, False)
    hand.passes(1800)
    guard.open_desk(HERE, False)
    guard.unopened(HERE, False)
    for _ in range(19):
        assert guard.open_desk(HERE, False) is None
    refusal = guard.open_desk(HERE, False)
    assert refusal is not None
    assert refusal.detail["retry_after_ms"] == 1_800_000


@pytest.mark.requirement("limits.opens-ipv6")
def test_addresses_of_one_ipv6_64_are_one_address(guard: Guard) -> None:
    for index in range(20):
        assert guard.open_desk(f"2001:db8:1:2::{index:x}", False) is None
        guard.bad_signature(f"2001:db8:1:2::{index:x}")
    assert guard.open_desk("2001:db8:1:2:ffff::1", False) is not None
    assert guard.open_desk("2001:db8:1:3::1", False) is None
    assert retry_ms(guard, "2001:db8:1:2::ffff") == 10_000


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not an address", "not an address"),
        ("", ""),
        ("127.0.0.1", None),
        ("::1", None),
    ],
)
def test_what_counts_as_one_address(address: str, place: str | None) -> None:
    assert place_of(address) == place


def test_memory_is_bounded_however_many_addresses_guess(hand: HandClock) -> None:
    guard = Guard(Limits(guesses=2, opens_per_hour=2), hand, cap=100)
    for index in range(1000):
        for _ in range(2):
            guard.bad_signature(f"10.0.{index // 256}.{index % 256}")
        guard.unknown_conv(f"10.0.{index // 256}.{index % 256}")
        guard.open_desk(f"10.0.{index // 256}.{index % 256}", False)
    seen = guard.statistics()
    assert (seen.guessing, seen.opening, seen.stopped) == (100, 100, 1000)
    assert retry_ms(guard, "10.0.3.231") is not None
    assert retry_ms(guard, "10.0.0.1") is None


def test_quiet_addresses_are_forgotten(guard: Guard, hand: HandClock) -> None:
    for index in range(200):
        guard.bad_signature(f"10.0.0.{index}")
    assert guard.statistics().guessing == 200
    hand.passes(10)
    guard.bad_signature(HERE)
    assert guard.statistics().guessing == 1
