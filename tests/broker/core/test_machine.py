"""Time in a core: ages of what was accepted before the process began."""

from broker.core.machine import Now, mono_of


def test_age_is_taken_from_the_wall_clock() -> None:
    assert mono_of(1_000, Now(wall_ms=5_000, mono=100.0), started=90.0) == 96.0


def test_what_lies_in_the_walls_future_counts_from_the_start() -> None:
    assert mono_of(9_000, Now(wall_ms=5_000, mono=100.0), started=90.0) == 90.0
