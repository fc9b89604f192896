"""RFQ, version 1: quote simulated clients, and keep what the quotes earn (docs/reference/arena.md, RFQ).

1. A tape of requests lies there from the start: of each its size, the client's side and how far from the reference it
   trades, and where the reference goes next. One client in three knows that, and takes its side by it.
2. Points are the dealer's profit and loss, marked to the reference after each step: what the trade was better than the
   reference, and what the position gained by its move.
3. A step can lose no more than `worst`, and is not taken unless the account has that. So no account is overdrawn.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from broker.core.chance import Draws
from broker.core.games.game import Common, No, Step

NAME: Final = "rfq"
VERSION: Final = 1
TITLE: Final = "RFQ dealer"
START: Final = 10_000
"""The first reference price, in points a unit: no tape takes it below 5,000."""
MAX_SIZE: Final = 5
INFORMED: Final = 3
"""One client in so many knows the next move."""
WIDE: Final = 2
"""Prices are at most so many times the volatility from the reference, quoted or wanted."""
WAGER: Final[dict[str, Any]] = {
    "min_size": 1,
    "max_size": MAX_SIZE,
    "informed": [1, INFORMED],
    "widest": WIDE,
}
RULES: Final = """\
You are a dealer. Each step shows a `reference` price and the `size` that a client asks for: 1 to 5 units. Whether
it buys or sells is hidden. Answer with `quote` (a `bid`, an `ask` or both) or with `pass`.

A client that buys takes your ask if that is not above what it would pay; one that sells takes your bid if that is
not below what it would take. What it would is hidden: 0 to `widest` points from the reference, each as likely.
Then the reference moves by up to `volatility` points, each move as likely. One client in three knows the move: it
buys before the reference rises, and sells before it falls. All others buy or sell by chance.

Your points change by size * (what the price was better for you than the reference) + inventory * move, with the
inventory after the trade.

- A bid is below the ask. Both are within `widest` (twice the volatility) of the reference.
- A side is not quoted if the trade would take the inventory beyond `inventory_limit`, long or short.
- An action needs the points that it could lose at most: whichever of no trade, your buying at the bid and your
  selling at the ask is worst, with the move that is worst for it. Legal actions show what you can afford.

The session is over after the last request (`tape_over`), when the account does not cover the worst move of the
inventory (`bust`), or when you `stop`. The inventory is worth the reference then; nothing more is paid for it."""
Side = Literal["buys", "sells"]
Price = Annotated[
    int, Meta(ge=0, le=1_000_000, description="points a unit; without it this side is not quoted")
]


class Config(Common, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How long the tape is, and how rough."""

    steps: Annotated[int, Meta(ge=1, le=250, description="requests on the tape")] = 50
    volatility: Annotated[
        int, Meta(ge=1, le=20, description="the most that the reference moves in a step")
    ] = 10
    inventory_limit: Annotated[
        int, Meta(ge=MAX_SIZE, le=50, description="units held at most, long or short")
    ] = 20


class Quote(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="type",
    tag="quote",
    kw_only=True,
    omit_defaults=True,
):
    """Prices at which you buy (bid) and sell (ask) the size that is asked for; one of them at least."""

    bid: Price | None = None
    ask: Price | None = None


class Pass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="pass"):
    """No price for this client."""


Action = Quote | Pass


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reference as it is now and the size that is asked for next (0: there is no next); and what the client before
    did, at which price, where it traded."""

    reference: int
    size: int = 0
    client: Side | None = None
    price: int | None = None


class State(msgspec.Struct, frozen=True):
    """Where the tape stands, and what the dealer holds (negative: is short of)."""

    config: Config
    step: int
    reference: int
    size: int
    inventory: int


class Request(msgspec.Struct, frozen=True):
    """One request of the tape: what is asked, who asks, and where the reference goes after it."""

    size: int
    move: int
    side: Side
    distance: int
    """How far beyond the reference the client goes: a buyer above it, a seller below."""


def deal(config: Config, draws: Draws) -> list[Request]:
    """The tape: five draws a request, in the order in which they are drawn here."""
    return [_request(config.volatility, draws) for _ in range(config.steps)]


def first(config: Config, hidden: list[Request]) -> Facts:
    """The first reference, and the first request's size."""
    return Facts(START, hidden[0].size)


def begin(config: Config, facts: Facts) -> State:
    """Nothing is held, nothing was asked before."""
    return State(config, 0, facts.reference, facts.size, 0)


def legal_actions(state: State, points: int) -> list[dict[str, Any]]:
    """To pass, and to quote the prices that the limits and the account allow; a side without any is left out."""
    if points < exposure(state, 0):
        return []
    quote: dict[str, Any] = {"type": "quote"}
    low, high, size = state.reference - widest(state), state.reference + widest(state), state.size
    if fits(state, size):
        quote["bid"] = {
            "min": low,
            "max": min(high, state.reference + (points - exposure(state, size)) // size),
        }
    if fits(state, -size):
        quote["ask"] = {
            "min": max(low, state.reference - (points - exposure(state, -size)) // size),
            "max": high,
        }
    return [quote, {"type": "pass"}]


def apply(state: State, hidden: list[Request], action: Quote | Pass, points: int) -> Step | No:
    """Ask the client, then move the reference; what both make of the dealer's points."""
    quote = action if isinstance(action, Quote) else Quote()
    if isinstance(action, Quote) and (why := fault(state, action)) is not None:
        return No(why)
    if (needed := worst(state, quote)) > points:
        return No(f"this could lose {needed} points, and the account has {points}", short=needed)
    request = hidden[state.step]
    price = fill(state.reference, request, quote)
    client = None if price is None else request.side
    bought = 0 if client is None else state.size if client == "sells" else -state.size
    edge = 0 if price is None else bought * (state.reference - price)
    inventory = state.inventory + bought
    change = edge + inventory * request.move
    last = state.step + 1 == len(hidden)
    facts = Facts(state.reference + request.move, 0 if last else hidden[state.step + 1].size, client, price)
    short = points + change < abs(inventory) * state.config.volatility
    return Step(facts, change, "tape_over" if last else "bust" if short else None)


def fold(state: State, facts: Facts) -> State:
    """The trade is in the inventory, and the next request is there."""
    if state.step >= state.config.steps:
        raise ValueError("the tape is over")
    bought = {"sells": state.size, "buys": -state.size, None: 0}[facts.client]
    return replace(
        state,
        step=state.step + 1,
        reference=facts.reference,
        size=facts.size,
        inventory=state.inventory + bought,
    )


def observe(state: State) -> dict[str, Any]:
    """The request, what is held, and the limits."""
    return {
        "reference": state.reference,
        "size": state.size,
        "inventory": state.inventory,
        "left": state.config.steps - state.step,
        "inventory_limit": state.config.inventory_limit,
        "volatility": state.config.volatility,
        "widest": widest(state),
    }


def widest(state: State) -> int:
    """How far from the reference a price may be."""
    return WIDE * state.config.volatility


def fits(state: State, bought: int) -> bool:
    """Whether the inventory is within its limit after buying so much (negative: selling)."""
    return abs(state.inventory + bought) <= state.config.inventory_limit


def exposure(state: State, bought: int) -> int:
    """What the worst move costs after buying so much."""
    return abs(state.inventory + bought) * state.config.volatility


def fault(state: State, quote: Quote) -> str | None:
    """What is wrong with a quote, whatever the account has."""
    if quote.bid is None and quote.ask is None:
        return "a quote has a bid or an ask; to name none is to pass"
    if quote.bid is not None and quote.ask is not None and quote.bid >= quote.ask:
        return "a bid is below the ask"
    for side, price, bought in (("bid", quote.bid, state.size), ("ask", quote.ask, -state.size)):
        if price is None:
            continue
        if abs(price - state.reference) > widest(state):
            return f"the {side} is within {widest(state)} points of the reference, {state.reference}"
        if not fits(state, bought):
            return f"with a {side} the inventory could be {state.inventory + bought}: leave it out"
    return None


def worst(state: State, quote: Quote) -> int:
    """The most that a step with this quote can lose: of no trade, and of each side that is quoted."""
    losses = [exposure(state, 0)]
    if quote.bid is not None:
        losses.append(state.size * (quote.bid - state.reference) + exposure(state, state.size))
    if quote.ask is not None:
        losses.append(state.size * (state.reference - quote.ask) + exposure(state, -state.size))
    return max(losses)


def fill(reference: int, request: Request, quote: Quote) -> int | None:
    """The price at which the client trades; None where it does not."""
    if request.side == "buys":
        return quote.ask if quote.ask is not None and quote.ask <= reference + request.distance else None
    return quote.bid if quote.bid is not None and quote.bid >= reference - request.distance else None


def _request(volatility: int, draws: Draws) -> Request:
    size = draws.between(1, MAX_SIZE)
    move = draws.between(-volatility, volatility)
    side: Side = "buys" if draws.below(2) == 0 else "sells"
    if draws.below(INFORMED) == 0 and move != 0:
        side = "buys" if move > 0 else "sells"
    return Request(size, move, side, draws.below(WIDE * volatility + 1))
