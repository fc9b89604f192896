"""What is shown of a finished trial: to people, as a page, a picture or lines (docs/reference/trial.md, Reports).

It holds what the artifact says and what it was worth, and none of the many thousand values that nobody could see. What
an agent wrote in it (a plan, an instrument) is text to show, and no instruction.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from broker.core.plan.printer import to_text
from broker.core.tapes.tape import About
from broker.core.thinning import Point, decimate
from broker.core.trials.account import Fill
from broker.core.trials.grade import Grades
from broker.core.trials.review import Graded
from broker.core.trials.run import Outcome, Why
from broker.core.trials.script import Advance, Artifact, Call, Revise, Start, Submit

FILLS: Final = 200
"""Fills that are listed."""
CALLS: Final = 200
PLANS: Final = 20
SLOTS: Final = 80
"""Places along the ticks: at each of them one purchase and one sale are marked at most."""


class Report(msgspec.Struct, frozen=True):
    """A finished trial, graded, as far as it is shown. Money in millionths of the quote currency."""

    ref: str
    fills_model: str
    tape: str
    """Its ref."""
    about: About
    ticks: int
    """Of the tape; those of the run are in the grades."""
    kind: str | None
    seed: int | None
    outcome: Outcome
    over: Why | None
    bound: int
    """The position's, of the first plan."""
    plans: list[tuple[int, str]]
    """Each plan: the number of its call, and its text."""
    calls: list[str]
    fills: list[Fill]
    """The first FILLS."""
    marks: list[Fill]
    """Those that a picture marks."""
    position: list[Point]
    """(tick, units held from then on), thinned."""
    grades: Grades
    aside: Grades
    naive: Grades
    curve: list[Point]
    maker: list[Point]
    """(tick, profit and loss) of the trial and of the naive maker, thinned."""


def report_of(ref: str, artifact: Artifact, graded: Graded) -> Report:
    """What is shown of an artifact that was graded."""
    entry, calls = artifact.entry, artifact.calls
    plans = [(n, call.plan) for n, call in enumerate(calls) if isinstance(call, Start | Revise)]
    return Report(
        ref=ref,
        fills_model=artifact.fills_model,
        tape=entry.ref,
        about=entry.about,
        ticks=entry.ticks,
        kind=entry.kind,
        seed=entry.seed,
        outcome=artifact.result.outcome,
        over=artifact.result.over,
        bound=plans[0][1].bound.position,
        plans=[(n, to_text(plan)) for n, plan in plans[:PLANS]],
        calls=[told(call) for call in calls[:CALLS]],
        fills=artifact.fills[:FILLS],
        marks=marked(artifact.fills, graded.grades.ticks),
        position=held(artifact.fills),
        grades=graded.grades,
        aside=graded.aside,
        naive=graded.naive,
        curve=graded.curve,
        maker=graded.maker,
    )


def told(call: Call) -> str:
    """A call in words."""
    match call:
        case Start():
            return "start"
        case Revise():
            return "revise"
        case Advance(ticks):
            return f"advance {ticks}"
        case Submit(side, size, at, tif):
            price = "" if at is None else f" at {at}"
            return f"submit: {side} {size}{price}, {tif if isinstance(tif, str) else f'{tif} ticks'}"


def marked(fills: Sequence[Fill], ticks: int) -> list[Fill]:
    """Of the fills those that a picture has room for: of each side the first one in each slot."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for fill in fills:
        place = (fill.tick * SLOTS // max(1, ticks), fill.side)
        if place not in seen:
            seen.add(place)
            kept.append(fill)
    return kept


def held(fills: Sequence[Fill]) -> list[Point]:
    """What is held from which tick on: it begins with nothing, and keeps its extremes where there are many."""
    ticks, held = [0], [0]
    for fill in fills:
        size = fill.size if fill.side == "buy" else -fill.size
        if ticks[-1] == fill.tick:
            held[-1] += size
        else:
            ticks.append(fill.tick)
            held.append(held[-1] + size)
    return [(ticks[place], size) for place, size in decimate(held)]
