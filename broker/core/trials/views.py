"""What an agent sees of its trial: nothing of a tick that was not run (docs/reference/trial.md, Sessions)."""

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from broker.core.arenaviews import Artifact, artifact_at
from broker.core.plan.printer import to_text
from broker.core.plan.tree import to_value
from broker.core.tapes.tape import Tape
from broker.core.trials.account import Fill
from broker.core.trials.run import Outcome, Why, outcome_of
from broker.core.trials.script import Entry
from broker.core.trials.session import Operation, TrialRow, may, running

RECENT: Final = 20
"""Ticks that an observation shows, the last one among them."""
SHOWN: Final = 50
"""Orders that an observation shows."""


class Quote(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tick that was run: prices in ticks of the tape, the size of each side if it has one."""

    tick: int
    bid: int
    ask: int
    size: int | None = None


class Resting(msgspec.Struct, frozen=True):
    """An order that rests. `price` null: at any price; `dies`: the last tick at which it acts, null: it rests on."""

    side: Literal["buy", "sell"]
    left: int
    price: int | None
    dies: int | None


class Observation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is seen after the last tick that was run; before the first one there is no quote."""

    tick: int
    """The last one; -1: none was run."""
    ticks_left: int
    """Of the tape."""
    position: int
    pnl: int
    """Millionths of the quote currency."""
    orders_left: int | None
    """Null: no plan says so yet."""
    avoided: int
    """Orders, or parts of them, that a bound kept back."""
    resting_count: int
    resting: list[Resting]
    """The first ones."""
    recent: list[Quote]
    """The last ticks, the newest last."""
    bid: int | None = None
    ask: int | None = None
    mid: float | None = None
    """Between them; it may be a half."""
    size: int | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far an advance is that takes long: ticks that were run, of those that were asked for."""

    ran: int
    of: int


class Underway(msgspec.Struct, frozen=True):
    """An advance that takes long: kestrel.operation.resume waits for its end."""

    operation_id: str
    progress: Progress


class Opening(msgspec.Struct, frozen=True):
    """A trial that was opened."""

    session_id: str
    version: int
    """Give it as expected_version with the next call."""
    observation: Observation
    entry: Entry
    price: dict[str, Any]


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that was done, and what is seen after it."""

    session_id: str
    version: int
    outcome: Outcome
    observation: Observation
    sent: bool | None = None
    """Of an order by hand: whether it was sent; false: a bound kept it back."""


class Advanced(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an advance came to; or, with `operation`, how far it is: then it goes on by itself."""

    session_id: str
    version: int
    outcome: Outcome
    observation: Observation
    ran: int
    """Ticks of this advance that were run."""
    fills: list[Fill]
    """The first ones of this advance. Empty while it goes on."""
    fills_from: int
    """The number of the first of them in the trial, from 0."""
    fills_count: int
    """Of the whole trial."""
    over: Why | None = None
    """Why the run is over."""
    operation: Underway | None = None


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is needed to go on with a trial. Times are Unix milliseconds."""

    session_id: str
    agent_id: str
    status: Literal["open", "over"]
    version: int
    outcome: Outcome
    legal_calls: list[str]
    entry: Entry
    observation: Observation
    fills: list[Fill]
    fills_from: int
    fills_count: int
    opened_at: int
    changed_at: int
    plan: dict[str, Any] | None = None
    text: str | None = None
    """The plan's canonical text."""
    over: Why | None = None
    ended: str | None = None
    """How the session ended: finalized, or expired."""
    operation: Underway | None = None
    artifact: Artifact | None = None


class Finalized(msgspec.Struct, frozen=True):
    """A trial that is over, and where its artifact is."""

    session_id: str
    version: int
    outcome: Outcome
    ref: str
    uri: str


def observe(row: TrialRow, tape: Tape | None) -> Observation:
    """What is seen of a trial as it stands; without its tape there are no quotes."""
    place, plan = row.place, row.plan
    account, last = place.account, place.tick - 1
    ticks = range(max(0, place.tick - RECENT), place.tick)
    recent = [] if tape is None else [_quote(tape, tick) for tick in ticks]
    now = recent[-1] if recent else None
    return Observation(
        tick=last,
        ticks_left=row.entry.ticks - place.tick,
        position=account.position,
        pnl=row.pnl,
        orders_left=None if plan is None else max(0, plan.bound.orders - account.sent),
        avoided=account.avoided,
        resting_count=len(account.working),
        resting=[Resting(each.side, each.left, each.price, each.dies) for each in account.working[:SHOWN]],
        recent=recent,
        bid=None if now is None else now.bid,
        ask=None if now is None else now.ask,
        mid=None if now is None else (now.bid + now.ask) / 2,
        size=None if now is None else now.size,
    )


def _quote(tape: Tape, tick: int) -> Quote:
    size = tape.sizes[tick] if tape.about.sized else None
    return Quote(tick, tape.bids[tick], tape.asks[tick], size)


def underway(operation: Operation | None) -> Underway | None:
    """An operation as it is shown; None where there is none under way."""
    if operation is None or operation.done:
        return None
    return Underway(operation.operation_id, Progress(operation.ran, operation.ticks))


def step(row: TrialRow, tape: Tape | None, sent: bool | None = None) -> Step:
    """The answer to start, revise and submit."""
    return Step(row.session_id, row.version, outcome_of(row.place), observe(row, tape), sent)


def advanced(row: TrialRow, tape: Tape | None, ran: int, fills: list[Fill], fills_from: int) -> Advanced:
    """The answer to an advance, with `fills` of it."""
    return Advanced(
        session_id=row.session_id,
        version=row.version,
        outcome=outcome_of(row.place),
        observation=observe(row, tape),
        ran=ran,
        fills=fills,
        fills_from=fills_from,
        fills_count=row.fills,
        over=row.place.over,
        operation=underway(row.operation) if running(row) else None,
    )


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """For the agent's stream: an advance that took long has ended, or the trial is over."""

    session_id: str
    what: Literal["advanced", "finalized", "expired"]
    version: int
    outcome: Outcome
    operation_id: str | None = None
    """Of the advance, also of one that ended with the trial."""
    ran: int | None = None
    """Ticks of it."""
    ref: str | None = None
    """Of the trial's artifact."""


def news(row: TrialRow, ended: Operation | None) -> News:
    """What there is to tell of a trial, and of the operation that has `ended` just now."""
    told = News(row.session_id, row.over or "advanced", row.version, outcome_of(row.place), ref=row.ref)
    return told if ended is None else replace(told, operation_id=ended.operation_id, ran=ended.ran)


def show(row: TrialRow, tape: Tape | None, fills: list[Fill], fills_from: int) -> Shown:
    """A trial with these of its fills."""
    return Shown(
        session_id=row.session_id,
        agent_id=row.agent_id,
        status="open" if row.over is None else "over",
        version=row.version,
        outcome=outcome_of(row.place),
        legal_calls=may(row, there=tape is not None),
        entry=row.entry,
        observation=observe(row, tape),
        fills=fills,
        fills_from=fills_from,
        fills_count=row.fills,
        opened_at=row.opened_at,
        changed_at=row.changed_at,
        plan=None if row.plan is None else to_value(row.plan),
        text=None if row.plan is None else to_text(row.plan),
        over=row.place.over,
        ended=row.over,
        operation=underway(row.operation) if running(row) else None,
        artifact=artifact_at(row.ref),
    )
