"""Moments and sizes as operators read them."""

import pytest

from gateways.console.words import clock, size, stamp


def test_a_moment_is_said_to_the_second_or_to_the_millisecond() -> None:
    assert stamp(1_782_345_678_012) == "2026-06-25 00:01:18"
    assert clock(1_782_345_678_012) == "00:01:18.012"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10_240, "10 KiB"),
        (3 << 20, "3.0 MiB"),
        (5 << 40, "5.0 TiB"),
        (9 << 50, "9216 TiB"),
    ],
)
def test_a_size_is_said_in_the_unit_that_fits(count: int, words: str) -> None:
    assert size(count) == words
