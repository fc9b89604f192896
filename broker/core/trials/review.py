"""A trial's artifact, done again on its tape and graded (docs/reference/trial.md, Grades).

1. What is not what the calls come to is not graded: the first thing that differs is named.
2. The work goes on in pieces, so that whoever does it may do something else in between, or stop. What is made of it is
   the same wherever it was cut.
3. A plan of an artifact is read as any other plan before it is run: an artifact may come from anybody.
"""

from array import array
from collections.abc import Generator, Sequence
from typing import Any, Final, Literal

import msgspec

from broker.core.plan.read import Checked, read_value
from broker.core.plan.tree import Plan, to_value
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import MAX_TICKS, Tape
from broker.core.thinning import Point, decimate
from broker.core.trials.account import MODEL, Fill
from broker.core.trials.grade import Grades, aside, grade, maker
from broker.core.trials.run import Place, Run
from broker.core.trials.script import (
    KIND,
    Advance,
    Artifact,
    Call,
    Entry,
    Replayed,
    Revise,
    Start,
    Trial,
    artifact_of,
    marks_of,
    read_artifact,
    result_of,
)

STEPS: Final = 40_000
"""Steps of a plan between two pauses: some 3 ms of work."""
TICK_STEPS: Final = 30
"""What a tick costs beside its plan, in steps."""
MAKER_COST: Final = 40
"""What the naive maker's tick costs: it trades at most of them."""
What = Literal["kind", "form", "tape", "plan", "call", "fills", "marks", "result"]
"""What is wrong: it is no trial's, or none at all; the tape is another or none; a plan or a call is none that can be
done; or what stands there is not what the calls come to."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an artifact is not graded: the first thing that does not hold."""

    what: What
    message: str
    n: int | None = None
    """Which call, fill or mark, from 0."""


class Graded(msgspec.Struct, frozen=True):
    """An artifact that holds, and what it was worth."""

    grades: Grades
    aside: Grades
    naive: Grades
    curve: list[Point]
    """(tick, profit and loss), thinned: no extreme is missing."""
    maker: list[Point]
    """The same of the naive maker."""


class Ran(msgspec.Struct, frozen=True):
    """What was done again: the calls, and the naive maker on the same ticks."""

    replayed: Replayed
    maker: Plan
    curve: Sequence[int]
    fills: list[Fill]
    place: Place


def read_trial(content: bytes) -> Artifact | Fault:
    """The trial that an artifact's bytes say, with plans that are plans; or why they are none."""
    try:
        kind = msgspec.json.decode(content, type=dict[str, Any]).get("kind")
        if kind != KIND:
            return Fault("kind", f"this is no trial's artifact but of kind {str(kind)[:64]!r}")
        artifact = read_artifact(content)
    except (ValueError, RecursionError) as error:
        return Fault("form", str(error) or "it is nested too deep")
    if artifact.fills_model != MODEL:
        return Fault("form", f"the fills are of another model than {MODEL}")
    return next((fault for n, call in enumerate(artifact.calls) if (fault := _no_plan(n, call))), artifact)


def made_again(entry: Entry) -> Tape | Fault | None:
    """The tape of an entry that is made by rule and seed; None for one that is not. It is the one, if its ref is."""
    if entry.kind is None or entry.seed is None:
        return None
    kind = KINDS.get(entry.kind)
    if kind is None or not 0 <= entry.ticks <= MAX_TICKS:
        return Fault("tape", f"there is no tape of kind {entry.kind[:64]!r} with {entry.ticks} ticks")
    return make(kind, entry.seed, entry.ticks)


def wrong_tape(entry: Entry, tape: Tape) -> Fault | None:
    """Why a tape is not the one of an entry; None: it is. Takes half a second for the longest."""
    if tape.about != entry.about or len(tape) != entry.ticks or tape.ref() != entry.ref:
        return Fault("tape", "the tape is another one than the artifact names")
    return None


def run_again(artifact: Artifact, tape: Tape) -> Generator[int, None, Ran | Fault]:
    """Do the calls of an artifact that was read, and let the naive maker trade the same ticks. Yields how many ticks of
    `work` are done, after a few milliseconds at a time each."""
    curve, fills = array("q"), list[Fill]()
    trial = Trial(tape, curve=curve)
    plan: Plan | None = None
    pace = 1
    for n, call in enumerate(artifact.calls):
        if (why := trial.fault(call)) is not None:
            return Fault("call", why, n)
        if isinstance(call, Start | Revise):
            plan = plan or call.plan
            pace = pace_of(call.plan)
        if not isinstance(call, Advance):
            trial.do(call)
            yield trial.place.tick
            continue
        until = min(trial.place.tick + call.ticks, len(tape))
        while trial.place.tick < until and trial.place.over is None:
            fills += trial.do(Advance(min(pace, until - trial.place.tick)))
            yield trial.place.tick
    if plan is None:
        return Fault("call", "it was never started", 0)
    quotes = maker(plan, len(curve))
    other, place, traded = array("q"), Place(), list[Fill]()
    run = Run(tape, quotes, place, other)
    while place.tick < len(curve) and place.over is None:
        traded += run.advance(min(STEPS // (MAKER_COST + TICK_STEPS), len(curve) - place.tick))
        yield len(curve) + place.tick
    return Ran(Replayed(curve, fills, trial), quotes, other, traded, place)


def pace_of(plan: Plan) -> int:
    """How many ticks of a plan are run between two pauses."""
    checked = read_value(to_value(plan))
    assert isinstance(checked, Checked)
    return max(1, STEPS // (checked.cost + TICK_STEPS))


def work(artifact: Artifact) -> int:
    """How many ticks `run_again` runs, by what the artifact says of itself."""
    return max(1, 2 * artifact.result.ticks)


def judge(content: bytes, artifact: Artifact, ran: Ran) -> Graded | Fault:
    """The grades of an artifact that is what its calls came to; or the first thing that is not. Takes two seconds for
    the longest."""
    differs = _differs(content, artifact, ran.replayed)
    if differs is not None:
        return differs
    done, tape = ran.replayed, ran.replayed.trial.tape
    return Graded(
        grades=grade(done.curve, done.fills, done.trial.place, tape),
        aside=aside(len(done.curve)),
        naive=grade(ran.curve, ran.fills, ran.place, tape),
        curve=decimate(done.curve),
        maker=decimate(ran.curve),
    )


def review(content: bytes, artifact: Artifact, tape: Tape) -> Graded | Fault:
    """All of it in one go: for who has nothing else to do."""
    if (fault := wrong_tape(artifact.entry, tape)) is not None:
        return fault
    pieces = run_again(artifact, tape)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            ran: Ran | Fault = end.value
            return ran if isinstance(ran, Fault) else judge(content, artifact, ran)


def _no_plan(n: int, call: Call) -> Fault | None:
    if not isinstance(call, Start | Revise):
        return None
    checked = read_value(to_value(call.plan))
    if isinstance(checked, Checked):
        return None
    return Fault("plan", checked[0].message, n)


def _differs(content: bytes, artifact: Artifact, done: Replayed) -> Fault | None:
    fills = _first("fills", artifact.fills, done.fills)
    if fills is not None:
        return fills
    marks = _first("marks", artifact.marks, [(tick, made) for tick, made in marks_of(done.curve)])
    if marks is not None:
        return marks
    said, found = (msgspec.to_builtins(each) for each in (artifact.result, result_of(done.trial)))
    for name, value in found.items():
        if said[name] != value:
            return Fault("result", f"{name} is {said[name]!r}, and the calls come to {value!r}")
    if artifact_of(artifact.entry, artifact.calls, done) != content:
        return Fault("form", "there is more in it than a trial has")
    return None


def _first(what: Literal["fills", "marks"], said: Sequence[Any], found: Sequence[Any]) -> Fault | None:
    """The first that is not the same."""
    for n, (one, other) in enumerate(zip(said, found, strict=False)):
        if one != other:
            return Fault(what, f"it says {_shown(one)}, and the calls come to {_shown(other)}", n)
    if len(said) != len(found):
        n = min(len(said), len(found))
        return Fault(what, f"there are {len(said)}, and the calls come to {len(found)}", n)
    return None


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
