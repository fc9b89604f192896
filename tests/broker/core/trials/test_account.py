"""Orders, fills and bounds of a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.trials.account import (
    MAX_PNL,
    SIDES,
    Account,
    Bounds,
    Fill,
    Working,
    close,
    exposed,
    fit,
    pnl,
    send,
    trade,
)
from broker.wire.ids import MAX_SAFE
from tests.support.tapes import tape

BOUNDS = Bounds(position=100, loss=1_000_000, orders=5, until=10)


FLAT = tape((99, 101), (99, 101), (99, 101))


@pytest.mark.requirement("trial.fills")
def test_an_order_acts_at_the_other_side_of_the_tick_it_meets() -> None:
    account = Account()
    assert send(account, BOUNDS, "buy", 10, 101, 1)
    assert trade(account, FLAT, 1) == [Fill(1, "buy", 10, 101, 0)]
    assert (account.position, account.cash, account.working) == (10, -10 * 101 * 10, [])
    assert pnl(account, FLAT, 1) == -10 * 2 * 10  # the spread, as if it were closed now
    send(account, BOUNDS, "sell", 10, 99, 2)
    assert trade(account, FLAT, 2) == [Fill(2, "sell", 10, 99, 0)]
    assert (account.position, account.cash, account.fill, account.filled_at) == (0, -200, 99, 2)


@pytest.mark.requirement("trial.fills")
@pytest.mark.parametrize(("dies", "filled"), [(1, 0), (2, 10), (None, 10)])
def test_what_does_not_trade_dies_at_its_time_or_rests(dies: int | None, filled: int) -> None:
    market = tape((99, 101), (99, 101), (96, 98))
    account = Account()
    send(account, BOUNDS, "buy", 10, 98, dies)
    assert trade(account, market, 1) == []
    assert len(account.working) == (1 if filled else 0)
    trade(account, market, 2)
    assert account.position == filled


@pytest.mark.requirement("trial.fills")
def test_a_better_price_is_taken_as_it_is() -> None:
    account = Account()
    send(account, BOUNDS, "sell", 1, 90, 1)
    assert trade(account, FLAT, 1)[0].price == 99


@pytest.mark.requirement("trial.fills")
def test_a_side_has_its_size_once_a_tick_and_first_come_first_served() -> None:
    market = tape((99, 101, 15), (99, 101, 15), (99, 101, 15))
    account = Account()
    for size in (10, 10):
        send(account, BOUNDS, "buy", size, 101, None)
    assert [fill.size for fill in trade(account, market, 1)] == [10, 5]
    assert [fill.size for fill in trade(account, market, 2)] == [5]
    assert account.position == 20


@pytest.mark.requirement("trial.fills")
def test_a_fill_costs_its_fee() -> None:
    account = Account()
    market = tape((99, 101), (99, 101), fee=3)
    send(account, BOUNDS, "buy", 10, 101, 1)
    assert trade(account, market, 1)[0].fee == 30
    assert account.cash == -10_100 - 30


@pytest.mark.requirement("trial.bounds")
def test_an_order_is_cut_to_what_the_position_may_become() -> None:
    account = Account(position=60)
    assert send(account, BOUNDS, "buy", 30, 90, None)
    assert send(account, BOUNDS, "buy", 30, 90, None)
    assert [order.left for order in account.working] == [30, 10]
    assert not send(account, BOUNDS, "buy", 1, 90, None)
    assert send(account, BOUNDS, "sell", 500, 110, None)
    assert account.working[-1].left == 160  # from 60 long to 100 short
    assert (account.avoided, account.sent) == (3, 3)


@pytest.mark.requirement("trial.bounds")
def test_no_more_orders_are_sent_than_the_bound_has() -> None:
    account = Account()
    sent = [send(account, BOUNDS, "buy", 1, 90, None) for _ in range(7)]
    assert sent == [True] * 5 + [False] * 2
    assert (account.sent, account.avoided) == (5, 2)
    assert not send(account, BOUNDS, "buy", 0, 90, None)
    assert account.avoided == 2


@pytest.mark.requirement("trial.bounds")
@pytest.mark.parametrize("position", [40, -40])
def test_closing_takes_back_what_rests_and_is_never_kept_out(position: int) -> None:
    account = Account(position=position, sent=5, working=[Working("buy", 5, 1, None)])
    close(account)
    fills = trade(account, FLAT, 1)
    assert [(fill.side, fill.size) for fill in fills] == [("sell" if position > 0 else "buy", 40)]
    assert (account.position, account.sent, account.working) == (0, 5, [])
    close(account)
    assert account.working == []


@pytest.mark.requirement("trial.bounds")
def test_what_rests_is_cut_to_other_bounds_from_the_last_order_on() -> None:
    account = Account(position=20)
    for side, size in (("buy", 30), ("buy", 30), ("sell", 70), ("buy", 20)):
        assert send(account, BOUNDS, side, size, 90, None)
    fit(account, BOUNDS)
    assert [order.left for order in account.working] == [30, 30, 70, 20]
    fit(account, Bounds(position=45, loss=1, orders=1, until=1))
    assert [(order.side, order.left) for order in account.working] == [("buy", 25), ("sell", 65)]
    assert (account.avoided, account.sent, account.position) == (4, 4, 20)


@pytest.mark.requirement("trial.session-money")
@pytest.mark.parametrize("sign", [1, -1])
def test_a_profit_and_a_loss_beyond_what_is_told_are_told_as_that(sign: int) -> None:
    assert pnl(Account(cash=sign * MAX_PNL), FLAT, 0) == sign * MAX_PNL
    assert pnl(Account(cash=sign * (MAX_PNL - 7)), FLAT, 0) == sign * (MAX_PNL - 7)
    assert pnl(Account(cash=sign * 10**30), FLAT, 0) == sign * MAX_PNL


@pytest.mark.requirement("trial.session-money")
def test_an_order_whose_fee_no_json_keeps_whole_is_filled_in_parts() -> None:
    account, market = Account(), tape((99, 101), (99, 101), (99, 101), fee=MAX_SAFE // 10)
    send(account, BOUNDS, "buy", 15, 101, None)
    assert [(fill.size, fill.fee) for fill in trade(account, market, 1)] == [(10, MAX_SAFE // 10 * 10)]
    assert [fill.size for fill in trade(account, market, 2)] == [5]


@pytest.mark.requirement("trial.session-money")
def test_a_price_that_no_tape_has_is_one_that_json_keeps_whole() -> None:
    account = Account()
    send(account, BOUNDS, "buy", 15, 10**30, None)
    send(account, BOUNDS, "buy", 15, None, None)
    assert [order.price for order in account.working] == [MAX_SAFE, None]


orders = st.tuples(
    st.sampled_from(SIDES), st.integers(0, 80), st.integers(95, 105), st.none() | st.integers(0, 5)
)
ticks = st.lists(
    st.tuples(st.integers(95, 105), st.integers(0, 4), st.integers(0, 60)), min_size=2, max_size=20
)


@pytest.mark.requirement("trial.bounds")
@given(ticks, st.data())
def test_no_bound_is_ever_broken_and_money_is_what_the_fills_say(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    market = tape(*[(bid, bid + wide, size) for bid, wide, size in rows], fee=1)
    account, fills = Account(), list[Fill]()
    for tick in range(len(rows)):
        fills += trade(account, market, tick)
        for side, size, price, life in data.draw(st.lists(orders, max_size=3)):
            send(account, BOUNDS, side, size, price, None if life is None else tick + 1 + life)
        if data.draw(st.booleans()) and tick % 5 == 4:
            close(account)
        assert abs(account.position) <= BOUNDS.position
        assert all(exposed(account, side) <= BOUNDS.position for side in SIDES)
        assert account.sent <= BOUNDS.orders
    signed = [fill.size if fill.side == "buy" else -fill.size for fill in fills]
    assert account.position == sum(signed)
    paid = sum(size * fill.price * 10 for size, fill in zip(signed, fills, strict=True))
    assert account.cash == -paid - sum(fill.fee for fill in fills)
