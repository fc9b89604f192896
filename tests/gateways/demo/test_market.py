"""The demo's market: repeatable, sound, and never endless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.demo.market import (
    ROUNDS,
    Maker,
    Quote,
    Taker,
    opening_price,
    price_text,
    read_price,
    read_quote,
)

seeds = st.integers(min_value=-(2**63), max_value=2**63)


def play(seed: int) -> tuple[int, int | None]:
    """Rounds, and the price dealt at."""
    maker, taker = Maker(seed), Taker(seed)
    while taker.patient:
        quote = maker.quote()
        if taker.takes(quote):
            return taker.rounds, quote.price(taker.side)
    return taker.rounds, None


@given(seeds)
def test_any_seed_ends_within_the_rounds_and_the_same_seed_ends_the_same(seed: int) -> None:
    rounds, price = play(seed)
    assert 1 <= rounds <= ROUNDS
    assert (rounds, price) == play(seed)


def test_the_bots_decide_by_the_market_and_not_by_a_list() -> None:
    ends = [play(seed) for seed in range(200)]
    assert {rounds for rounds, _ in ends} == set(range(1, ROUNDS + 1))
    assert any(price is None for _, price in ends)
    assert len({price for _, price in ends}) > 50
    assert {Taker(seed).side for seed in range(20)} == {"buy", "sell"}


@given(seeds)
def test_a_quote_has_a_bid_below_its_ask_near_the_market(seed: int) -> None:
    maker = Maker(seed)
    for _ in range(ROUNDS):
        quote = maker.quote()
        assert quote.bid < quote.ask
        assert abs(quote.bid - opening_price(seed)) < 200
        assert read_quote({"bid": price_text(quote.bid), "ask": price_text(quote.ask)}) == quote


@given(seeds)
def test_nobody_deals_beyond_the_limit(seed: int) -> None:
    taker = Taker(seed)
    limit = taker.limit
    beyond = limit + 1 if taker.side == "buy" else limit - 1
    assert not Taker(seed).takes(Quote(beyond, beyond))
    assert taker.takes(Quote(limit, limit))


@given(st.integers(min_value=0, max_value=10**9))
def test_a_price_survives_its_text(points: int) -> None:
    assert read_price(price_text(points)) == points


@pytest.mark.parametrize(
    "text", [None, 1.1, "1", "1.1", "1.084123", "-1.08412", "1e5.00000", "١.08412", "nan", ""]
)
def test_what_is_no_price_is_none(text: object) -> None:
    assert read_price(text) is None


@pytest.mark.parametrize(
    "body", [{}, {"bid": "1.08412"}, {"bid": "1.2", "ask": "1.3"}, {"bid": "1.00002", "ask": "1.00001"}]
)
def test_what_is_no_quote_is_none(body: dict[str, object]) -> None:
    assert read_quote(body) is None
