"""What is shown of a trial: little of much, and no extreme lost."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.thinning import PIECES
from broker.core.trials.account import Fill
from broker.core.trials.report import CALLS, FILLS, SLOTS, held, marked, report_of, told
from broker.core.trials.review import Graded, read_trial, review
from broker.core.trials.script import Advance, Artifact, Revise, Start, Submit
from tests.support.trials import market, plan, trial

TAPE, ENTRY = market()
SIDES = st.sampled_from(["buy", "sell"])


def filled(tick: int, side: str, size: int) -> Fill:
    return Fill(tick, side, size, 100, 0)  # type: ignore[arg-type]  # one of the two


@pytest.mark.requirement("trial.report")
def test_a_report_has_what_the_artifact_says_and_what_it_was_worth() -> None:
    calls = [
        Start(plan()),
        Advance(50),
        Submit("buy", 5, 9, 3),
        Revise(plan()),
        Submit("sell", 1),
        Advance(550),
    ]
    content = trial(TAPE, ENTRY, *calls)
    artifact = read_trial(content)
    assert isinstance(artifact, Artifact)
    graded = review(content, artifact, TAPE)
    assert isinstance(graded, Graded)
    shown = report_of("a" * 64, artifact, graded)
    assert shown.calls == [
        "start", "advance 50", "submit: buy 5 at 9, 3 ticks", "revise", "submit: sell 1, ioc", "advance 550",
    ]  # fmt: skip
    assert [n for n, _ in shown.plans] == [0, 3]
    assert (shown.tape, shown.about, shown.ticks) == (ENTRY.ref, ENTRY.about, 600)
    assert (shown.bound, shown.outcome, shown.over) == (1000, "DONE", "tape")
    assert (shown.fills, shown.curve, shown.naive) == (artifact.fills, graded.curve, graded.naive)
    assert held(artifact.fills)[-1][1] == artifact.result.position


@pytest.mark.requirement("trial.report")
def test_of_many_calls_and_fills_the_first_are_listed() -> None:
    rules = "when tick % 2 = 0: buy 10 at ask when tick % 2 = 1: sell 10 at bid"
    busy = plan(f"plan p 1 on EURCHF bound position 10, loss 25000, orders 9000, until 3000 {rules}")
    content = trial(TAPE, ENTRY, Start(busy), *[Advance(1)] * 600)
    artifact = read_trial(content)
    assert isinstance(artifact, Artifact)
    graded = review(content, artifact, TAPE)
    assert isinstance(graded, Graded)
    shown = report_of("a" * 64, artifact, graded)
    assert (len(shown.calls), len(shown.fills)) == (CALLS, FILLS)
    assert len(artifact.fills) > 2 * SLOTS >= len(shown.marks) > SLOTS
    assert shown.grades.fills == len(artifact.fills)


@pytest.mark.requirement("trial.report")
@given(st.lists(st.tuples(st.integers(0, 50), SIDES, st.integers(1, 9)), max_size=1_500))
def test_what_is_held_keeps_its_extremes_and_its_end(given: list[tuple[int, str, int]]) -> None:
    fills = [filled(tick * 20, side, size) for tick, side, size in sorted(given, key=lambda each: each[0])]
    points = held(fills)
    sizes = list(accumulate((f.size if f.side == "buy" else -f.size for f in fills), initial=0))
    assert points[-1][1] == sizes[-1]
    assert len(points) <= 4 * PIECES
    assert [tick for tick, _ in points] == sorted({tick for tick, _ in points})
    after = {
        tick: sum(f.size if f.side == "buy" else -f.size for f in fills if f.tick <= tick)
        for tick, _ in points
    }
    assert dict(points) == after


@pytest.mark.requirement("trial.report")
def test_of_each_slot_the_first_purchase_and_the_first_sale_are_marked() -> None:
    fills = [filled(0, "buy", 1), filled(0, "buy", 2), filled(1, "sell", 3), filled(999, "buy", 4)]
    assert [each.size for each in marked(fills, 1_000)] == [1, 3, 4]
    assert marked(fills, 4) == [fills[0], fills[2], fills[3]]
    assert marked([], 0) == []


def test_a_submit_at_any_price_says_no_price() -> None:
    assert told(Submit("buy", 3, tif="gtc")) == "submit: buy 3, gtc"
