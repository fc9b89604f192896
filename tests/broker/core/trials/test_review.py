"""An artifact is done again before it is graded; what differs is named."""

from itertools import pairwise
from typing import Any

import pytest

from broker.core.plan.tree import to_value
from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials.grade import aside, grade, naive
from broker.core.trials.review import (
    Fault,
    Graded,
    Ran,
    judge,
    made_again,
    read_trial,
    review,
    run_again,
    work,
    wrong_tape,
)
from broker.core.trials.script import Advance, Artifact, Entry, Revise, Start, Submit, replay
from broker.core.trials.slices import STEPS, TICK
from tests.support.tapes import tape
from tests.support.trials import TRADES, changed, market, plan, trial

TAPE, ENTRY = market()
CONTENT = trial(TAPE, ENTRY)


def read(content: bytes) -> Artifact:
    artifact = read_trial(content)
    assert isinstance(artifact, Artifact), artifact
    return artifact


def reviewed(content: bytes) -> Graded | Fault:
    return review(content, read(content), TAPE)


@pytest.mark.requirement("trial.grade-replay")
def test_an_artifact_that_holds_is_graded_beside_two_others() -> None:
    done = replay(TAPE, read(CONTENT).calls)
    found = reviewed(CONTENT)
    assert isinstance(found, Graded)
    assert found.grades == grade(done.curve, done.fills, done.trial.place, TAPE)
    assert found.grades.fills > 10
    assert found.aside == aside(600)
    assert found.naive == naive(TAPE, plan(), 600)
    assert found.curve == list(enumerate(done.curve))
    assert (found.maker[-1], len(found.maker)) == ((599, found.naive.pnl), 600)


@pytest.mark.requirement("trial.grade-replay")
def test_the_naive_maker_has_the_bounds_of_the_first_plan() -> None:
    first, other = plan(), plan(on="EURCHF", text=TRADES.replace(" 1000", " 9000"))
    found = reviewed(trial(TAPE, ENTRY, Start(first), Advance(100), Revise(other), Advance(500)))
    assert isinstance(found, Graded)
    assert found.naive == naive(TAPE, first, 600) != naive(TAPE, other, 600)


@pytest.mark.requirement("trial.grade-replay")
@pytest.mark.parametrize(
    ("path", "to", "what", "n"),
    [
        (("fills", 3, "price"), 7, "fills", 3),
        (("fills", 0, "side"), "sell", "fills", 0),
        (("marks", 5, 1), 10**9, "marks", 5),
        (("result", "pnl"), 10**9, "result", None),
        (("result", "outcome"), "STAND_DOWN", "result", None),
        (("fills",), [], "fills", 0),
        (("marks",), [], "marks", 0),
        (("more",), 1, "form", None),
        (("calls", 1, "ticks"), 300, "fills", None),
        (("calls", 1), {"type": "advance", "ticks": 600, "more": 1}, "form", None),
    ],
)
def test_what_the_calls_do_not_come_to_is_named(
    path: tuple[str | int, ...], to: Any, what: str, n: int | None
) -> None:
    fault = reviewed(changed(CONTENT, *path, to=to))
    assert isinstance(fault, Fault)
    assert fault.what == what
    if what != "fills" or n is not None:
        assert fault.n == n


@pytest.mark.requirement("trial.grade-replay")
def test_a_fill_that_is_one_too_many_has_its_number() -> None:
    fills = [*read(CONTENT).fills]
    fault = reviewed(changed(CONTENT, "fills", to=[*map(_value, fills), _value(fills[-1])]))
    assert isinstance(fault, Fault)
    assert (fault.what, fault.n) == ("fills", len(fills))


@pytest.mark.requirement("trial.grade-replay")
@pytest.mark.parametrize(
    "calls",
    [
        [{"type": "advance", "ticks": 1}],
        [],
        [{"type": "start", "plan": to_value(plan())}, {"type": "start", "plan": to_value(plan())}],
        [{"type": "start", "plan": to_value(plan(on="EURUSD"))}],
    ],
)
def test_calls_that_can_not_be_done_are_named(calls: list[Any]) -> None:
    fault = reviewed(changed(CONTENT, "calls", to=calls))
    assert isinstance(fault, Fault)
    assert (fault.what, fault.n) == ("call", max(0, len(calls) - 1))


@pytest.mark.requirement("trial.grade-replay")
def test_a_plan_that_is_none_is_not_run() -> None:
    value = to_value(plan())
    value["bound"]["orders"] = 10**9
    fault = read_trial(changed(CONTENT, "calls", 0, "plan", to=value))
    assert isinstance(fault, Fault)
    assert (fault.what, fault.n) == ("plan", 0)


@pytest.mark.requirement("trial.grade-kind")
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"kind":"turret.arena"}', "kind"),
        (b"{}", "kind"),
        (b"[]", "form"),
        (b"", "form"),
        (b"\xff", "form"),
        (b"[" * 100_000, "form"),
        (CONTENT + b" ", "form"),
        (CONTENT.replace(b"fills/1", b"fills/2"), "form"),
        (changed(CONTENT, "entry", "ticks", to="many"), "form"),
    ],
)
def test_what_is_no_trials_artifact_says_so(content: bytes, what: str) -> None:
    fault = read_trial(content)
    assert isinstance(fault, Fault)
    assert fault.what == what


@pytest.mark.requirement("trial.grade-tape")
def test_a_tape_that_is_made_by_rule_is_made_again_and_has_the_ref() -> None:
    again = made_again(ENTRY)
    assert not isinstance(again, Fault)
    assert again is not None
    assert wrong_tape(ENTRY, again) is None
    assert made_again(Entry(ENTRY.ref, ENTRY.about, 600)) is None
    for entry in (Entry("", ENTRY.about, 600, "other", 1), Entry("", ENTRY.about, 10**9, "trend", 1)):
        assert isinstance(made_again(entry), Fault)


@pytest.mark.requirement("trial.grade-tape")
@pytest.mark.parametrize(
    "other",
    [make(KINDS["mean-revert"], 6, 600), make(KINDS["mean-revert"], 5, 599), tape((1, 2)), tape((1, 2, 3))],
)
def test_another_tape_is_none_to_grade_on(other: Any) -> None:
    fault = review(CONTENT, read(CONTENT), other)
    assert isinstance(fault, Fault)
    assert fault.what == "tape"


@pytest.mark.requirement("trial.grade-slices")
def test_it_goes_on_in_pieces_that_are_bounded_and_change_nothing() -> None:
    long, entry = market(ticks=6_000)
    costly = plan("plan p 1 on EURCHF bound position 9, loss 2, orders 9, until 9000 when tick < 0: flatten")
    calls = [Start(costly), Submit("buy", 3, tif="gtc"), Advance(2_500), Revise(plan()), Advance(502)]
    content = trial(long, entry, *calls)
    artifact = read(content)
    pieces, seen = run_again(artifact, long), [0]
    while True:
        try:
            seen.append(next(pieces))
        except StopIteration as end:
            ran = end.value
            break
    assert isinstance(ran, Ran)
    assert seen == sorted(seen)
    assert max(after - before for before, after in pairwise(seen)) <= STEPS // TICK
    assert seen[-1] == work(artifact) == 2 * artifact.result.ticks
    assert judge(content, artifact, ran) == review(content, artifact, long)
    assert ran.replayed.fills == replay(long, calls).fills


@pytest.mark.requirement("trial.grade-slices")
def test_a_thousand_plans_are_not_one_piece() -> None:
    artifact = read(trial(TAPE, ENTRY, Start(plan()), Advance(1), *[Revise(plan())] * 5, Advance(2)))
    assert len([each for each in run_again(artifact, TAPE) if each == 1]) >= 6


@pytest.mark.requirement("trial.grade-replay")
def test_an_advance_says_the_ticks_that_were_run() -> None:
    fault = reviewed(trial(TAPE, ENTRY, Start(plan()), Advance(100), Advance(501)))
    assert isinstance(fault, Fault)
    assert (fault.what, fault.n) == ("call", 2)


@pytest.mark.requirement("trial.grade-slices")
def test_what_costs_more_has_shorter_pieces() -> None:
    rules = "\n".join(f"when avg(mid, {n + 2}) > bid and position > 0: flatten" for n in range(30))
    heavy = plan(f"plan p 1 on EURCHF bound position 9, loss 2, orders 9, until 999\n{rules}")
    artifact = read(trial(TAPE, ENTRY, Start(heavy), Advance(600)))
    assert len([each for each in run_again(artifact, TAPE) if each < 600]) > 5


def _value(fill: Any) -> dict[str, Any]:
    return {name: getattr(fill, name) for name in fill.__struct_fields__}
