"""Hi-Lo, version 1: is the next card higher, lower or the same? (docs/reference/arena.md, Hi-Lo)

1. A shoe of 52·decks cards lies in an order that the draws gave. Ranks alone count: 2 lowest, ace highest.
2. A guess pays by the exact odds of the cards that are left, less the edge: stake · 49/50 · left/favourable, rounded
   down, comes back; a wrong one loses the stake. Counting cards gains nothing, since the odds know them all.
3. The session is over when the last card lies open, at the latest.
"""

from fractions import Fraction
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from broker.core.chance import Draws
from broker.core.games.game import Common, No, Step

NAME: Final = "hilo"
VERSION: Final = 1
TITLE: Final = "Hi-Lo"
EDGE: Final = Fraction(1, 50)
"""The part of a fair pay-out that the house keeps."""
KEPT: Final = 1 - EDGE
"""The part that is paid out."""
MIN_STAKE: Final = 1
MAX_STAKE: Final = 1_000
RANKS: Final = "23456789TJQKA"
SUITS: Final = "CDHS"
WAGER: Final[dict[str, Any]] = {
    "min_stake": MIN_STAKE,
    "max_stake": MAX_STAKE,
    "edge": [EDGE.numerator, EDGE.denominator],
}
RULES: Final = """\
A shoe of 52 cards a deck is shuffled; one card lies open. Guess whether the next one is `higher`, `lower` or the
`same` by rank (2 is lowest, the ace is highest; suits don't count), and stake 1 to 1,000 points.

Of `left` cards that are still in the shoe `favourable` make the guess come true. A right guess returns
`floor(stake * 49 * left / (50 * favourable))` points for the stake, a wrong one returns nothing: by each the house
keeps 2 % on average, and less than one point more by rounding. Each legal action shows its odds and what it pays.

The session is over when the last card has been turned, when the account has no point left, or when you `stop`."""
Guess = Literal["higher", "lower", "same"]
GUESSES: Final[tuple[Guess, ...]] = ("higher", "lower", "same")


class Config(Common, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many decks the shoe has."""

    decks: Annotated[int, Meta(ge=1, le=8, description="decks of 52 cards in the shoe")] = 1


class Action(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="call", kw_only=True
):
    """A guess at the next card."""

    stake: Annotated[int, Meta(ge=MIN_STAKE, le=MAX_STAKE, description="points at stake")]
    guess: Annotated[Guess, Meta(description="what the next card's rank is, compared with the open one")]


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The card that was turned. `returned`: the points that came back for the stake, 0 where the guess was wrong."""

    card: str
    returned: int = 0


class State(msgspec.Struct, frozen=True):
    """The open card, and how many of each rank are still in the shoe."""

    current: str
    left: tuple[int, ...]
    seen: tuple[str, ...]


def deal(config: Config, draws: Draws) -> list[str]:
    """The shoe, the first card first."""
    shoe = [rank + suit for _ in range(config.decks) for suit in SUITS for rank in RANKS]
    draws.shuffle(shoe)
    return shoe


def first(config: Config, hidden: list[str]) -> Facts:
    """The first card lies open."""
    return Facts(hidden[0])


def begin(config: Config, facts: Facts) -> State:
    """A full shoe, less the open card."""
    full = (4 * config.decks,) * len(RANKS)
    return _turned(State("", full, ()), facts.card)


def legal_actions(state: State, points: int) -> list[dict[str, Any]]:
    """Each guess that can come true: the stakes that the account covers, the odds [favourable, left], and what one
    point at stake returns as a fraction [numerator, denominator], before rounding down."""
    most = min(MAX_STAKE, points)
    if most < MIN_STAKE:
        return []
    return [
        {
            "type": "call",
            "guess": guess,
            "stake": {"min": MIN_STAKE, "max": most},
            "odds": [favourable, sum(state.left)],
            "returns": [pays.numerator, pays.denominator],
        }
        for guess in GUESSES
        if (favourable := count(state, guess)) and (pays := returns(state, guess))
    ]


def apply(state: State, hidden: list[str], action: Action, points: int) -> Step | No:
    """Turn the next card, and settle the guess."""
    if not count(state, action.guess):
        return No(f"no card that is left is {action.guess}")
    if action.stake > points:
        return No(f"a stake of {action.stake} points, and the account has {points}", short=action.stake)
    card = hidden[len(state.seen)]
    won = judge(state.current, card) == action.guess
    returned = int(action.stake * returns(state, action.guess)) if won else 0
    change = returned - action.stake
    over = "shoe_empty" if sum(state.left) == 1 else "bust" if points + change < MIN_STAKE else None
    return Step(Facts(card, returned), change, over)


def fold(state: State, facts: Facts) -> State:
    """The card that was turned lies open."""
    return _turned(state, facts.card)


def observe(state: State) -> dict[str, Any]:
    """The open card, all that were turned in their order (it is the last), and how many of each rank are left."""
    return {
        "current": state.current,
        "seen": list(state.seen),
        "left": sum(state.left),
        "left_by_rank": dict(zip(RANKS, state.left, strict=True)),
    }


def judge(current: str, card: str) -> Guess:
    """What a card is, compared with the open one."""
    was, is_ = RANKS.index(current[0]), RANKS.index(card[0])
    return "same" if was == is_ else "higher" if is_ > was else "lower"


def count(state: State, guess: Guess) -> int:
    """How many of the cards that are left make a guess come true."""
    at = RANKS.index(state.current[0])
    part = {"higher": state.left[at + 1 :], "lower": state.left[:at], "same": state.left[at : at + 1]}
    return sum(part[guess])


def returns(state: State, guess: Guess) -> Fraction:
    """What one point at stake returns, before rounding down, where a guess that can come true does."""
    return Fraction(KEPT.numerator * sum(state.left), KEPT.denominator * count(state, guess))


def _turned(state: State, card: str) -> State:
    at = RANKS.index(card[0])
    if not state.left[at] or card[1:] not in tuple(SUITS):
        raise ValueError("the shoe has no such card, or none any more")
    left = (*state.left[:at], state.left[at] - 1, *state.left[at + 1 :])
    return replace(state, current=card, left=left, seen=(*state.seen, card))
