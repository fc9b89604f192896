"""Chance: commits that bind, draws that are fair, and a deal that anybody can make again."""

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.chance import SECRET_BYTES, Draws, Secret, commit_of, domain_of
from tests.support.games import Words

SEED, SALT = "01" * SECRET_BYTES, "02" * SECRET_BYTES
WORD = 1 << 64


def spread(counts: Iterable[int], expected: float) -> float:
    """Chi-square of these counts, in standard deviations from its mean."""
    cells = list(counts)
    free = len(cells) - 1
    square = sum((count - expected) ** 2 for count in cells) / expected
    return float((square - free) / (2 * free) ** 0.5)


@pytest.mark.requirement("games.commit")
def test_the_commit_is_the_hash_that_the_page_says() -> None:
    text = b"turret/arena/commit/1\0" + b"\1" * 32 + b"\2" * 32 + b"ag_x" + b"\0" * 7 + b"\7"
    commit = commit_of(Secret(SEED, SALT), "ag_x", 7)
    assert commit == hashlib.sha256(text).hexdigest()
    assert commit == "780c2fafa95f25aa60a63bb70c2a42098419569ff10ff8f8093d1a9126507f29"


@pytest.mark.requirement("games.commit")
def test_another_seed_salt_agent_or_number_makes_another_commit() -> None:
    commits = {
        commit_of(Secret(SEED, SALT), "ag_x", 0),
        commit_of(Secret(SALT, SEED), "ag_x", 0),
        commit_of(Secret(SEED, "03" * 32), "ag_x", 0),
        commit_of(Secret("03" * 32, SALT), "ag_x", 0),
        commit_of(Secret(SEED, SALT), "ag_y", 0),
        commit_of(Secret(SEED, SALT), "ag_x", 1),
        commit_of(Secret(SEED, SALT), "ag_x", 256),
    }
    assert len(commits) == 7


@pytest.mark.requirement("games.draws")
def test_a_word_is_the_hmac_that_the_page_says() -> None:
    draws = Draws(SEED, domain_of("hilo", 1), "my seed ♠")
    domain = b"turret/arena/draw/1\0hilo/1\0" + "my seed ♠".encode()
    made = [hmac.digest(b"\1" * 32, domain + n.to_bytes(8, "big"), "sha256")[:8] for n in range(300)]
    assert [draws.word() for _ in range(300)] == [int.from_bytes(each, "big") for each in made]
    assert draws.count == 300
    fresh = Draws(SEED, domain_of("hilo", 1), "my seed ♠")
    assert [fresh.below(52) for _ in range(8)] == [44, 6, 19, 20, 18, 11, 36, 10]


@pytest.mark.requirement("games.draws")
@pytest.mark.parametrize("n", [3, 52, 416, 3 << 61, (1 << 63) + 1, WORD - 1])
def test_a_word_of_the_last_span_that_is_not_whole_is_thrown_away(n: int) -> None:
    end = WORD - WORD % n
    draws = Words(iter([end, WORD - 1, end - 1, 0]))
    assert draws.below(n) == n - 1
    assert draws.count == 3
    assert draws.below(n) == 0


@pytest.mark.requirement("games.draws")
def test_where_all_spans_are_whole_no_word_is_thrown_away() -> None:
    draws = Words(iter([WORD - 1, WORD - 1, WORD - 1]))
    assert [draws.below(1), draws.below(1 << 63), draws.below(WORD)] == [0, (1 << 63) - 1, WORD - 1]
    assert draws.count == 3


@pytest.mark.requirement("games.draws")
@given(st.integers(1, WORD), st.integers(0, WORD - 1), st.integers(0, WORD - 1))
def test_a_draw_is_below_its_number_and_so_is_its_share(n: int, one: int, other: int) -> None:
    """Of two words, both taken, those that make the same draw lie whole spans apart."""
    end = WORD // n * n
    made = [Words(iter([word])).below(n) for word in (one, other) if word < end]
    assert all(0 <= each < n for each in made)
    assert len(made) < 2 or (made[0] == made[1]) == ((one - other) % n == 0)


@pytest.mark.parametrize("n", [0, -1, WORD + 1])
def test_no_draw_is_below_nothing_or_beyond_a_word(n: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        Draws(SEED, b"", "").below(n)


@pytest.mark.requirement("games.draws")
def test_both_ends_of_a_range_are_drawn() -> None:
    draws = Draws(SEED, domain_of("rfq", 1), "")
    assert {draws.between(-2, 2) for _ in range(200)} == {-2, -1, 0, 1, 2}


@pytest.mark.requirement("games.fair")
def test_a_million_draws_are_as_likely_and_hang_together_in_no_way() -> None:
    draws = Draws(SEED, domain_of("hilo", 1), "a client's seed")
    drawn = [draws.below(416) for _ in range(1_000_000)]
    counts = Counter(drawn)
    assert len(counts) == 416
    assert abs(spread(counts.values(), len(drawn) / 416)) < 4
    for n in (2, 13, 52):  # 416 is a multiple of each
        cells = Counter(each % n for each in drawn)
        assert abs(spread(cells.values(), len(drawn) / n)) < 4
    pairs = Counter((one % 8, other % 8) for one, other in pairwise(drawn[:200_000]))
    assert len(pairs) == 64
    assert abs(spread(pairs.values(), 199_999 / 64)) < 4


@pytest.mark.requirement("games.fair")
@pytest.mark.parametrize("n", [3, 5, 21, 41, 51])
def test_draws_below_other_numbers_are_as_likely(n: int) -> None:
    draws = Draws(SALT, domain_of("rfq", 1), "a client's seed")
    counts = Counter(draws.below(n) for _ in range(20_000))
    assert len(counts) == n
    assert abs(spread(counts.values(), 20_000 / n)) < 4


@pytest.mark.requirement("games.fair")
def test_each_order_of_a_shuffle_is_as_likely() -> None:
    draws, orders = Draws(SEED, domain_of("hilo", 1), "s"), Counter[str]()
    for _ in range(12_000):
        items = list("abcd")
        draws.shuffle(items)
        orders["".join(items)] += 1
    assert len(orders) == 24
    assert abs(spread(orders.values(), 500)) < 4


@pytest.mark.requirement("games.draws")
def test_a_shuffle_is_drawn_from_the_end() -> None:
    asked: list[int] = []

    class Asked(Draws):
        def below(self, n: int) -> int:
            asked.append(n)
            return 0

    items = list("abcd")
    Asked("00", b"", "").shuffle(items)
    assert (asked, "".join(items)) == ([4, 3, 2], "bcda")


@pytest.mark.requirement("games.fair")
def test_nothing_public_tells_a_draw() -> None:
    """Over many secrets: the commit's bits and the first draw say nothing of the second one, nor does the client's
    seed; and with the same seed under another salt the commit is another, the draws are the same."""
    seen = Counter[tuple[int, int, int]]()
    for n in range(8_000):
        seed = hashlib.sha256(b"seed %d" % n).hexdigest()
        commit = commit_of(Secret(seed, hashlib.sha256(b"salt %d" % n).hexdigest()), "ag_x", n)
        draws = Draws(seed, domain_of("hilo", 1), "x")
        seen[int(commit, 16) % 2, draws.below(4), draws.below(4)] += 1
    assert len(seen) == 32
    assert abs(spread(seen.values(), 250)) < 4
    one, other = (commit_of(Secret(SEED, salt), "ag_x", 0) for salt in (SALT, "03" * 32))
    assert one != other
    mine, yours = (Draws(SEED, domain_of("hilo", 1), seed) for seed in ("mine", "yours"))
    assert [mine.below(52) for _ in range(9)] != [yours.below(52) for _ in range(9)]
    games = [Draws(SEED, domain_of(*game), "x").word() for game in (("hilo", 1), ("hilo", 2), ("rfq", 1))]
    assert len(set(games)) == 3
