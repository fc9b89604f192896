"""Tapes made by rule and seed."""

from itertools import pairwise

import pytest

from broker.core.tapes.synthetic import KINDS, Chance, make

REFS = {
    "trend": "8d281b79cdf1ce34795afdb213a277c757ca70abf9ea5970f97e64bd84f8e3b0",
    "mean-revert": "a58729202c8edaddd035e8b71c85d344234cb6fd697db3487cc5999a774edb4d",
    "jump": "be859bc8540aa318aa7863ae24b72d6811a21d42d4e2535c6e7046a9f661d155",
    "thin": "f7d4720ccc81cc1f43397209c9d35fe51f8c6228d5737ca9eba7d1c71b13de25",
}
"""The names of the tapes of seed 1: they never change."""
every_kind = pytest.mark.parametrize("name", KINDS)


@every_kind
@pytest.mark.requirement("tape.seeded")
def test_a_seed_gives_the_same_tape_for_ever(name: str) -> None:
    made = make(KINDS[name], 1)
    assert made.ref() == REFS[name]
    assert len(made) == 3600
    assert make(KINDS[name], 2).ref() != made.ref()
    shorter = make(KINDS[name], 1, 100)
    assert (shorter.bids, shorter.asks) == (made.bids[:100], made.asks[:100])


@every_kind
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_no_book_is_crossed_and_no_price_below_one(name: str, seed: int) -> None:
    made = make(KINDS[name], seed, 5_000)
    assert all(1 <= bid < ask for bid, ask in zip(made.bids, made.asks, strict=True))
    assert len(made.sizes) == (5_000 if KINDS[name].sized else 0)
    assert all(size > 0 for size in made.sizes)


def test_chance_is_splitmix64() -> None:
    chance = Chance(1234567)
    # The reference's first words for this seed.
    assert [chance.word() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_coins_are_a_bell_around_nothing() -> None:
    chance = Chance(5)
    thrown = [chance.coins(16) for _ in range(20_000)]
    assert all(abs(each) <= 16 and each % 2 == 0 for each in thrown)
    assert abs(sum(thrown)) < 20_000 * 0.15
    assert 15 < sum(each * each for each in thrown) / 20_000 < 17


def test_the_kinds_are_what_their_names_say() -> None:
    """A jump moves far in one tick, and nothing else does."""
    most = {}
    for name in ("trend", "mean-revert", "jump"):
        bids = make(KINDS[name], 3).bids
        most[name] = max(abs(after - before) for before, after in pairwise(bids))
    assert most["jump"] > 20
    assert max(most["trend"], most["mean-revert"]) < 15
    assert all(size < 400_000 for size in sorted(make(KINDS["thin"], 3).sizes)[:3_000])
