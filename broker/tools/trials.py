"""Trials: a plan tried on a tape, in a session (docs/reference/trial.md, Sessions and Operations).

1. A session is its agent's. The agent goes on with it, and its owner may, and both may look at it; to all others it is
   not there.
2. Only kestrel.session.open takes an agent's id: later calls have it from the session.
3. A plan that does not hold is no fault of validate's: its diagnostics are the result. Who starts with one is refused.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
import trio
from msgspec import Meta

from broker.actors.trainee import Open
from broker.actors.trial import FILLS, Ask, Do, Finalize, Look
from broker.core.plan.diagnostics import Diagnostic
from broker.core.plan.read import Checked, reading
from broker.core.plan.tree import Bound, Plan, to_value
from broker.core.tapes.tape import MAX_PRICE, MAX_TICKS
from broker.core.trials.script import Advance, Call, Revise, Start, Submit
from broker.core.trials.session import NO_OPERATION, NO_TRIAL, TrialRow
from broker.core.trials.views import Advanced, Finalized, Opening, Shown, Step
from broker.store.stored import read_row
from broker.tools.agents import AgentParam
from broker.tools.context import Context
from broker.tools.lookup import disk_full
from broker.tools.play import agent_for, visible
from broker.tools.registry import tool
from broker.wire.ids import OperationParam, TrialParam
from broker.wire.refusals import Refusal, refuse

DIAGNOSTICS: Final = 8
"""Diagnostics in a refusal; kestrel.validate shows them all."""
WAIT_MS: Final = 20_000
PlanParam = Annotated[
    str | dict[str, Any], Meta(description="the plan, as text or as its tree (kestrel.validate shows both)")
]
EntryParam = Annotated[
    str | int, Meta(description="the catalog's entry: its index, its name, or a tape's ref")
]
SeedParam = (
    Annotated[
        int,
        Meta(ge=0, le=2**53 - 1, description="of a tape that is made by rule: another seed, another tape"),
    ]
    | None
)
ExpectedParam = Annotated[
    int,
    Meta(ge=0, le=1_000_000, description="the session's version that you decided on: the one you saw last"),
]
TicksParam = Annotated[int, Meta(ge=1, le=MAX_TICKS, description="how many ticks to go on")]
ORDER: Final = (
    "{side: buy or sell, size, at: a price in ticks, tif: ioc, gtc or a number of ticks}; without `at` at any price, "
    "without `tif` ioc"
)
OrderParam = Annotated[
    dict[str, Any],
    Meta(description=ORDER),
]
FromParam = (
    Annotated[
        int, Meta(ge=0, le=1_000_000, description="fills from this number on; without it the last ones")
    ]
    | None
)
LimitParam = Annotated[int, Meta(ge=0, le=FILLS, description="how many fills at most")]
WaitParam = Annotated[
    int, Meta(ge=0, le=60_000, description="how long to wait for the end at most, milliseconds")
]


class OrderForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An order by hand."""

    side: Literal["buy", "sell"]
    size: Annotated[int, Meta(ge=1, le=10**12)]
    at: Annotated[int, Meta(ge=-MAX_PRICE, le=MAX_PRICE)] | None = None
    tif: Literal["ioc", "gtc"] | Annotated[int, Meta(ge=1, le=MAX_TICKS)] = "ioc"


class Validated(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plan that holds: its tree, its canonical text, what it costs; or `diagnostics`, and why it does not."""

    valid: bool
    tree: dict[str, Any] | None = None
    text: str | None = None
    cost: int | None = None
    """Steps of one tick, at most."""
    reach: int | None = None
    """Ticks before the present one that it looks at."""
    bounds: Bound | None = None
    """Units, millionths of the quote currency, orders, the last tick."""
    diagnostics: list[Diagnostic] | None = None


@tool(face="trial", title="Check a plan", name="kestrel.validate", read_only=True, scope="trial", agent=False)
async def validate(context: Context, plan: PlanParam) -> Validated:
    """Whether a plan holds. It does: its tree, its canonical text, cost and bounds. It does not: what is wrong, with
    line, column, what was expected and a repair where one is obvious.

    Nothing is written. A tree that holds has a text that says the same, and the reverse.
    """
    checked = await _read(context, plan)
    if not isinstance(checked, Checked):
        return Validated(valid=False, diagnostics=checked)
    read = checked.plan
    return Validated(
        valid=True,
        tree=to_value(read),
        text=checked.text,
        cost=checked.cost,
        reach=checked.reach,
        bounds=read.bound,
    )


@tool(
    face="trial",
    title="Open a trial",
    name="kestrel.session.open",
    scope="trial",
    agent=False,
    keyed="required",
)
async def session_open(
    context: Context, entry: EntryParam, seed: SeedParam = None, agent_id: AgentParam | None = None
) -> Opening | Refusal:
    """Open a trial on a tape of the catalog for an agent of yours; without agent_id, for the one that the token acts
    for.

    Nothing of the tape is seen before ticks are run. Then kestrel.session.start with a plan.
    """
    services = context.services
    found = await services.tapes.find(entry, seed)
    if isinstance(found, Refusal):
        return found
    trainee = await agent_for(context, agent_id)
    if isinstance(trainee, Refusal):
        return trainee
    if (full := disk_full(services, "no trial was opened")) is not None:
        return full
    command = Open(services.new_id("tr_"), found, services.tapes.price, context.once)
    answer: Opening | Refusal = await services.house.ask("trainee", trainee, command)
    return answer


@tool(
    face="trial",
    title="Start a trial",
    name="kestrel.session.start",
    scope="trial",
    agent=False,
    keyed="required",
)
async def session_start(
    context: Context, session_id: TrialParam, plan: PlanParam, expected_version: ExpectedParam
) -> Step | Refusal:
    """Bring the plan, once, before anything is run. Then kestrel.session.advance.

    CONFLICT: another call came first; resume, and decide again, under a new key. No answer: send the identical request
    again.
    """
    read = await _plan(context, plan)
    if isinstance(read, Refusal):
        return read
    answer: Step | Refusal = await _do(context, session_id, expected_version, Start(read))
    return answer


@tool(
    face="trial",
    title="Go on with a trial",
    name="kestrel.session.advance",
    scope="trial",
    agent=False,
    keyed="required",
)
async def session_advance(
    context: Context, session_id: TrialParam, ticks: TicksParam, expected_version: ExpectedParam
) -> Advanced | Refusal:
    """Run the next ticks: the outcome (RUNNING, STAND_DOWN, DONE), what is seen then, and what was filled on the way.

    With `operation` it takes longer, and goes on by itself: kestrel.operation.resume waits for its end, and an event
    `trial` tells of it. Until then nothing is done in the session but kestrel.session.finalize, which ends it there:
    the way out of an advance that was a mistake. A stand-down is a result like the others.
    """
    answer: Advanced | Refusal = await _do(context, session_id, expected_version, Advance(ticks))
    return answer


@tool(
    face="trial",
    title="Change the plan of a trial",
    name="kestrel.session.revise",
    scope="trial",
    agent=False,
    keyed="required",
)
async def session_revise(
    context: Context, session_id: TrialParam, plan: PlanParam, expected_version: ExpectedParam
) -> Step | Refusal:
    """Go on with another plan from here. What is held and how many orders were sent stays; what rests is cut to the
    plan's position bound.

    ILLEGAL_ACTION: more is held than the plan's bound is.
    """
    read = await _plan(context, plan)
    if isinstance(read, Refusal):
        return read
    answer: Step | Refusal = await _do(context, session_id, expected_version, Revise(read))
    return answer


@tool(
    face="trial",
    title="Send an order in a trial",
    name="kestrel.session.submit",
    scope="trial",
    agent=False,
    keyed="required",
)
async def session_submit(
    context: Context, session_id: TrialParam, order: OrderParam, expected_version: ExpectedParam
) -> Step | Refusal:
    """Send an order by hand, within the plan's bounds, as a rule would at the last tick: it acts from the next one on.

    `sent` false: a bound kept it back.
    """
    try:
        form = msgspec.convert(order, OrderForm)
    except (msgspec.ValidationError, RecursionError) as error:
        said = f"order: {str(error)[:120]}; it is {ORDER}"
        return refuse("bad_request", said, path="order")
    call = Submit(form.side, form.size, form.at, form.tif)
    answer: Step | Refusal = await _do(context, session_id, expected_version, call)
    return answer


@tool(
    face="trial", title="A trial", name="kestrel.session.resume", read_only=True, scope="trial", agent=False
)
async def session_resume(
    context: Context, session_id: TrialParam, fills_from: FromParam = None, limit: LimitParam = FILLS
) -> Shown | Refusal:
    """All that is needed to go on: plan, version, what is seen, fills, an advance that is under way, legal calls."""
    row = await _mine(context, session_id)
    if isinstance(row, Refusal):
        return row
    answer: Shown | Refusal = await context.services.house.ask("trial", session_id, Look(fills_from, limit))
    return answer


@tool(
    face="trial",
    title="End a trial",
    name="kestrel.session.finalize",
    scope="trial",
    agent=False,
    keyed="required",
)
async def session_finalize(
    context: Context, session_id: TrialParam, expected_version: ExpectedParam
) -> Finalized | Refusal:
    """End a trial and publish what was done in it, at any time, also while an advance is under way: its artifact never
    changes, and whoever has the ref reads it at `uri`.

    Then kestrel.grade says what it was worth.
    """
    row = await _mine(context, session_id, acting=True)
    if isinstance(row, Refusal):
        return row
    command = Finalize(expected_version, context.caller.principal or "", context.once)
    answer: Finalized | Refusal = await context.services.house.ask("trial", session_id, command)
    return answer


@tool(
    face="trial",
    title="Wait for an advance",
    name="kestrel.operation.resume",
    read_only=True,
    streams=True,
    scope="trial",
    agent=False,
)
async def operation_resume(
    context: Context, operation_id: OperationParam, wait_ms: WaitParam = WAIT_MS
) -> Advanced | Refusal:
    """Wait for the end of an advance that takes long: its result, as kestrel.session.advance gives it; or, when the
    time to wait is over, how far it is.

    It goes on whether anybody waits or not. With a progress token you are told how far it is.
    """
    services = context.services
    found = await services.store.find("trial", "operation", operation_id, limit=1)
    row = await _mine(context, found[0].id if found else operation_id)  # both cost the same
    if isinstance(row, Refusal):
        return NO_OPERATION if row.code == "NOT_FOUND" else row
    deadline = trio.current_time() + wait_ms / 1000
    with services.mill.watch(row.session_id) as moves:
        while True:
            moved = moves()
            answer: Advanced | Refusal = await services.house.ask("trial", row.session_id, Ask(operation_id))
            if isinstance(answer, Refusal) or answer.operation is None:
                return answer
            if context.progress is not None:
                await context.progress(msgspec.json.encode(answer.operation.progress))
            with trio.move_on_at(deadline) as waited:
                await moved.wait()
            if waited.cancelled_caught:
                return answer


async def _do(context: Context, session_id: str, expected: int, call: Call) -> Any:
    row = await _mine(context, session_id, acting=True)
    if isinstance(row, Refusal):
        return row
    command = Do(expected, call, context.caller.principal or "", context.once)
    return await context.services.house.ask("trial", session_id, command)


async def _read(context: Context, plan: str | dict[str, Any]) -> Checked | list[Diagnostic]:
    """In pieces, in turn with who computes: reading a large plan takes some 20 ms."""
    caller = context.caller
    who = caller.agent or caller.principal or caller.address
    checked = await context.services.mill.work(who, reading(plan))
    context.services.rehearsed.plans["valid" if isinstance(checked, Checked) else "invalid"] += 1
    return checked


async def _plan(context: Context, plan: str | dict[str, Any]) -> Plan | Refusal:
    """The plan that a call brings; one that does not hold is refused."""
    checked = await _read(context, plan)
    if isinstance(checked, Checked):
        return checked.plan
    said = f"the plan does not hold: {checked[0]}"
    shown = msgspec.to_builtins(checked[:DIAGNOSTICS])
    return refuse("bad_request", said[:300], path="plan", diagnostics=shown)


async def _mine(context: Context, session_id: str, *, acting: bool = False) -> TrialRow | Refusal:
    """A trial that the caller may see, or go on with."""
    row = await read_row(context.services.store, TrialRow, "trial", session_id)
    return await visible(context, session_id, row, NO_TRIAL, acting=acting)
