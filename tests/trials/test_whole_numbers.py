"""Every integer that a trial shows is one that any JSON keeps whole, however large prices, sizes and bounds are."""

import json
from array import array
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from broker.core.plan.read import Checked, read_plan
from broker.core.plan.tree import Plan
from broker.core.tapes.catalog import fault
from broker.core.tapes.tape import MAX_PRICE, About, Tape
from broker.core.trials import session as core
from broker.core.trials import views
from broker.core.trials.account import pnl
from broker.core.trials.report import report_of
from broker.core.trials.review import Graded, read_trial, review
from broker.core.trials.script import Advance, Call, Entry, Revise, Start, Submit, Trial
from broker.core.trials.session import Opened, TrialRow
from broker.wire.ids import MAX_SAFE

HUGE: Final = 10**15
RULES: Final = (
    "buy abs(position) + {size} at ask * {huge} gtc",
    "sell abs(position) + {size} at (bid + 1) / 2 for 3",
    "sell abs(position) * 3 + {size} at mid * {huge} * {huge} gtc",
    "buy abs(position) + {size} at mid",
    "flatten",
)


@cache
def plan(position: int, loss: int, rules: tuple[int, ...]) -> Plan:
    """A plan of so many units, at most, that does these things by turns."""
    text = (
        f"plan p 1 on EURUSD bound position {position}, loss {loss}, orders 10000, until 1000000 "
        + "".join(
            f"when tick % {len(rules)} = {n}: {RULES[rule].format(size=position, huge=HUGE)} "
            for n, rule in enumerate(rules)
        )
    )
    checked = read_plan(text)
    assert isinstance(checked, Checked), checked
    return checked.plan


great = st.sampled_from([1, 7, 10**6, 10**9, 10**12 - 1, 10**12])
plans = st.builds(
    plan,
    great,
    st.sampled_from([1, 10**9]),
    st.lists(st.integers(0, len(RULES) - 1), min_size=1, max_size=4).map(tuple),
)


@st.composite
def tapes(draw: st.DrawFn) -> Tape:
    """A tape that an import would take, with the least and the greatest of everything."""
    sized, ticks = draw(st.booleans()), draw(st.integers(2, 10))
    bids = draw(st.lists(great, min_size=ticks, max_size=ticks))
    asks = [min(MAX_PRICE, bid + draw(st.sampled_from([0, 1, 10**12]))) for bid in bids]
    sizes = draw(st.lists(great | st.just(0), min_size=ticks, max_size=ticks)) if sized else []
    about = About("EURUSD", 0, 1000, draw(great), draw(great | st.just(0)), sized)
    made = Tape(about, array("q", bids), array("q", asks), array("q", sizes))
    assert fault(made) is None
    return made


orders = st.builds(
    Submit,
    st.sampled_from(["buy", "sell"]),
    great,
    st.none() | st.sampled_from([-MAX_PRICE, 1, 10**6, MAX_PRICE]),
    st.sampled_from(["ioc", "gtc", 1_000_000]),
)
calls = st.lists(
    st.one_of(st.builds(Advance, st.integers(1, 4)), orders, st.builds(Revise, plans)), max_size=6
)


def without_spread(tick: int, fee: int, prices: Iterable[int]) -> Tape:
    """A tape whose bid is its ask."""
    bids = array("q", prices)
    return Tape(About("EURUSD", 0, 1000, tick, fee, False), bids, bids, array("q"))


SOARING = without_spread(1_000, 0, range(150_000, 240_000, 10_000))
"""64 bits don't keep what 10^12 units of it cost."""
FALLING = without_spread(10**12, 10**12 - 1, range(10**6, 10**6 - 9, -1))
"""Who buys a unit before it begins loses a millionth less at the first tick than at each of the others."""
CHEAP = without_spread(1, 0, [1] * 9_100)
"""10^12 units of it can be bought and sold at each tick."""


@pytest.mark.requirement("trial.session-money", "trial.grades")
@given(tapes(), plans, calls)
@example(SOARING, plan(10**12, 10**9, (0,)), [Advance(2)])
@example(FALLING, plan(1, 10**9, (2,)), [Submit("buy", 1)])
@example(CHEAP, plan(10**12, 10**9, (0, 1)), [])
def test_no_answer_artifact_grade_or_report_has_an_integer_that_some_json_does_not_keep(
    market: Tape, first: Plan, rest: list[Call]
) -> None:
    trial, row = Trial(market), TrialRow("tr_1", "ag_1", Entry("0" * 64, market.about, len(market)), 0, 0)
    kept = core.Kept(Opened("ag_1", row.entry))
    curve = trial._curve = array("q")
    for call in [Start(first), *rest, Advance(len(market))]:
        if trial.fault(call) is not None:
            continue
        began, sent = trial.place.tick, trial.place.account.sent
        fills = trial.do(call)
        ran = trial.place.tick - began
        done = Advance(ran) if isinstance(call, Advance) else call
        row = replace(
            row,
            plan=call.plan if isinstance(call, Start | Revise) else row.plan,
            place=core.copied(trial.place),
            pnl=pnl(trial.place.account, market, trial.place.tick - 1) if trial.place.tick else 0,
        )
        assert msgspec.json.decode(msgspec.json.encode(row), type=TrialRow) == row, "it can be kept"
        whole(views.step(row, market, trial.place.account.sent > sent))
        whole(views.advanced(row, market, ran, fills, 0))
        whole(views.show(row, market, fills, 0))
        kept.calls.append(done)
        kept.fills += fills
    kept.marks += core.marked(curve, trial.place.tick)
    entry = replace(row.entry, ref=market.ref())
    kept.opened = replace(kept.opened, entry=entry)
    content = core.artifact(kept, core.result(row))
    whole(msgspec.json.decode(content))
    artifact = read_trial(content)
    assert not hasattr(artifact, "what"), artifact
    graded = review(content, artifact, market)
    assert isinstance(graded, Graded), graded
    whole(graded)
    whole(report_of("0" * 64, artifact, graded))


def whole(shown: Any) -> None:
    """All integers of an answer, as JSON has them, are within ±(2^53−1)."""
    worst = max(map(abs, integers(json.loads(msgspec.json.encode(shown)))), default=0)
    assert worst <= MAX_SAFE


def integers(value: Any) -> Iterator[int]:
    """Each integer in a JSON value."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from integers(each)
