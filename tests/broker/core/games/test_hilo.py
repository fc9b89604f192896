"""Hi-Lo: the shoe, the odds, what a guess costs, and that nothing shows the order before it is turned."""

import itertools
from fractions import Fraction
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import arena
from broker.core.arena import Opened
from broker.core.chance import Draws, domain_of
from broker.core.games import hilo
from broker.core.games.game import No, Step
from tests.support.games import SECRET, Given, played

DECK = [rank + suit for suit in "CDHS" for rank in "23456789TJQKA"]
EDGE = Fraction(1, 50)


def shoe(decks: int = 1, seed: str = SECRET.seed) -> list[str]:
    return hilo.deal(hilo.Config(decks=decks), Draws(seed, domain_of("hilo", 1), "x"))


def at(cards: list[str], turned: int, decks: int = 1) -> hilo.State:
    """The state after so many cards more than the first."""
    state = hilo.begin(hilo.Config(decks=decks), hilo.Facts(cards[0]))
    for card in cards[1 : turned + 1]:
        state = hilo.fold(state, hilo.Facts(card))
    return state


@pytest.mark.requirement("games.hilo")
def test_the_shoe_is_the_decks_in_their_order_shuffled_from_the_end() -> None:
    kept = Given(iter(n - 1 for n in range(104, 1, -1)))  # each place with itself
    assert hilo.deal(hilo.Config(decks=2), kept) == DECK * 2
    turned = Given(itertools.repeat(0))  # each place with the first
    assert hilo.deal(hilo.Config(), turned) == [*DECK[1:], DECK[0]]
    assert sorted(shoe(8)) == sorted(DECK * 8)


@pytest.mark.requirement("games.hilo")
def test_the_first_session_of_these_seeds_is_this_one() -> None:
    assert shoe()[:10] == ["KH", "JC", "8C", "3S", "JS", "3H", "7D", "9H", "2D", "QH"]


@pytest.mark.requirement("games.odds")
@given(st.randoms(use_true_random=False), st.integers(0, 50))
def test_the_odds_shown_are_those_of_the_cards_that_are_left(random: Any, turned: int) -> None:
    cards = list(DECK)
    random.shuffle(cards)
    state, rest = at(cards, turned), cards[turned + 1 :]
    shown = {each["guess"]: each for each in hilo.legal_actions(state, 1_000)}
    favourable = dict.fromkeys(hilo.GUESSES, 0)
    for card in rest:
        favourable[hilo.judge(cards[turned], card)] += 1
    assert {guess: each["odds"] for guess, each in shown.items()} == {
        guess: [count, len(rest)] for guess, count in favourable.items() if count
    }
    for guess, each in shown.items():
        assert Fraction(*each["returns"]) == Fraction(49 * len(rest), 50 * favourable[guess])


@pytest.mark.requirement("games.odds")
def test_the_edge_is_a_fiftieth_and_by_rounding_less_than_a_point_where_the_guess_is_right() -> None:
    """Exact, for all odds that one deck can have; of more decks those that are not among them are of the same form."""
    stakes = (1, 2, 7, 49, 50, 99, 500, 1_000)
    for left in range(1, 52):
        for favourable in range(1, left + 1):
            chance = Fraction(favourable, left)
            for stake in stakes:
                expected = stake - chance * (stake * 49 * left // (50 * favourable))
                assert EDGE * stake <= expected < EDGE * stake + chance


@pytest.mark.requirement("games.odds")
@given(st.randoms(use_true_random=False), st.integers(0, 50), st.integers(1, 1_000))
def test_what_a_guess_brings_on_average_is_the_edge_less_rounding(
    random: Any, turned: int, stake: int
) -> None:
    """Over each card that may come next: the mean of what `apply` really pays."""
    cards = list(DECK)
    random.shuffle(cards)
    state, rest = at(cards, turned), cards[turned + 1 :]
    for legal in hilo.legal_actions(state, 1_000):
        action = hilo.Action(stake=stake, guess=legal["guess"])
        changes = []
        for card in rest:
            step = hilo.apply(state, [*cards[: turned + 1], card], action, 1_000)
            assert isinstance(step, Step)
            changes.append(step.change)
        count = legal["odds"][0]
        paid = stake * 49 * len(rest) // (50 * count)
        assert sum(changes) == count * paid - stake * len(rest)
        lost = -Fraction(sum(changes), len(rest))
        assert EDGE * stake <= lost < EDGE * stake + Fraction(count, len(rest))


@pytest.mark.requirement("games.hilo")
def test_a_guess_that_can_not_come_true_is_illegal_and_one_beyond_the_account_short() -> None:
    state = hilo.begin(hilo.Config(), hilo.Facts("AS"))
    cards = ["AS", "2C"]
    never = hilo.apply(state, cards, hilo.Action(stake=1, guess="higher"), 100)
    assert isinstance(never, No)
    assert (never.short, "higher" in never.message) == (None, True)
    poor = hilo.apply(state, cards, hilo.Action(stake=101, guess="lower"), 100)
    assert isinstance(poor, No)
    assert poor.short == 101
    assert isinstance(hilo.apply(state, cards, hilo.Action(stake=100, guess="lower"), 100), Step)


@pytest.mark.requirement("games.hilo")
def test_a_stake_is_one_to_a_thousand() -> None:
    for stake, legal in ((0, False), (1, True), (1_000, True), (1_001, False), (1.5, False), (True, False)):
        action = {"type": "call", "stake": stake, "guess": "same"}
        if legal:
            msgspec.convert(action, hilo.Action)
        else:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(action, hilo.Action)


@pytest.mark.requirement("games.hilo")
def test_the_session_is_over_with_the_last_card_or_the_last_point() -> None:
    state = at(DECK, 50)
    last = hilo.apply(state, DECK, hilo.Action(stake=5, guess="higher"), 5)
    assert last == Step(hilo.Facts("AS", 4), -1, "shoe_empty")
    state = at(DECK, 12)  # the ace of clubs lies there, the two of diamonds comes
    lost = hilo.apply(state, DECK, hilo.Action(stake=5, guess="same"), 5)
    assert lost == Step(hilo.Facts("2D"), -5, "bust")
    lost = hilo.apply(state, DECK, hilo.Action(stake=5, guess="same"), 6)
    assert lost == Step(hilo.Facts("2D"), -5)


@pytest.mark.requirement("games.hilo")
def test_no_action_is_legal_without_a_point() -> None:
    state = hilo.begin(hilo.Config(), hilo.Facts("7S"))
    assert hilo.legal_actions(state, 0) == []
    assert {each["stake"]["max"] for each in hilo.legal_actions(state, 30)} == {30}
    assert {each["stake"]["max"] for each in hilo.legal_actions(state, 5_000)} == {1_000}


@pytest.mark.requirement("games.hidden")
@given(st.randoms(use_true_random=False), st.integers(0, 49))
def test_what_is_public_hangs_on_the_turned_cards_alone(random: Any, turned: int) -> None:
    """Two shoes that differ in what is still hidden look the same, from the first card to the present one."""
    cards = shoe()
    other = [*cards[: turned + 1], *random.sample(cards[turned + 1 :], 51 - turned)]
    public = []
    for each in (cards, other):
        facts = hilo.first(hilo.Config(), each)
        state = hilo.begin(hilo.Config(), facts)
        shown: list[Any] = [facts]
        for _ in range(turned):
            step = hilo.apply(state, each, hilo.Action(stake=1, guess=_possible(state)), 1_000)
            assert isinstance(step, Step)
            state = hilo.fold(state, step.facts)
            shown += [step, hilo.observe(state), hilo.legal_actions(state, 900)]
        public.append(shown)
    assert public[0] == public[1]


@pytest.mark.requirement("games.pure")
@given(st.integers(0, 1 << 32), st.integers(1, 500), st.integers(1, 3))
def test_a_session_never_owes_points_and_its_facts_are_its_state(
    number: int, points: int, decks: int
) -> None:
    random = Random(number)

    def choose(legal: list[dict[str, Any]]) -> dict[str, Any]:
        one = random.choice(legal[:-1])
        stake = random.randint(one["stake"]["min"], one["stake"]["max"])
        return {"type": "call", "guess": one["guess"], "stake": stake}

    events = played(hilo, choose, points=points, decks=decks)
    again = [msgspec.json.decode(msgspec.json.encode(each), type=type(each)) for each in events]
    live, same = arena.replay(hilo, events), arena.replay(hilo, again)
    assert (live.state, live.balance) == (same.state, same.balance)
    balances = [each.balance for each in events if not isinstance(each, arena.Closed)]
    assert min(balances) >= 0
    assert live.net == balances[-1] - points
    assert isinstance(events[0], Opened)
    seen = hilo.observe(live.state)
    assert sum(seen["left_by_rank"].values()) == seen["left"] == 52 * decks - len(events)


def _possible(state: hilo.State) -> hilo.Guess:
    return next(guess for guess in hilo.GUESSES if hilo.count(state, guess))
