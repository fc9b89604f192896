"""A plan run on a tape."""

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.pieces import whole
from broker.core.plan.program import View, compile_plan
from broker.core.plan.read import Checked, read_plan
from broker.core.plan.tree import Plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import Tape
from broker.core.trials.account import MAX_PNL, Account, Fill, pnl
from broker.core.trials.run import SHOWN, Place, Run, ready
from tests.support.tapes import tape

HEAD = "plan test 1 on EURUSD bound position 100, loss 1, orders 50, until 1000 "
FLAT = tape(*[(99, 101)] * 12)
FADE = """
plan fade 1
on EURUSD
bound position 3000000, loss 2500, orders 40, until 3000
when spread >= 2 and position = 0 and mid < avg(mid, 50): buy 1000000 at mid - 1
when position > 0 and mid > avg(mid, 50): sell 1000000 at mid, cancel
when pnl <= -1500: stand_down
"""


def plan(text: str) -> Plan:
    checked = read_plan(text)
    assert isinstance(checked, Checked), checked
    return checked.plan


def run(market: Tape, text: str, ticks: int = 10_000) -> tuple[Run, list[Fill]]:
    made = Run(market, plan(text), Place())
    return made, made.advance(ticks)


@pytest.mark.requirement("trial.runs")
def test_what_a_rule_sends_acts_from_the_next_tick_on() -> None:
    made, fills = run(FLAT, HEAD + "when tick = 3: buy 10 at ask")
    assert [(fill.tick, fill.size, fill.price) for fill in fills] == [(4, 10, 101)]
    assert (made.outcome, made.place.over, made.place.tick) == ("DONE", "tape", 12)


@pytest.mark.requirement("trial.runs")
@pytest.mark.parametrize(
    ("tif", "at"), [("ioc", None), ("gtc", 5), ("for 2", None), ("for 3", 5), ("for 4", 5)]
)
def test_an_order_lives_as_long_as_its_time_in_force(tif: str, at: int | None) -> None:
    market = tape(*[(99, 101)] * 5, *[(96, 98)] * 5)
    _, fills = run(market, HEAD + f"when tick = 2: buy 10 at 98 {tif}")
    assert [fill.tick for fill in fills] == ([] if at is None else [at])


ALL_SEEN = """plan all 1 on EURUSD bound position 100, loss 900, orders 900, until 1000
when tick % 2 = 0: buy size % 5 + 1 at ask for 2
when tick % 2 = 1: sell 3 at bid - spread / 2 + 1 gtc
when pnl < -0.01 or max(mid, 3) > avg(ask, 7) + 1: buy 3 at min(bid, 2) + fill % 3 gtc
when size > size[2] and resting > 3: cancel"""


@pytest.mark.requirement("trial.past")
@pytest.mark.parametrize("ticks", [1, 2, 3, 8, 9, 20, 39])
def test_a_rule_sees_no_tick_that_is_to_come(ticks: int) -> None:
    """Whatever comes after a tick, what was done up to it is the same, what was sent at it too."""
    rows = [(90 + n * n % 13, 92 + n * n % 13 + n % 3, 3 + n * 7 % 11) for n in range(40)]
    others = [(bid + 50, ask + 90, size + 3) for bid, ask, size in rows]
    runs = [run(tape(*rows[:ticks], *rest[ticks:]), ALL_SEEN, ticks) for rest in (rows, others)]
    (made, fills), (same, other) = runs
    assert made.place.account.working
    assert (made.place, fills) == (same.place, other)


SEEN = [(99, 101, 50)] * 6 + [(98, 101, 50), (99, 103, 50), (99, 101, 7), (99, 101, 50)]


@pytest.mark.requirement("trial.past")
@pytest.mark.parametrize(
    ("cond", "first"),
    [
        *[("bid = 98", 6), ("ask = 103", 7), ("spread = 4", 7), ("mid < 100", 6), ("mid[1] < 100", 7)],
        *[("size = 7", 8), ("tick = 3", 3), ("max(ask, 2) = 103", 7)],
        *[("position = 10", 2), ("pnl = -0.0002", 2), ("pnl = -0.0003", 6), ("orders_left = 49", 2)],
        *[("resting = 1", 5), ("fill = 101", 2), ("fill_age = 0", 2), ("fill_age = 1", 3)],
    ],
)
def test_a_rule_sees_this_tick_and_the_plans_own_book(cond: str, first: int) -> None:
    rules = "when tick = 1: buy 10 at ask when tick = 4: buy 1 at 40 gtc "
    made = Run(tape(*SEEN), plan(f"{HEAD}{rules}when {cond}: sell 1 at 500 gtc"), Place())
    while not any(order.price == 500 for order in made.place.account.working):
        assert made.place.over is None
        made.advance(1)
    assert made.place.tick - 1 == first


@pytest.mark.requirement("trial.runs")
def test_a_rule_that_stands_down_closes_and_it_is_over() -> None:
    made, fills = run(
        FLAT, HEAD + "when tick = 2: buy 10 at ask when tick = 5: stand_down when tick > 5: buy 5 at ask"
    )
    assert [(fill.tick, fill.side) for fill in fills] == [(3, "buy"), (6, "sell")]
    assert (made.outcome, made.place.over, made.place.tick) == ("STAND_DOWN", "rule", 7)
    assert made.advance(5) == []
    assert made.place.tick == 7


@pytest.mark.requirement("trial.runs")
def test_standing_down_with_nothing_held_is_over_at_once_and_takes_back_what_rests() -> None:
    made, fills = run(FLAT, HEAD + "when tick = 2: buy 10 at 50 gtc when tick = 5: stand_down")
    assert (fills, made.place.over, made.place.tick, made.place.account.working) == ([], "rule", 6, [])


@pytest.mark.requirement("trial.runs")
def test_a_thin_book_is_closed_as_fast_as_its_size_lets() -> None:
    market = tape(*[(99, 101, 4)] * 12)
    made, fills = run(market, HEAD + "when tick < 3: buy 4 at ask when tick = 5: stand_down", 7)
    assert (made.outcome, made.place.closing, made.place.over) == ("STAND_DOWN", "rule", None)
    fills += made.advance(100)
    assert (made.outcome, made.place.over) == ("STAND_DOWN", "rule")
    assert [(fill.tick, fill.size) for fill in fills if fill.side == "sell"] == [(6, 4), (7, 4), (8, 4)]
    assert made.place.tick == 9


@pytest.mark.requirement("trial.runs")
def test_the_loss_bound_is_kept_whatever_the_rules_say() -> None:
    market = tape(*[(100, 102)] * 3, *[(50, 52)] * 9)  # 100 units lose 0.051 quote a tick of 10 millionths
    text = HEAD.replace("loss 1,", "loss 0.05,") + "when tick = 0: buy 100 at ask when tick > 3: buy 1 at ask"
    made, fills = run(market, text)
    assert [(fill.tick, fill.side) for fill in fills] == [(1, "buy"), (4, "sell")]
    assert (made.outcome, made.place.over) == ("STAND_DOWN", "loss")


@pytest.mark.requirement("trial.session-money")
def test_more_profit_than_is_told_stands_down() -> None:
    place = Place(account=Account(cash=MAX_PNL - 1_500, position=1))
    made = Run(tape(*[(100 + 10 * n,) * 2 for n in range(9)]), plan(HEAD + "when tick > 8: flatten"), place)
    assert [(fill.tick, fill.side) for fill in made.advance(9)] == [(6, "sell")]
    assert (made.outcome, made.place.over, made.place.tick) == ("STAND_DOWN", "money", 7)


@pytest.mark.requirement("trial.bounds")
def test_a_rule_sees_no_orders_left_where_more_were_sent_than_its_plan_may() -> None:
    place = Place(account=Account(sent=60))
    made = Run(FLAT, plan(HEAD + "when orders_left = 0: flatten, stand_down"), place)
    made.advance(1)
    assert made.place.over == "rule"


@pytest.mark.requirement("trial.runs")
def test_after_its_last_tick_a_plan_does_nothing_but_close() -> None:
    text = HEAD.replace("until 1000", "until 5") + "when position = 0: buy 10 at ask"
    made, fills = run(FLAT, text)
    assert [(fill.tick, fill.side) for fill in fills] == [(1, "buy"), (6, "sell")]
    assert (made.outcome, made.place.over) == ("DONE", "until")


@pytest.mark.requirement("trial.runs")
def test_flatten_closes_and_goes_on() -> None:
    made, fills = run(FLAT, HEAD + "when tick = 1 or tick = 6: buy 10 at ask when tick = 3: flatten")
    assert [(fill.tick, fill.side) for fill in fills] == [(2, "buy"), (4, "sell"), (7, "buy")]
    assert made.place.account.position == 10


@pytest.mark.requirement("trial.bounds")
@pytest.mark.parametrize(
    ("actions", "left"),
    [
        ("buy 60 at 1 gtc, buy 60 at 1 gtc, buy 60 at 1 gtc", [60, 40]),
        ("buy 60 at 1 gtc, cancel, buy 60 at 1 gtc", [60]),
        ("buy 60 at 1 gtc, flatten, buy 60 at 1 gtc", [60]),
        ("buy 60 at 1 gtc, sell 90 at 500 gtc, sell 90 at 500 gtc", [60, 90, 10]),
    ],
)
def test_each_order_of_a_tick_finds_the_room_that_those_before_it_left(actions: str, left: list[int]) -> None:
    made, _ = run(FLAT, HEAD + f"when tick = 2: {actions}")
    assert [order.left for order in made.place.account.working] == left


@pytest.mark.requirement("trial.bounds")
def test_what_died_makes_room_for_the_orders_of_its_tick() -> None:
    made, _ = run(FLAT, HEAD + "when tick = 2: buy 90 at 1 when tick = 3: buy 90 at 1 gtc")
    assert [order.left for order in made.place.account.working] == [90]


@pytest.mark.requirement("trial.runs")
def test_the_tape_ends_with_a_position_that_is_marked() -> None:
    made, _ = run(FLAT, HEAD + "when tick = 11: stand_down when tick = 1: buy 10 at ask")
    assert (made.outcome, made.place.over, made.place.account.position) == ("STAND_DOWN", "rule", 10)
    assert pnl(made.place.account, FLAT, 11) == -200


@pytest.mark.requirement("trial.runs")
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 50), st.lists(st.integers(1, 400), max_size=6))
def test_in_one_go_or_in_many_with_the_place_kept_it_is_the_same(
    kind: str, seed: int, parts: list[int]
) -> None:
    market = make(KINDS[kind], seed, 1_500)
    text = FADE.replace("EURUSD", market.about.instrument)
    whole, fills = run(market, text)
    place, some = Place(), list[Fill]()
    for ticks in [*parts, 10_000]:
        part = Run(market, plan(text), place)
        some += part.advance(ticks)
        place = msgspec.json.decode(msgspec.json.encode(part.place), type=Place)
    assert some == fills
    assert place == whole.place


@pytest.mark.requirement("trial.runs")
def test_a_run_that_is_over_keeps_its_place() -> None:
    made, _ = run(FLAT, HEAD + "when tick = 0: stand_down")
    before = copy.deepcopy(made.place)
    assert made.advance(100) == []
    assert made.place == before


@pytest.mark.requirement("trial.session-fair")
def test_a_program_is_made_ready_in_pieces() -> None:
    market = tape(*[(100 + n % 7, 103 + n % 5) for n in range(900)])
    text = HEAD + "".join(f"when avg(mid, {700 + n}) > 1: cancel " for n in range(40))
    pieces = ready(plan(text), market, 800)
    assert len(list(pieces)) >= 740 * 41 / SHOWN
    made, other = whole(ready(plan(text), market, 800)), compile_plan(plan(text))
    for tick in range(800):
        other.warm(View(tick, market.bids[tick], market.asks[tick]))
    now = View(800, market.bids[800], market.asks[800])
    assert made.step(now) == other.step(now) != []
