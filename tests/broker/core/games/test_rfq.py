"""RFQ: the tape draw by draw, fills and marks, the points that a step needs, what it earns, and what stays hidden."""

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from broker.core import arena
from broker.core.chance import Draws, Secret, domain_of
from broker.core.games import rfq
from broker.core.games.game import No, Step
from broker.core.games.rfq import Config, Facts, Pass, Quote, Request, State
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.games import SECRET, Given, played

PAGE = Path(__file__).parents[4] / "docs/reference/arena.md"
sizes, volatilities = st.integers(1, rfq.MAX_SIZE), st.integers(1, 20)


@st.composite
def states(draw: st.DrawFn) -> State:
    """A state that a session may come to."""
    limit = draw(st.integers(5, 50))
    config = Config(volatility=draw(volatilities), inventory_limit=limit)
    return State(config, 3, draw(st.integers(5_000, 15_000)), draw(sizes), draw(st.integers(-limit, limit)))


def tape(state: State, *, side: rfq.Side = "buys", distance: int = 0, move: int = 0) -> list[Request]:
    """A tape on which the present request is this one, with one more after it."""
    one = Request(state.size, move, side, distance)
    return [one] * (state.step + 2)


def flat(reference: int = 10_000, size: int = 3, inventory: int = 0, **config: Any) -> State:
    return State(Config(**config), 0, reference, size, inventory)


@pytest.mark.requirement("games.rfq")
def test_a_request_is_made_of_five_draws_in_their_order() -> None:
    #                size move side informed distance
    given = Given(iter([4, 20, 1, 0, 20, 0, 0, 0, 0, 0, 2, 10, 0, 0, 7, 1, 3, 0, 1, 2, 0, 13, 1, 2, 5]))
    assert rfq.deal(Config(steps=5), given) == [
        Request(5, 10, "buys", 20),  # informed, before a rise: a buyer, whatever was drawn
        Request(1, -10, "sells", 0),  # informed, before a fall
        Request(3, 0, "buys", 7),  # informed, but nothing moves: as drawn
        Request(2, -7, "buys", 2),
        Request(1, 3, "sells", 5),
    ]
    assert given.asked == [5, 21, 2, 3, 21] * 5


@pytest.mark.requirement("games.rfq")
def test_the_first_tape_of_these_seeds_is_this_one() -> None:
    made = rfq.deal(Config(steps=4), Draws(SECRET.seed, domain_of("rfq", 1), "x"))
    assert [msgspec.structs.astuple(each) for each in made] == [
        (4, -4, "sells", 7),
        (3, -4, "buys", 15),
        (4, -5, "sells", 6),
        (4, -7, "sells", 3),
    ]


@pytest.mark.requirement("games.rfq")
@pytest.mark.parametrize(
    ("side", "distance", "bid", "ask", "price"),
    [
        ("buys", 5, 9_990, 10_005, 10_005),
        ("buys", 5, 9_990, 10_006, None),
        ("buys", 5, 9_990, None, None),
        ("buys", 0, None, 9_999, 9_999),
        ("sells", 5, 9_995, 10_020, 9_995),
        ("sells", 5, 9_994, 10_020, None),
        ("sells", 5, None, 10_020, None),
        ("sells", 0, 10_001, None, 10_001),
    ],
)
def test_a_client_trades_where_the_price_is_not_worse_than_what_it_wants(
    side: rfq.Side, distance: int, bid: int | None, ask: int | None, price: int | None
) -> None:
    state = flat()
    step = rfq.apply(state, tape(state, side=side, distance=distance, move=4), Quote(bid=bid, ask=ask), 1_000)
    assert isinstance(step, Step)
    assert step.facts.price == price
    assert step.facts.client == (side if price is not None else None)
    bought = 0 if price is None else 3 if side == "sells" else -3
    assert rfq.fold(state, step.facts).inventory == bought
    assert step.change == bought * (10_000 - (price or 0)) + bought * 4


@pytest.mark.requirement("games.rfq")
def test_a_step_is_marked_with_the_inventory_after_the_trade() -> None:
    state = flat(inventory=7)
    sold = rfq.apply(
        state, tape(state, side="buys", distance=9, move=-6), Quote(bid=9_995, ask=10_008), 1_000
    )
    assert sold == Step(Facts(9_994, 3, "buys", 10_008), 3 * 8 + (7 - 3) * -6)
    held = rfq.apply(state, tape(state, side="buys", distance=7, move=-6), Quote(ask=10_008), 1_000)
    assert held == Step(Facts(9_994, 3), 7 * -6)
    assert rfq.apply(state, tape(state, move=-6), Pass(), 1_000) == Step(Facts(9_994, 3), 7 * -6)


@pytest.mark.requirement("games.rfq")
@pytest.mark.parametrize(
    ("inventory", "quote", "words"),
    [
        (0, Quote(), "to name none is to pass"),
        (0, Quote(bid=10_000, ask=10_000), "below the ask"),
        (0, Quote(bid=10_001, ask=10_000), "below the ask"),
        (0, Quote(bid=9_979), "the bid is within 20"),
        (0, Quote(bid=10_021), "the bid is within 20"),
        (0, Quote(ask=10_021), "the ask is within 20"),
        (0, Quote(ask=9_979), "the ask is within 20"),
        (18, Quote(bid=9_990, ask=10_010), "the inventory could be 21"),
        (-18, Quote(bid=9_990, ask=10_010), "the inventory could be -21"),
    ],
)
def test_a_quote_that_no_client_may_be_shown_is_illegal(inventory: int, quote: Quote, words: str) -> None:
    state = flat(inventory=inventory)
    no = rfq.apply(state, tape(state), quote, 1_000_000)
    assert isinstance(no, No)
    assert (no.short, words in no.message) == (None, True)


@pytest.mark.requirement("games.rfq")
def test_at_its_limits_a_quote_is_legal() -> None:
    for inventory, quote in (
        (17, Quote(bid=9_980, ask=9_981)),
        (-17, Quote(bid=10_019, ask=10_020)),
        (18, Quote(ask=9_980)),
        (-18, Quote(bid=10_020)),
    ):
        state = flat(inventory=inventory)
        assert isinstance(rfq.apply(state, tape(state), quote, 1_000_000), Step)


@pytest.mark.requirement("games.covered")
@given(states(), st.integers(-40, 40), st.integers(-40, 40), st.sampled_from(["bid", "ask", "both", "pass"]))
def test_a_step_needs_exactly_what_it_can_lose(state: State, low: int, high: int, which: str) -> None:
    bid = state.reference + low if which in ("bid", "both") else None
    ask = state.reference + high if which in ("ask", "both") else None
    action = Pass() if which == "pass" else Quote(bid=bid, ask=ask)
    no = rfq.apply(state, tape(state), action, 10**9)
    if isinstance(no, No):
        assert no.short is None
        return
    volatility, worst = state.config.volatility, 0
    distance = 2 * volatility
    for side, move in product(("buys", "sells"), (-volatility, volatility)):
        for reach in (0, distance):
            hidden = tape(state, side=side, distance=reach, move=move)
            step = rfq.apply(state, hidden, action, 10**9)
            assert isinstance(step, Step)
            worst = max(worst, -step.change)
    hidden = tape(state)
    short = rfq.apply(state, hidden, action, worst - 1) if worst else None
    assert short is None or (isinstance(short, No) and short.short == worst)
    assert isinstance(rfq.apply(state, hidden, action, worst), Step)


@pytest.mark.requirement("games.covered")
@given(states(), st.integers(0, 3_000), st.data())
def test_the_legal_actions_are_those_that_are_taken(state: State, points: int, data: st.DataObject) -> None:
    legal = rfq.legal_actions(state, points)
    hidden = tape(state)
    passes = isinstance(rfq.apply(state, hidden, Pass(), points), Step)
    assert passes == ({"type": "pass"} in legal)
    box = legal[0] if legal else {}
    assert all(box[side]["min"] <= box[side]["max"] for side in box if side != "type")
    assert not legal or "bid" in box or "ask" in box
    price = state.reference + data.draw(st.integers(-41, 41))
    for side in ("bid", "ask"):
        taken = isinstance(rfq.apply(state, hidden, Quote(**{side: price}), points), Step)
        assert taken == (side in box and box[side]["min"] <= price <= box[side]["max"])
    other = price + data.draw(st.integers(-5, 41))
    both = isinstance(rfq.apply(state, hidden, Quote(bid=price, ask=other), points), Step)
    within = all(
        side in box and box[side]["min"] <= each <= box[side]["max"]
        for side, each in (("bid", price), ("ask", other))
    )
    assert both == (within and price < other)


@pytest.mark.requirement("games.covered", "games.pure")
@given(st.integers(0, 1 << 32), st.integers(1, 900), volatilities, st.integers(5, 50))
def test_a_session_never_owes_points_and_its_facts_are_its_state(
    number: int, points: int, volatility: int, limit: int
) -> None:
    random = Random(number)

    def choose(legal: list[dict[str, Any]]) -> dict[str, Any]:
        box = legal[0]
        action = {side: random.randint(box[side]["min"], box[side]["max"]) for side in box if side != "type"}
        if "bid" in action and action["bid"] >= action.get("ask", 1 << 30):
            del action["bid"]
        return {"type": "quote", **action} if random.random() < 0.8 else {"type": "pass"}

    secret = Secret(random.randbytes(32).hex(), random.randbytes(32).hex())
    config = {"points": points, "volatility": volatility, "inventory_limit": limit}
    events = played(rfq, choose, secret=secret, **config)
    again = [msgspec.json.decode(msgspec.json.encode(each), type=type(each)) for each in events]
    live = arena.replay(rfq, again)
    assert live.state == arena.replay(rfq, events).state
    assert live.ended is not None
    assert live.ended.over in ("tape_over", "bust")
    assert live.balance >= 0
    assert abs(live.state.inventory) <= limit
    cash, asked = 0, again[0].facts["size"]  # what was paid and got, and the position at the last reference
    for each in again[1:]:
        facts = each.facts
        cash += {"buys": 1, "sells": -1}.get(facts.get("client"), 0) * asked * facts.get("price", 0)
        asked = facts.get("size")
    assert live.net == cash + live.state.inventory * live.state.reference
    assert (live.ended.over == "tape_over") == (live.state.step == 50) == (live.state.size == 0)
    if live.ended.over == "bust":
        assert live.balance < abs(live.state.inventory) * volatility


@pytest.mark.requirement("games.rfq")
def test_an_account_that_does_not_cover_the_inventory_is_bust() -> None:
    state, quote = flat(size=5), Quote(bid=10_000)
    for points, over in ((99, "bust"), (100, None)):
        step = rfq.apply(state, tape(state, side="sells", move=-10), quote, points)
        assert isinstance(step, Step)
        assert (step.change, step.over) == (-50, over)


@pytest.mark.requirement("games.hidden")
@given(st.integers(0, 10_000), st.integers(1, 20), st.data())
def test_a_client_that_did_not_trade_shows_neither_its_side_nor_its_price(
    number: int, half: int, data: st.DataObject
) -> None:
    """Tapes that differ in what a client wanted that did not trade, and in all that comes after, look the same."""
    config = Config(steps=12)
    one = rfq.deal(config, Draws(number.to_bytes(32).hex(), domain_of("rfq", 1), "x"))
    quote = Quote(bid=10_000 - half, ask=10_000 + half)
    at = data.draw(st.integers(0, 11))
    other = []
    for each in one[: at + 1]:
        side = data.draw(st.sampled_from(["buys", "sells"]))
        distance = data.draw(st.integers(0, 20))
        changed = replace(each, side=side, distance=distance)
        idle = all(rfq.fill(10_000, request, quote) is None for request in (each, changed))
        other.append(changed if idle else each)
    other += [Request(6 - each.size, -each.move, each.side, each.distance) for each in one[at + 1 :]]
    shown = [list(_public(config, tape, half, at)) for tape in (one, other)]
    if at < 11:  # the size that is asked for next is public
        for each in shown:
            each.pop()
    assert shown[0] == shown[1]


def _public(config: Config, tape: list[Request], half: int, steps: int) -> Iterator[Any]:
    """All that is public of these many steps and the one after them, with a quote so far from the reference."""
    facts = rfq.first(config, tape)
    state = rfq.begin(config, facts)
    points = 100_000
    yield facts
    for _ in range(steps + 1):
        yield rfq.observe(state), rfq.legal_actions(state, points)
        bid, ask = state.reference - half, state.reference + half
        quote = Quote(bid=bid, ask=ask)
        if rfq.fault(state, quote) is not None:
            quote = Quote(ask=ask) if state.inventory > 0 else Quote(bid=bid)
        step = rfq.apply(state, tape, quote, points)
        assert isinstance(step, Step)
        points += step.change
        state = rfq.fold(state, step.facts)
        yield step.change, step.over, step.facts.reference, step.facts.client, step.facts.price
    yield state.size


@pytest.mark.requirement("games.odds")
@pytest.mark.parametrize(("volatility", "inventory"), [(1, 0), (2, 4), (3, -4)])
def test_what_a_step_earns_is_what_the_page_says(volatility: int, inventory: int) -> None:
    """The mean over all draws that a request can be made of, exactly, for each distance of a quote of both sides."""
    v = volatility
    a = Fraction(v * (v + 1), 3 * (2 * v + 1))
    ranges = (range(5), range(2 * v + 1), range(2), range(3), range(2 * v + 1))
    requests = [rfq._request(v, Given(iter(draws))) for draws in product(*ranges)]
    for h in range(1, 2 * v + 1):
        changes = 0
        for request in requests:
            state = flat(size=request.size, inventory=inventory, volatility=v)
            step = rfq.apply(state, [request] * 2, Quote(bid=10_000 - h, ask=10_000 + h), 10_000)
            assert isinstance(step, Step)
            changes += step.change
        assert Fraction(changes, len(requests)) == 3 * (h - a) * Fraction(2 * v + 1 - h, 2 * v + 1)


@pytest.mark.requirement("games.odds")
def test_the_table_on_the_page_is_what_its_formula_says() -> None:
    page = PAGE.read_text().replace("−", "-")
    distances, earned = re.findall(r"^\| (?:h|points a step) \| (.*) \|$", page, re.MULTILINE)
    a = Fraction(110, 3 * 21)
    for h, points in zip(distances.split(" | "), earned.split(" | "), strict=True):
        assert f"{float(3 * (int(h) - a) * Fraction(21 - int(h), 21)):.2f}" == points


@pytest.mark.requirement("games.odds")
def test_a_sensible_dealer_earns_and_a_naive_one_pays_for_it() -> None:
    def net(seed: int, half: int, *, skewed: bool) -> int:
        config = Config()
        hidden = rfq.deal(config, Draws(seed.to_bytes(32).hex(), domain_of("rfq", 1), "x"))
        state, points = rfq.begin(config, rfq.first(config, hidden)), 1_000
        over = None
        while over is None:
            box = rfq.legal_actions(state, points)[0]
            middle = state.reference - (state.inventory // 2 if skewed else 0)
            wanted = {"bid": middle - half, "ask": middle + max(half, 1)}
            quote = {s: min(max(p, box[s]["min"]), box[s]["max"]) for s, p in wanted.items() if s in box}
            step = rfq.apply(state, hidden, Quote(**quote), points)
            assert isinstance(step, Step), step
            points, state, over = points + step.change, rfq.fold(state, step.facts), step.over
        return points - 1_000

    sensible = [net(seed, 11, skewed=True) for seed in range(100)]
    naive = [net(seed, 0, skewed=False) for seed in range(100)]
    assert sum(sensible) / 100 > 400
    assert sum(each > 0 for each in sensible) > 90
    assert sum(naive) / 100 < -50


@pytest.mark.requirement("games.rfq")
async def test_get_game_shows_both_actions(bench: Bench) -> None:
    shown: Any = msgspec.to_builtins(await bench.call("get_game", await make_agent(bench, "Ann"), game="rfq"))
    assert [each["properties"]["type"]["enum"] for each in shown["action_schema"]["anyOf"]] == [
        ["quote"],
        ["pass"],
        ["stop"],
    ]
