"""A trial as it is kept: its events, what they come to, which call may be done now (docs/reference/trial.md, Sessions).

1. The log is the truth. The document's place is a short cut to go on from; whoever has the tape can run the calls
   again, and comes to the same place.
2. A version names a state: each call that was done makes it one more. One that takes long makes it one more at its end,
   and nothing else is done before.
3. Where a run is cut into parts changes nothing: not its fills, not its artifact.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from broker.core.plan.tree import Plan
from broker.core.trials.account import Fill
from broker.core.trials.run import Place, outcome_of
from broker.core.trials.script import (
    Advance,
    Call,
    Entry,
    Result,
    Revise,
    Start,
    Trial,
    mark_step,
    written,
)
from broker.wire.refusals import Refusal, refuse

Over = Literal["finalized", "expired"]
Mark = tuple[int, int]
"""A tick, and the profit and loss then."""
MAX_CALLS: Final = 2_000
MAX_CALL_BYTES: Final = 512 * 1024
"""Bytes that the calls of one trial have as JSON: most of them are plans."""
MAX_FILLS: Final = 20_000
"""Fills of one trial; the tick at which they are reached is run to its end. So its artifact is below
broker.core.artifact.MAX_BYTES: a fill has at most 98 bytes of it, and a tick as many fills as a plan sends orders."""
NO_TRIAL: Final = refuse("NOT_FOUND", "there is no such session", path="session_id")
TAPE_GONE: Final = refuse(
    "ILLEGAL_ACTION",
    "the tape of this trial is not kept here any more: finalize it",
    legal_actions=["finalize"],
)
NO_OPERATION: Final = refuse("NOT_FOUND", "there is no such operation", path="operation_id")


class Opened(msgspec.Struct, frozen=True, tag_field="type", tag="opened"):
    """The first event: whose trial, and on which tape."""

    agent_id: str
    entry: Entry


class Done(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="done"):
    """A call that was done, and what came of it. An advance has the ticks that were run."""

    call: Call
    fills: Sequence[Fill] = ()
    marks: Sequence[Mark] = ()


class Began(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="began"):
    """The first part of an advance that takes long: what was asked for, and what was run of it."""

    operation_id: str
    ticks: int
    ran: int
    fills: Sequence[Fill] = ()
    marks: Sequence[Mark] = ()


class Ran(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="ran"):
    """One more part of it. `last`: the call is done."""

    ran: int
    fills: Sequence[Fill] = ()
    marks: Sequence[Mark] = ()
    last: bool = False


class Closed(msgspec.Struct, frozen=True, tag_field="type", tag="closed"):
    """It is over: it was finalized, or its time was."""

    over: Over


Event = Opened | Done | Began | Ran | Closed


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An advance that takes long: what was asked for, what was run of it, its first fill's number, and how many."""

    operation_id: str
    ticks: int
    ran: int
    fills_from: int
    fills: int
    done: bool = False


class TrialRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trial as stored (kind "trial", id = session_id); times are wall milliseconds. Its events are
    `broker.core.arena.session_log`."""

    session_id: str
    agent_id: str
    entry: Entry
    opened_at: int
    changed_at: int
    due: int | None = None
    """When somebody looks whether its time is over."""
    version: int = 0
    events: int = 1
    fills: int = 0
    size: int = 0
    """Bytes of its calls."""
    plan: Plan | None = None
    place: Place = msgspec.field(default_factory=Place)
    pnl: int = 0
    """Profit and loss at the last tick that was run."""
    operation: Operation | None = None
    """The last one."""
    over: Over | None = None
    ref: str | None = None
    """Of its artifact, once it is over."""


class TraineeRow(msgspec.Struct, frozen=True):
    """What an agent has opened (kind "trainee", id = agent_id): how many on a day."""

    agent_id: str
    day: int = 0
    """Days since 1970."""
    opened: int = 0
    """On that day."""


class Kept(msgspec.Struct):
    """What a trial's events come to, without its tape."""

    opened: Opened
    version: int = 0
    calls: list[Call] = []
    fills: list[Fill] = []
    marks: list[Mark] = []
    plan: Plan | None = None
    operation: Operation | None = None
    over: Over | None = None


def fold(events: Iterable[Event]) -> Kept:
    """What events come to, the first of them Opened. Raises ValueError where they are no trial's."""
    kept: Kept | None = None
    for event in events:
        if isinstance(event, Opened):
            if kept is not None:
                raise ValueError("a trial is opened once")
            kept = Kept(event)
        elif kept is None:
            raise ValueError("a trial begins by being opened")
        else:
            _add(kept, event)
    if kept is None:
        raise ValueError("a trial has one event at least")
    return kept


def _add(kept: Kept, event: Done | Began | Ran | Closed) -> None:
    operation = kept.operation
    running = operation is not None and not operation.done
    if kept.over is not None or (running is not isinstance(event, Ran) and not isinstance(event, Closed)):
        raise ValueError(f"{type(event).__name__} is no event of a trial as it is then")
    match event:
        case Done(call):
            kept.calls.append(call)
            kept.plan = call.plan if isinstance(call, Start | Revise) else kept.plan
        case Began(id, ticks, ran):
            kept.calls.append(Advance(ran))
            kept.operation = Operation(id, ticks, ran, len(kept.fills), len(event.fills))
        case Ran(ran, last=last):
            assert operation is not None
            filled = operation.fills + len(event.fills)
            kept.operation = replace(operation, ran=operation.ran + ran, fills=filled, done=last)
            kept.calls[-1] = Advance(kept.operation.ran)
        case Closed(over):
            kept.over = over
    if not isinstance(event, Closed):
        kept.fills += event.fills
        kept.marks += event.marks
    kept.version += isinstance(event, Done | Closed) or (isinstance(event, Ran) and event.last)


def index_of(row: TrialRow) -> tuple[tuple[str, str | int], ...]:
    """What a trial is found by: its agent's, those that are open, what falls due, its operation."""
    found: tuple[tuple[str, str | int], ...] = (("agent", row.agent_id),)
    if row.over is None:
        found = (*found, ("open", row.agent_id))
    if row.due is not None:
        found = (*found, ("due", row.due))
    if row.operation is not None:
        found = (*found, ("operation", row.operation.operation_id))
    return (*found, ("running", 1)) if running(row) else found


def running(row: TrialRow) -> bool:
    """Whether an operation is under way."""
    return row.over is None and row.operation is not None and not row.operation.done


def full(row: TrialRow) -> bool:
    """Whether it has as many fills as an artifact may have: it goes on no more."""
    return row.fills >= MAX_FILLS


def may(row: TrialRow, *, there: bool = True) -> list[str]:
    """The calls that may be done now. `there`: whether its tape is."""
    if row.over is not None:
        return []
    place = row.place
    if not there or running(row):
        return ["finalize"]
    if row.plan is None:
        return ["start", "finalize"]
    if place.over is not None or full(row):
        return ["finalize"]
    return ["advance", "finalize"] if place.closing else ["advance", "revise", "submit", "finalize"]


def judge(row: TrialRow, expected: int, *, ending: bool = False) -> Refusal | None:
    """Why nothing is done in a trial that was decided on at version `expected`. `ending`: it is to be over, which an
    advance that is under way does not hinder."""
    if row.over is not None:
        return refuse("SESSION_OVER", "the session is over", version=row.version, over=row.over)
    if running(row) and not (ending and expected == row.version):
        assert row.operation is not None
        said = "an advance is under way: kestrel.operation.resume waits for its end, kestrel.session.finalize ends it"
        id = row.operation.operation_id
        return refuse("CONFLICT", said, version=row.version, operation_id=id)
    if expected != row.version:
        said = f"the session is at version {row.version}; look at it, and decide again"
        return refuse("CONFLICT", said, version=row.version)
    return None


def judge_call(row: TrialRow, trial: Trial, call: Call, size: int) -> Refusal | None:
    """Why a call of `size` bytes, in a trial that `judge` lets go on, is not done."""
    if (fault := trial.fault(call)) is not None:
        return refuse("ILLEGAL_ACTION", fault, legal_actions=may(row))
    if full(row):
        said = f"a trial has at most {MAX_FILLS} fills: finalize it"
        return refuse("LIMIT_EXCEEDED", said, reason="fills", limit=MAX_FILLS)
    if row.version >= MAX_CALLS:
        said = f"a trial has at most {MAX_CALLS} calls: finalize it"
        return refuse("LIMIT_EXCEEDED", said, reason="calls", limit=MAX_CALLS)
    if row.size + size > MAX_CALL_BYTES:
        said = f"the calls of a trial have at most {MAX_CALL_BYTES} bytes: advance, or finalize it"
        return refuse("LIMIT_EXCEEDED", said, reason="size", limit=MAX_CALL_BYTES)
    return None


def result(row: TrialRow) -> Result:
    """What a trial has come to. It takes no tape: a trial is over in its time, also where its tape is gone."""
    place = row.place
    account = place.account
    return Result(
        outcome=outcome_of(place),
        over=place.over,
        ticks=place.tick,
        pnl=row.pnl,
        position=account.position,
        orders=account.sent,
        avoided=account.avoided,
    )


def artifact(kept: Kept, result: Result) -> bytes:
    """A trial that is over as it is published."""
    ticks = result.ticks
    step = mark_step(ticks)
    marks = [each for each in kept.marks if each[0] % step == 0 and each[0] < ticks - 1]
    if ticks:
        marks.append((ticks - 1, result.pnl))
    return written(kept.opened.entry, kept.calls, kept.fills, marks, result)


def marked(curve: Sequence[int], upto: int) -> list[Mark]:
    """Of the profit and loss of the ticks before `upto` what is kept of it for the artifact."""
    step, first = mark_step(upto), upto - len(curve)
    start = -(-first // step) * step
    return [(tick, curve[tick - first]) for tick in range(start, upto, step)]


def copied(place: Place) -> Place:
    """A place that stays where it is while a run moves the other one."""
    account = place.account
    working = [replace(each) for each in account.working]
    return replace(place, account=replace(account, working=working))


def read_call(call: Call) -> dict[str, Any]:
    """A call as it is kept of a rejected attempt: of a plan its name."""
    if isinstance(call, Start | Revise):
        return {"type": call.__struct_config__.tag, "plan": f"{call.plan.name} {call.plan.version}"}
    members: dict[str, Any] = msgspec.to_builtins(call)
    return members
