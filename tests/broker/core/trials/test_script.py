"""What was done in a trial, and its artifact."""

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from broker.core.plan.read import Checked, read_plan
from broker.core.plan.tree import Plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials.account import Fill
from broker.core.trials.run import Place
from broker.core.trials.script import (
    MARKS,
    Advance,
    Call,
    Entry,
    Revise,
    Start,
    Submit,
    Trial,
    artifact_of,
    marks_of,
    read_artifact,
    replay,
)
from broker.wire.canonical import encode
from tests.support.tapes import tape


def plan(rules: str, on: str = "EURUSD", until: int = 3000) -> Plan:
    text = f"plan p 1 on {on} bound position 1000, loss 2500, orders 40, until {until} {rules}"
    checked = read_plan(text)
    assert isinstance(checked, Checked), checked
    return checked.plan


QUIET = plan("when tick < 0: flatten")
TRADES = plan(
    "when position = 0 and mid < avg(mid, 20): buy 100 at ask when position > 0 and mid > avg(mid, 20): flatten"
)
MARKET = make(KINDS["trend"], 9, 600)


def narrow(position: int) -> Plan:
    """QUIET within another bound."""
    return replace(QUIET, bound=replace(QUIET.bound, position=position))


ENTRY = Entry(MARKET.ref(), MARKET.about, len(MARKET), "trend", 9)
REF = "263ec83acf9dab1ec68fe641a2a1c56db272a8147a30b6122ab554309030466d"
"""Of the artifact of CALLS, on every Python."""
CALLS: list[Call] = [
    Start(TRADES),
    Advance(100),
    Submit("buy", 50, tif="gtc"),
    Advance(150),
    Revise(QUIET),
    Submit("sell", 20, 1, 5),
    Advance(500),
]


@pytest.mark.requirement("trial.artifact")
def test_an_artifact_is_canonical_and_the_same_again() -> None:
    made = replay(MARKET, CALLS)
    content = artifact_of(ENTRY, CALLS, made)
    assert content == encode(msgspec.json.decode(content))
    assert artifact_of(ENTRY, CALLS, replay(MARKET, CALLS)) == content
    assert hashlib.sha256(content).hexdigest() == REF
    read = read_artifact(content)
    assert read.calls == CALLS
    assert read.fills == made.fills
    assert len(made.fills) > 5
    assert read.marks[-1] == (599, made.curve[-1])
    assert (read.result.outcome, read.result.over, read.result.ticks) == ("DONE", "tape", 600)
    assert replay(MARKET, read.calls).fills == read.fills


@pytest.mark.requirement("trial.artifact")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"format":1', b'"format":2'),
        (b'{"calls"', b'{ "calls"'),
        (b"turret.trial", b"turret.other"),
        (b'"type":"start"', b'"type":"begin"'),
    ],
)
def test_what_is_none_is_no_artifact(old: bytes, new: bytes) -> None:
    content = artifact_of(ENTRY, CALLS, replay(MARKET, CALLS))
    assert old in content
    with pytest.raises(ValueError, match=r"."):
        read_artifact(content.replace(old, new, 1))


@pytest.mark.requirement("trial.calls")
def test_what_is_sent_by_hand_acts_at_the_next_tick_and_within_the_bounds() -> None:
    market = tape(*[(99, 101)] * 6)
    made = replay(market, [Start(QUIET), Submit("buy", 10), Advance(2), Submit("sell", 5000, 99), Advance(9)])
    assert made.fills == [Fill(0, "buy", 10, 101, 0), Fill(2, "sell", 1010, 99, 0)]
    assert made.trial.place.account.avoided == 1


@pytest.mark.requirement("trial.calls")
@pytest.mark.parametrize(("tif", "at"), [("ioc", None), (2, 1), ("gtc", 1)])
def test_what_is_sent_by_hand_lives_as_long_as_a_rules_order(tif: Any, at: int | None) -> None:
    market = tape((99, 101), (96, 98), (96, 98))
    fills = replay(market, [Start(QUIET), Submit("buy", 10, 98, tif), Advance(9)]).fills
    assert [fill.tick for fill in fills] == ([] if at is None else [at])


@pytest.mark.requirement("trial.calls")
@pytest.mark.parametrize(
    ("before", "call", "why"),
    [
        ([], Advance(1), "start it first"),
        ([], Submit("buy", 1), "start it first"),
        ([], Revise(QUIET), "start it first"),
        ([], Start(plan("when tick < 0: flatten", on="GBPUSD")), "the tape is of EURUSD"),
        ([Start(QUIET)], Start(QUIET), "started before"),
        ([Start(QUIET)], Revise(plan("when tick < 0: flatten", on="GBPUSD")), "the tape is of EURUSD"),
        ([Start(QUIET), Advance(700)], Advance(1), "over"),
        ([Start(QUIET), Advance(700)], Submit("buy", 1), "over"),
        ([Start(plan("when tick = 3: stand_down")), Advance(9)], Revise(QUIET), "over"),
    ],
)
def test_a_call_that_does_not_fit_says_why(before: list[Call], call: Call, why: str) -> None:
    trial = replay(MARKET, before).trial
    fault = trial.fault(call)
    assert fault is not None
    assert why in fault
    with pytest.raises(ValueError, match=why):
        trial.do(call)


@pytest.mark.requirement("trial.calls", "trial.bounds")
def test_another_plan_holds_what_is_held_and_keeps_of_what_rests_what_finds_room() -> None:
    market = tape(*[(99, 101)] * 6)
    trial = replay(
        market, [Start(QUIET), Submit("buy", 300), Submit("buy", 300, 50, "gtc"), Advance(1)]
    ).trial
    fault = trial.fault(Revise(narrow(299)))
    assert fault is not None
    assert "300 units are held" in fault
    trial.do(Revise(narrow(301)))
    assert [(order.left, order.price) for order in trial.place.account.working] == [(1, 50)]
    assert (trial.place.account.position, trial.place.account.avoided) == (300, 1)
    trial.do(Submit("buy", 5))
    assert trial.place.account.avoided == 2


@pytest.mark.requirement("trial.calls")
def test_who_closes_may_only_go_on() -> None:
    market = tape(*[(99, 101, 4)] * 12)
    trial = replay(
        market, [Start(plan("when tick < 3: buy 4 at ask when tick = 5: stand_down")), Advance(7)]
    ).trial
    assert trial.place.closing == "rule"
    assert trial.fault(Submit("buy", 1)) is not None
    assert trial.fault(Advance(1)) is None


@pytest.mark.requirement("trial.calls")
@given(st.lists(st.sampled_from(CALLS[1:]), max_size=12), st.data())
def test_a_trial_that_was_put_away_goes_on_as_if_it_had_not(calls: list[Call], data: st.DataObject) -> None:
    whole, parted = Trial(MARKET), Trial(MARKET)
    now = TRADES
    for call in [Start(TRADES), *calls]:
        if whole.fault(call) is not None:
            assert parted.fault(call) == whole.fault(call)
            continue
        now = call.plan if isinstance(call, Start | Revise) else now
        assert whole.do(call) == parted.do(call)
        if data.draw(st.booleans()):
            place = msgspec.json.decode(msgspec.json.encode(parted.place), type=Place)
            parted = Trial(MARKET, now, place)
    assert parted.place == whole.place


@pytest.mark.requirement("trial.artifact")
@pytest.mark.parametrize(
    ("ticks", "step"), [(1_000, 1), (1_001, 2), (1_999, 2), (3_600, 4), (1_000_000, 1_024)]
)
def test_one_tick_in_so_many_is_marked_and_the_last_one(ticks: int, step: int) -> None:
    """As it was always published: another step is another ref."""
    marks = marks_of(range(ticks))
    assert marks == [[tick, tick] for tick in [*range(0, ticks - 1, step), ticks - 1]]


@pytest.mark.parametrize("ticks", [1, 2, MARKS - 1, MARKS, MARKS + 1, 5_000])
def test_marks_are_bounded_and_have_both_ends(ticks: int) -> None:
    marks = marks_of(range(ticks))
    assert len(marks) <= MARKS
    assert (marks[0], marks[-1]) == ([0, 0], [ticks - 1, ticks - 1])
    assert marks_of([]) == []
    longer = {tick for tick, _ in marks_of(range(ticks + 7_000))[:-1] if tick < ticks}
    assert longer <= {tick for tick, _ in marks}, "marks can be kept while it is under way"


def test_an_advance_stops_where_as_many_fills_are_there_as_were_asked_for() -> None:
    whole, parts = Trial(MARKET), Trial(MARKET)
    for trial in (whole, parts):
        trial.do(Start(TRADES))
    first = parts.advance(600, 3)
    assert len(first) == 3
    assert parts.place.tick < 600
    assert first + parts.advance(600) == whole.do(Advance(600))
