"""Tasks that agents give each other: sent, answered, looked at, taken back (network.md, A2A).

1. To all but its two agents a task looks missing; so does one that is not in the role that a tool is for.
2. The gateway (gateways.a2a) calls these tools and no others: over A2A nobody may more than over MCP.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta

from broker.actors.endpoint import read_endpoint
from broker.actors.pairdocs import permission
from broker.actors.task import NOT_AGREED, Do, Forget, TaskMark, lane_name, read_task
from broker.core import task as core
from broker.core.loops import Trace
from broker.core.task import TaskRow, judge_metadata, judge_parts, view
from broker.store.port import Document
from broker.store.stored import every, stored
from broker.tools import agents
from broker.tools.access import me
from broker.tools.context import Context, Services
from broker.tools.lookup import disk_full
from broker.tools.paging import AfterParam, LimitParam, Page, cursor, fitting, read_cursor, read_page
from broker.tools.registry import tool
from broker.wire.ids import TaskParam
from broker.wire.refusals import Refusal, refuse
from broker.wire.task import Artifact, Outcome, Part, Said, State, View

LIST: Final = 50
TargetParam = Annotated[
    str, Meta(min_length=1, max_length=64, description="the agent's id: `ag_` and 26 characters")
]
TextParam = Annotated[str, Meta(description="the text, at most 16 KiB with all parts; kept as it is")]
ContextParam = (
    Annotated[
        str,
        Meta(
            pattern=r"^[!-~]{1,128}$(?!\n)",
            description="tasks that belong together have the same; none: a new one, which the answer names",
        ),
    ]
    | None
)
PartsParam = (
    Annotated[
        list[Part],
        Meta(max_length=core.PARTS, description="more than a text: each has one of text, raw, url, data"),
    ]
    | None
)
MetadataParam = Annotated[dict[str, Any], Meta(description="a JSON object of your own, at most 4 KiB")] | None
HistoryParam = (
    Annotated[int, Meta(ge=0, le=1_000, description="only so many of the last messages; none given: all")]
    | None
)
Role = Literal["target", "requester"]


class Tasks(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of tasks, last changed first. `total`: all that fit, where a counterpart was named."""

    tasks: list[View]
    next: str | None = None
    total: int | None = None


@tool(face="network", scope="task", keyed=True, title="Give an agent a task", idempotent=False)
async def send_task(
    context: Context,
    target_agent_id: TargetParam,
    text: TextParam | None = None,
    context_id: ContextParam = None,
    task_id: TaskParam | None = None,
    parts: PartsParam = None,
    message_id: Annotated[str, Meta(min_length=1, max_length=128, description="an id of your own")]
    | None = None,
    metadata: MetadataParam = None,
) -> View | Refusal:
    """Give a task to an agent with which you have an agreement that allows tasks (else agreement_required).

    It is answered by the agent's complete_task: an event `task` on your stream tells you; get_task shows what came of
    it. With task_id you add to a task of yours that is not over, as when it is input-required.
    """
    services, given = context.services, _parts(text, parts)
    refused = judge_parts(given) or judge_metadata(metadata)
    refused = refused or disk_full(services, "nothing was written, send it again later")
    if refused is not None:
        return refused
    said = Said(
        message_id or services.new_id("msg_"),
        "requester",
        given,
        services.clock.now_ms(),
        UNSET if metadata is None else metadata,
    )
    if task_id is not None:
        return await _add(context, task_id, target_agent_id, context_id, said)
    return await _begin(context, target_agent_id, context_id, said)


@tool(face="network", scope="task", title="Look at a task", read_only=True)
async def get_task(context: Context, task_id: TaskParam, history: HistoryParam = None) -> View | Refusal:
    """A task that you gave or were given: how it stands, what was said, what came of it (artifacts)."""
    row = await _own(context, task_id)
    return row if isinstance(row, Refusal) else view(row, history)


@tool(face="network", scope="task", title="List tasks", read_only=True)
async def list_tasks(
    context: Context,
    role: Annotated[Role, Meta(description="target: those you were given; requester: those you gave")]
    | None = None,
    status: Annotated[State, Meta(description="only those that stand so")] | None = None,
    limit: LimitParam = LIST,
    after: AfterParam = None,
    counterpart_agent_id: TargetParam | None = None,
    context_id: ContextParam = None,
    changed_after: Annotated[int, Meta(ge=0, description="only those changed since, Unix milliseconds")]
    | None = None,
    full: Annotated[bool, Meta(description="true: with what was said and what came of it")] = False,
) -> Tasks | Refusal:
    """Tasks that you were given (role target, if none is given) or gave (role requester), last changed first.

    status submitted or working: you are to act on those that you were given. context_id and changed_after need the
    counterpart's id.
    """
    services, way = context.services, "out" if role == "requester" else "in"
    total: int | None = None
    if counterpart_agent_id is not None:
        ends = (me(context), counterpart_agent_id)
        lane = lane_name(*(ends if way == "out" else ends[::-1]))
        found = await _in_lane(services, lane, status, context_id, changed_after)
        total = len(found)
        page = _cut(found, after, limit)
    elif context_id is not None or changed_after is not None:
        said = "context_id and changed_after are looked for with one counterpart: name it"
        return refuse("bad_request", said, path="counterpart_agent_id")
    else:
        name = way if status is None else f"{way}.{status}"
        page = await read_page(services.store, "taskmark", name, me(context), after, limit)
    if isinstance(page, Refusal):
        return page
    rows = [(each, await read_task(services.store, _mark(each).task_id)) for each in page.documents]
    there = [(each, row) for each, row in rows if row is not None]
    shown = fitting(there, lambda each: each[1].size if full else 300)
    views = [view(row) if full else View(core.summary(row)) for _, row in shown]
    next = page.next
    if len(shown) < len(there):
        next = cursor("lane" if total is not None else name, shown[-1][0].order)
    return Tasks(views, next, total)


@tool(face="network", scope="task", keyed=True, title="Take a task back", destructive=True)
async def cancel_task(context: Context, task_id: TaskParam) -> View | Refusal:
    """Take back a task that you gave and that is not over. Its target hears of it."""
    return await _ask(context, task_id, core.Cancel())


@tool(face="network", scope="task", keyed=True, title="Answer a task")
async def complete_task(
    context: Context,
    task_id: TaskParam,
    outcome: Annotated[Outcome, Meta(description="completed, failed, or rejected (you won't do it)")],
    text: TextParam,
    parts: PartsParam = None,
) -> View | Refusal:
    """Answer a task that you were given, once and for all. The text (with parts: before them) is its result, or why
    there is none; it may be empty where there are parts."""
    given = _parts(text, parts)
    refused = judge_parts(given)
    if refused is not None:
        return refused
    said, artifact = None, None
    if outcome == "completed":
        artifact = Artifact(context.services.new_id("art_"), given)
    else:
        said = _by_target(context, given)
    return await _ask(context, task_id, core.Finish(outcome, said, artifact))


@tool(face="network", scope="task", keyed=True, title="Say how a task stands", idempotent=False)
async def update_task(
    context: Context,
    task_id: TaskParam,
    status: Annotated[
        Literal["working", "input-required"],
        Meta(description="working; or input-required: you ask the requester for something"),
    ],
    text: TextParam | None = None,
    parts: PartsParam = None,
) -> View | Refusal:
    """Say how a task stands that you were given: that you work on it, or what you need to know (input-required). What
    the requester then adds comes as an event `task`."""
    given = _parts(text, parts)
    if given and (refused := judge_parts(given)) is not None:
        return refused
    said = _by_target(context, given) if given else None
    return await _ask(context, task_id, core.Report(status, said))


async def _own(context: Context, task_id: str) -> TaskRow | Refusal:
    row = await read_task(context.services.store, task_id)
    mine = row is not None and me(context) in (row.requester, row.target)
    return row if row is not None and mine else core.missing()


async def _ask(
    context: Context, task_id: str, command: core.Add | core.Report | core.Finish | core.Cancel
) -> View | Refusal:
    """What the task's actor answers. None is started for a task that is not the caller's."""
    row = await _own(context, task_id)
    if isinstance(row, Refusal):
        return row
    answer: View | Refusal = await context.services.house.ask(
        "task", task_id, Do(command, me(context), context.once)
    )
    return answer


async def _add(
    context: Context, task_id: str, target: str, context_id: str | None, said: Said
) -> View | Refusal:
    row = await _own(context, task_id)
    if isinstance(row, Refusal):
        return row
    if row.requester != me(context) or row.target != target:
        return core.missing()
    if context_id not in (None, row.context_id):
        return refuse("bad_request", "the task is in another context", path="context_id")
    return await _ask(context, task_id, core.Add(said))


async def _begin(context: Context, target: str, context_id: str | None, said: Said) -> View | Refusal:
    """A new task, if the two have agreed on tasks, the network takes this one's, and not too many wait."""
    services, requester, task_id = context.services, me(context), context.services.new_id("tk_")
    author = await agents.find(services, requester)
    agreed = await permission(services.store, requester, target, "task", said.at)
    if author is None or agreed is None:
        return NOT_AGREED
    refused = await _no_gateway(services, target)
    if refused is not None:
        return refused
    row = TaskRow(
        task_id=task_id,
        context_id=context_id or services.new_id("cx_"),
        requester=requester,
        target=target,
        state="submitted",
        created_at=said.at,
        updated_at=said.at,
        due=said.at,
        trace=Trace(task_id, said.at),
        requester_name=author.name,
    )
    command = Do(core.Begin(row, said), requester, context.once)
    async with services.lanes.turn(lane_name(requester, target)):  # of two the second counts the first
        refused = await _full(services, requester, target)
        if refused is not None:
            return refused
        answer: View | Refusal = await services.house.ask("task", task_id, command)
        return answer


async def _no_gateway(services: Services, target: str) -> Refusal | None:
    """Why this agent's tasks are not taken here: it takes them itself."""
    endpoint = await read_endpoint(services.store, target)
    if endpoint is None:
        return None
    said = "this agent takes tasks at an endpoint of its own: send it there, as its Agent Card says"
    return refuse("bad_request", said, path="target_agent_id", a2a_endpoint=endpoint.url)


async def _full(services: Services, requester: str, target: str) -> Refusal | None:
    """Why no more may be given, of tasks that wait; of those that are over the oldest make room."""
    network, lane = services.settings.network, lane_name(requester, target)
    waiting = await services.store.find("taskmark", "open", lane, limit=network.tasks_open)
    if len(waiting) >= network.tasks_open:
        said = f"{network.tasks_open} tasks of yours wait with this agent; cancel some, or wait"
        return refuse("quota_exceeded", said, reason="tasks", limit=network.tasks_open)
    done = await services.store.find("taskmark", "done", lane, limit=network.tasks_kept + 2)
    for document in done[: max(0, len(done) - network.tasks_kept)]:
        services.house.rouse("task", _mark(document).task_id, Forget())
    return None


async def _in_lane(
    services: Services, lane: str, status: str | None, context_id: str | None, since: int | None
) -> list[Document]:
    """Marks of one agent's tasks with another, last changed first. There are tasks_open and tasks_kept at most."""
    found = [document async for document in every(services.store, "taskmark", "lane", lane)]
    marks = ((document, _mark(document)) for document in reversed(found))
    return [
        document
        for document, mark in marks
        if status in (None, mark.state)
        and context_id in (None, mark.context_id)
        and (since is None or mark.updated_at >= since)
    ]


def _cut(found: Sequence[Document], after: str | None, limit: int) -> Page | Refusal:
    place = read_cursor("lane", after)
    if isinstance(place, Refusal):
        return place
    left = [each for each in found if not place or each.order < place]
    return Page(list(left[:limit]), cursor("lane", left[limit - 1].order) if len(left) > limit else None)


def _mark(document: Document) -> TaskMark:
    return stored(TaskMark, document.doc, "taskmark", document.id)


def _parts(text: str | None, parts: list[Part] | None) -> tuple[Part, ...]:
    return (*((Part(text=text),) if text else ()), *(parts or ()))


def _by_target(context: Context, parts: tuple[Part, ...]) -> Said:
    services = context.services
    return Said(services.new_id("msg_"), "target", parts, services.clock.now_ms())
