"""A trial's events: what they come to, and that cutting an advance changes nothing."""

from array import array
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from broker.core.artifact import MAX_BYTES
from broker.core.plan.read import Checked, read_plan
from broker.core.plan.tree import Plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials import session as core
from broker.core.trials.account import Fill, pnl
from broker.core.trials.run import Place
from broker.core.trials.script import Advance, Call, Entry, Revise, Start, Submit, Trial, artifact_of, replay
from broker.core.trials.session import Began, Closed, Done, Opened, Operation, Ran, TrialRow, fold
from broker.wire.refusals import Refusal
from tests.support.rehearsals import DOWN, FADE, QUIET

MARKET = make(KINDS["trend"], 9, 2_600)
ENTRY = Entry(MARKET.ref(), MARKET.about, len(MARKET), "trend", 9)
OPENED = Opened("ag_1", ENTRY)
_EVENT: Any = core.Event


def read(text: str) -> Plan:
    checked = read_plan(text)
    assert isinstance(checked, Checked), checked
    return checked.plan


def events_of(calls: list[Call], cuts: list[int]) -> tuple[list[Any], TrialRow]:
    """The events of calls, each advance cut where the cuts say; and the document after them."""
    curve, row = array("q"), TrialRow("tr_1", "ag_1", ENTRY, 0, 0)
    trial, events = Trial(MARKET, curve=curve), list[Any]([OPENED])

    def marks() -> list[core.Mark]:
        found = core.marked(curve, trial.place.tick)
        del curve[:]
        return found

    for call in calls:
        if trial.fault(call) is not None:
            continue
        if not isinstance(call, Advance):
            events.append(Done(call, trial.do(call), marks()))
            continue
        left, first = call.ticks, True
        while left and trial.place.over is None:
            part = min(left, cuts.pop() if cuts else left)
            before = trial.place.tick
            fills = trial.advance(part)
            ran, left = trial.place.tick - before, left - part
            last = not left or trial.place.over is not None
            if first and last:
                events.append(Done(Advance(ran), fills, marks()))
            elif first:
                events.append(Began("op_1", call.ticks, ran, fills, marks()))
            else:
                events.append(Ran(ran, fills, marks(), last))
            first = False
    place = trial.place
    made = pnl(place.account, MARKET, place.tick - 1) if place.tick else 0
    return events, replace(row, place=place, pnl=made)


calls = st.lists(
    st.one_of(
        st.builds(Advance, st.integers(1, 900)),
        st.builds(Submit, st.sampled_from(["buy", "sell"]), st.integers(1, 9_000)),
        st.sampled_from([Revise(read(FADE)), Revise(read(QUIET)), Revise(read(DOWN))]),
    ),
    max_size=6,
)


@pytest.mark.requirement("trial.session-slices", "trial.session-log")
@given(calls, st.lists(st.integers(1, 300), max_size=8))
def test_where_an_advance_is_cut_changes_no_byte_of_the_artifact(rest: list[Call], cuts: list[int]) -> None:
    events, row = events_of([Start(read(FADE)), *rest], cuts)
    told = [msgspec.json.decode(msgspec.json.encode(each), type=_EVENT) for each in events]
    kept = fold(told)
    content = core.artifact(kept, core.result(row))
    assert content == artifact_of(ENTRY, kept.calls, replay(MARKET, kept.calls))
    whole, _ = events_of([Start(read(FADE)), *rest], [])
    assert content == core.artifact(fold(whole), core.result(row))
    assert kept.version == len(whole) - 1, "a call is one version, however it was cut"


@pytest.mark.requirement("trial.session-log")
@pytest.mark.parametrize(
    "events",
    [
        [],
        [Done(Advance(1))],
        [OPENED, OPENED],
        [OPENED, Ran(1)],
        [OPENED, Began("op_1", 9, 1), Done(Advance(1))],
        [OPENED, Began("op_1", 9, 1), Began("op_2", 9, 1)],
        [OPENED, Began("op_1", 9, 1), Ran(8, last=True), Ran(1)],
        [OPENED, Closed("finalized"), Done(Advance(1))],
        [OPENED, Closed("finalized"), Closed("expired")],
    ],
)
def test_what_is_no_trials_log_is_named(events: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"trial"):
        fold(events)


def test_an_operation_is_one_call_and_one_version_at_its_end() -> None:
    events: list[Any] = [OPENED, Done(Start(read(QUIET))), Began("op_1", 9, 4), Ran(3)]
    kept = fold(events)
    assert (kept.version, kept.calls[-1]) == (1, Advance(7))
    assert kept.operation == Operation("op_1", 9, 7, 0, 0)
    kept = fold([*events, Ran(2, [Fill(8, "buy", 1, 1, 0)], last=True)])
    assert (kept.version, kept.calls[-1]) == (2, Advance(9))
    assert kept.operation == Operation("op_1", 9, 9, 0, 1, done=True)
    assert fold([*events, Closed("expired")]).calls[-1] == Advance(7), "its time ends it as it stands"


def row(**members: Any) -> TrialRow:
    return replace(TrialRow("tr_1", "ag_1", ENTRY, 0, 0, version=3, plan=read(QUIET)), **members)


def code(refusal: Refusal | None) -> str:
    return "accepted" if refusal is None else refusal.code


@pytest.mark.requirement("trial.session-versions", "trial.session-exclusive")
def test_over_comes_before_an_operation_and_that_before_a_version() -> None:
    under_way = row(operation=Operation("op_1", 9, 1, 0, 0))
    assert code(core.judge(row(over="finalized"), 0)) == "SESSION_OVER"
    refused = core.judge(under_way, 3)
    assert refused is not None
    assert (refused.code, refused.detail) == ("CONFLICT", {"version": 3, "operation_id": "op_1"})
    assert core.judge(under_way, 3, ending=True) is None
    refused = core.judge(under_way, 2, ending=True)
    assert refused is not None
    assert (refused.code, refused.detail) == ("CONFLICT", {"version": 3, "operation_id": "op_1"})
    refused = core.judge(row(), 2)
    assert refused is not None
    assert (refused.code, refused.detail) == ("CONFLICT", {"version": 3})
    assert core.judge(row(operation=Operation("op_1", 9, 9, 0, 0, done=True)), 3) is None


@pytest.mark.requirement("trial.session-bounded")
def test_a_trial_has_so_many_fills_calls_and_bytes_and_no_more() -> None:
    trial = Trial(MARKET, read(QUIET))
    go = Advance(1)
    assert core.judge_call(row(), trial, go, 10) is None
    for full, reason in (
        ({"fills": core.MAX_FILLS}, "fills"),
        ({"version": core.MAX_CALLS}, "calls"),
        ({"size": core.MAX_CALL_BYTES - 9}, "size"),
    ):
        refused = core.judge_call(row(**full), trial, go, 10)
        assert refused is not None
        assert (refused.code, refused.detail["reason"]) == ("LIMIT_EXCEEDED", reason)
    refused = core.judge_call(row(), trial, Start(read(QUIET)), 10)
    assert refused is not None
    assert refused.code == "ILLEGAL_ACTION"
    assert refused.detail["legal_actions"] == ["advance", "revise", "submit", "finalize"]


@pytest.mark.requirement("trial.session-bounded")
def test_the_largest_artifact_is_one_that_is_given_out() -> None:
    most = core.MAX_FILLS + 10_000
    fill = len(msgspec.json.encode(Fill(999_999, "sell", 10**12, 10**12, 2**53 - 1))) + 1
    marks = 1_000 * len(b"[999999,-9007199254740991],")
    assert most * fill + core.MAX_CALL_BYTES + marks + 4_096 < MAX_BYTES


def test_what_may_be_done_follows_the_run() -> None:
    assert core.may(row(plan=None)) == ["start", "finalize"]
    assert core.may(row(place=Place(closing="rule"))) == ["advance", "finalize"]
    assert core.may(row(place=Place(over="tape"))) == ["finalize"]
    assert core.may(row(fills=core.MAX_FILLS)) == ["finalize"]
    assert core.may(row(operation=Operation("op_1", 9, 1, 0, 0))) == ["finalize"]
    assert core.may(row(over="expired")) == []


def test_a_trial_is_found_by_what_it_is() -> None:
    assert core.index_of(row(due=7)) == (("agent", "ag_1"), ("open", "ag_1"), ("due", 7))
    under_way = Operation("op_1", 9, 1, 0, 0)
    assert core.index_of(row(operation=under_way))[2:] == (("operation", "op_1"), ("running", 1))
    assert core.index_of(row(operation=replace(under_way, done=True), over="expired")) == (
        ("agent", "ag_1"),
        ("operation", "op_1"),
    )


def test_of_a_rejected_plan_its_name_is_kept() -> None:
    assert core.read_call(Start(read(QUIET))) == {"type": "start", "plan": "quiet 1"}
    assert core.read_call(Advance(5)) == {"type": "advance", "ticks": 5}
