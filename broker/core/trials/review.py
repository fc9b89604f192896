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

from broker.core.pieces import Pieces, whole
from broker.core.plan.limits import cost
from broker.core.plan.read import Checked, reading
from broker.core.plan.tree import to_value
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import MAX_TICKS, Tape
from broker.core.thinning import Point, decimate
from broker.core.trials.account import MODEL, UNBOUNDED, Fill
from broker.core.trials.grade import Grades, aside, grade, maker
from broker.core.trials.script import (
    KIND,
    Advance,
    Artifact,
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
from broker.core.trials.slices import advance_slice

MAKER_COST: Final = 40
"""What a tick of the naive maker costs, in steps of a plan's cost: it trades at most of them."""
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
    maker: Replayed


def read_trial(content: bytes) -> Artifact | Fault:
    """The trial that an artifact's bytes say, with plans that are plans; or why they are none."""
    artifact = read_form(content)
    return artifact if isinstance(artifact, Fault) else whole(judge_plans(artifact)) or artifact


def read_form(content: bytes) -> Artifact | Fault:
    """The same without a look at the plans."""
    try:
        kind = msgspec.json.decode(content, type=dict[str, Any]).get("kind")
        if kind != KIND:
            return Fault("kind", f"this is no trial's artifact but of kind {str(kind)[:64]!r}")
        artifact = read_artifact(content)
    except (ValueError, RecursionError) as error:
        return Fault("form", str(error) or "it is nested too deep")
    if artifact.fills_model != MODEL:
        return Fault("form", f"the fills are of another model than {MODEL}")
    return artifact


def judge_plans(artifact: Artifact) -> Pieces[Fault | None]:
    """The first plan that is none, in pieces; None: all of them are plans."""
    for n, call in enumerate(artifact.calls):
        if isinstance(call, Start | Revise):
            checked = yield from reading(to_value(call.plan))
            if not isinstance(checked, Checked):
                return Fault("plan", checked[0].message, n)
            yield
    return None


def made_again(entry: Entry) -> Tape | Fault | None:
    """The tape of an entry that is made by rule and seed; None for one that is not. It is the one, if its ref is."""
    if entry.kind is None or entry.seed is None:
        return None
    kind = KINDS.get(entry.kind)
    if kind is None or not 0 <= entry.ticks <= MAX_TICKS:
        return Fault("tape", f"there is no tape of kind {entry.kind[:64]!r} with {entry.ticks} ticks")
    return make(kind, entry.seed, entry.ticks)


def misfit(entry: Entry, tape: Tape) -> Fault | None:
    """Why a tape of an entry's ref is not what the entry says of it; None: it is."""
    if tape.about != entry.about or len(tape) != entry.ticks:
        return Fault("tape", "the tape is another one than the artifact says")
    return None


def wrong_tape(entry: Entry, tape: Tape) -> Fault | None:
    """Why a tape of anybody's is not the one of an entry; None: it is. Takes half a second for the longest."""
    if tape.ref() != entry.ref:
        return Fault("tape", "the tape is another one than the artifact names")
    return misfit(entry, tape)


def run_again(artifact: Artifact, tape: Tape) -> Generator[int, None, Ran | Fault]:
    """Do the calls of an artifact that was read, and let the naive maker trade the same ticks. Yields how many ticks of
    `work` are done, after some milliseconds each."""
    curve: array[int] = array("q")
    trial, fills, first, price = Trial(tape, curve=curve), list[Fill](), None, 0
    for n, call in enumerate(artifact.calls):
        if (why := trial.fault(call)) is not None:
            return Fault("call", why, n)
        if isinstance(call, Start | Revise):
            first, price = first or call.plan, cost(call.plan)
        if isinstance(call, Advance):
            began = trial.place.tick
            fills += yield from _advanced(trial, call.ticks, price, 0)
            if (ran := trial.place.tick - began) != call.ticks:
                return Fault("call", f"it says that {call.ticks} ticks were run, and {ran} are", n)
            continue
        for _ in trial.doing(call):
            yield trial.place.tick  # a plan takes milliseconds, and there may be thousands
    if first is None:
        return Fault("call", "it was never started", 0)
    other: array[int] = array("q")
    quoting = Trial(tape, curve=other)
    quoting.do(Start(maker(first, len(curve))))
    traded = yield from _advanced(quoting, len(curve), MAKER_COST, len(curve))
    return Ran(Replayed(curve, fills, trial), Replayed(other, traded, quoting))


def _advanced(trial: Trial, ticks: int, price: int, before: int) -> Generator[int, None, list[Fill]]:
    """Advance in slices. Yields `before` and the ticks that are done."""
    until, fills = trial.place.tick + ticks, list[Fill]()
    while trial.place.tick < until and trial.place.over is None:
        fills += advance_slice(trial, until - trial.place.tick, UNBOUNDED, price)[2]
        yield before + trial.place.tick
    return fills


def work(artifact: Artifact) -> int:
    """How many ticks `run_again` runs, by what the artifact says of itself."""
    return max(1, 2 * artifact.result.ticks)


def judge(content: bytes, artifact: Artifact, ran: Ran) -> Graded | Fault:
    """The grades of an artifact that is what its calls came to; or the first thing that is not. Takes two seconds for
    the longest."""
    differs = _differs(content, artifact, ran.replayed)
    if differs is not None:
        return differs
    return Graded(
        grades=_grades(ran.replayed),
        aside=aside(len(ran.replayed.curve)),
        naive=_grades(ran.maker),
        curve=decimate(ran.replayed.curve),
        maker=decimate(ran.maker.curve),
    )


def _grades(done: Replayed) -> Grades:
    return grade(done.curve, done.fills, done.trial.place, done.trial.tape)


def review(content: bytes, artifact: Artifact, tape: Tape) -> Graded | Fault:
    """All of it in one go: for who has nothing else to do."""
    if (fault := wrong_tape(artifact.entry, tape)) is not None:
        return fault
    ran = whole(run_again(artifact, tape))
    return ran if isinstance(ran, Fault) else judge(content, artifact, ran)


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
