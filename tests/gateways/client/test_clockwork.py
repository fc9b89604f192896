"""The wire's time, and the waits between attempts."""

import pytest

from gateways.client.clockwork import Backoff, WireClock


@pytest.mark.requirement("client.clock")
def test_the_clock_is_the_wires_after_it_was_told() -> None:
    clock = WireClock(lambda: 1_000_000)
    assert clock.now_ms() == 1_000_000
    clock.correct(1_005_999)
    assert (clock.offset_ms, clock.now_ms(), clock.now_s()) == (5_999, 1_005_999, 1_005)


def test_the_systems_clock_is_the_default() -> None:
    assert WireClock().now_s() > 1_700_000_000


@pytest.mark.requirement("client.backoff")
def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(first_s=0.1, longest_s=1.0, chance=lambda: 1.0)
    assert [backoff.next_s() for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    backoff.reset()
    assert backoff.next_s() == pytest.approx(0.1)


def test_chance_spreads_a_wait_over_its_upper_half() -> None:
    assert Backoff(first_s=1.0, chance=lambda: 0.0).next_s() == 0.5
    assert 0.5 <= Backoff(first_s=1.0).next_s() <= 1.0


@pytest.mark.requirement("client.retry-hint")
def test_a_hint_is_never_undercut() -> None:
    assert Backoff(chance=lambda: 0.5).next_s(7.5) == 7.5
    assert Backoff(first_s=4.0, chance=lambda: 1.0).next_s(0.1) == 4.0


def test_a_thousand_failures_do_not_overflow() -> None:
    backoff = Backoff(longest_s=15.0, chance=lambda: 1.0)
    assert [backoff.next_s() for _ in range(2000)][-1] == 15.0
