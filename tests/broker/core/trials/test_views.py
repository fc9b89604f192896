"""What is seen of a trial: never a tick that was not run."""

import msgspec
import pytest
from msgspec.structs import replace

from broker.core.trials import views
from broker.core.trials.account import Account, Working
from broker.core.trials.run import Place
from broker.core.trials.script import Advance, Start, Trial
from broker.core.trials.session import Operation, TrialRow
from tests.broker.core.trials.test_session import ENTRY, MARKET, read
from tests.support.rehearsals import QUIET

NEW = TrialRow("tr_1", "ag_1", ENTRY, 0, 0)


def after(ticks: int) -> TrialRow:
    trial, plan = Trial(MARKET), read(QUIET)
    trial.do(Start(plan))
    trial.do(Advance(ticks))
    return replace(NEW, place=trial.place, plan=plan, version=2)


@pytest.mark.requirement("trial.session-seen")
def test_before_the_first_tick_no_quote_is_seen() -> None:
    seen = views.observe(NEW, MARKET)
    assert (seen.tick, seen.ticks_left, seen.recent, seen.bid, seen.mid) == (-1, len(MARKET), [], None, None)
    assert seen.orders_left is None


@pytest.mark.requirement("trial.session-seen")
def test_the_last_ticks_are_seen_and_none_after_them() -> None:
    seen = views.observe(after(100), MARKET)
    assert [each.tick for each in seen.recent] == list(range(100 - views.RECENT, 100))
    assert (seen.bid, seen.ask, seen.tick) == (MARKET.bids[99], MARKET.asks[99], 99)
    assert seen.mid == (MARKET.bids[99] + MARKET.asks[99]) / 2
    assert seen.orders_left == 5


@pytest.mark.requirement("trial.session-resumed")
def test_what_is_seen_is_what_the_run_has_come_to() -> None:
    working = [Working("buy", 40, 7, 99), Working("sell", 2, None, None)]
    account = Account(position=-7, cash=123, sent=3, working=working, avoided=2)
    row = replace(after(60), place=Place(tick=60, account=account), pnl=-5)
    seen = views.observe(row, MARKET)
    assert (seen.tick, seen.ticks_left) == (59, len(MARKET) - 60)
    assert (seen.position, seen.pnl, seen.orders_left, seen.avoided) == (-7, -5, 5 - 3, 2)
    assert seen.resting == [views.Resting("buy", 40, 7, 99), views.Resting("sell", 2, None, None)]
    account.sent = 9
    assert views.observe(row, MARKET).orders_left == 0, "a plan before it sent more than this one may"
    assert views.observe(replace(row, plan=None), MARKET).orders_left is None


def test_of_many_orders_the_first_are_shown_and_all_counted() -> None:
    row = after(3)
    row.place.account.working = [Working("buy", 1, n, None) for n in range(80)]
    seen = views.observe(row, MARKET)
    assert (seen.resting_count, len(seen.resting), seen.resting[7].price) == (80, views.SHOWN, 7)


def test_an_operation_is_shown_while_it_is_under_way() -> None:
    row = replace(after(3), operation=Operation("op_1", 9, 3, 0, 0))
    shown = views.show(row, MARKET, [], 0)
    assert shown.operation == views.Underway("op_1", views.Progress(3, 9))
    assert shown.legal_calls == ["finalize"]
    done = replace(row, operation=Operation("op_1", 9, 9, 0, 0, done=True))
    assert views.show(done, MARKET, [], 0).operation is None
    assert views.advanced(done, MARKET, 9, [], 0).operation is None


def test_whoever_resumes_has_the_plan_in_both_forms() -> None:
    shown = views.show(after(3), MARKET, [], 0)
    assert shown.plan is not None
    assert shown.text is not None
    assert read(shown.text) == read(QUIET)
    assert msgspec.json.decode(msgspec.json.encode(shown))["status"] == "open"
