"""Where what becomes of a task is pushed to (network.md, A2A): by the same worker as webhooks, under the same rules of
where to.

What the receiver knows us by (a token, credentials) is kept sealed and never shown again.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.push import KIND, RemovePush, SetPush, read_push
from broker.actors.task import task_stream
from broker.core.agent import allowance
from broker.core.push import PushRow, Secret, judge_url
from broker.core.taskpush import MOST, Shown, config_of, push_id
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import NO_AGENT
from broker.tools.context import Context, Services
from broker.tools.registry import tool
from broker.tools.sealing import HIDDEN, seal
from broker.tools.task_reader import given
from broker.wire.ids import TaskParam
from broker.wire.refusals import Refusal, refuse

ConfigParam = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)", description="the push's id among those of its task")
]
_SHOWN: Final = r"^[!-~]([ -~]{0,2046}[!-~])?$(?!\n)"
UrlParam = Annotated[str, Meta(description="where to: https://, on port 443, of a public address")]
TokenParam = Annotated[
    str, Meta(pattern=_SHOWN, description="sent as X-A2A-Notification-Token", extra_json_schema=HIDDEN)
]
SchemeParam = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,32}$(?!\n)", description="such as Bearer")]
CredentialsParam = Annotated[
    str, Meta(pattern=_SHOWN, description="sent with it as Authorization", extra_json_schema=HIDDEN)
]
NO_PUSH: Final = refuse("not_found", "this task has no such push")


class TaskPush(msgspec.Struct, frozen=True):
    """A push of a task, without what the receiver knows us by."""

    task_id: str
    config_id: str
    url: str
    scheme: str
    """Of the Authorization header that is sent; empty: none is."""
    state: str
    """active, failing, or disabled (nothing is sent any more)."""


class Judged(msgspec.Struct, frozen=True):
    """What becomes of a task may be pushed there."""

    url: str


class TaskPushes(msgspec.Struct, frozen=True):
    """All of a task."""

    pushes: list[TaskPush]


class NoTaskPush(msgspec.Struct, frozen=True):
    """One is pushed no more."""

    task_id: str
    config_id: str
    deleted: bool


@tool(face="network", scope="task", keyed=True, title="Have a task's changes pushed")
async def set_task_push(
    context: Context,
    task_id: TaskParam,
    url: UrlParam,
    config_id: ConfigParam | None = None,
    token: TokenParam | None = None,
    scheme: SchemeParam | None = None,
    credentials: CredentialsParam | None = None,
    after: Annotated[
        int, Meta(ge=0, description="what follows so many events of the task; none given: what follows now")
    ]
    | None = None,
) -> TaskPush | Refusal:
    """Have what becomes of a task that you gave posted to a URL, as A2A's StreamResponse. The same config_id again is
    the same push with another URL. At most 5 a task; none for an agent that nobody has claimed."""
    services = context.services
    row = await given(context, task_id)
    if isinstance(row, Refusal):
        return row
    config = config_id or services.new_id("wh_")
    refused = await _judge(context, url, scheme, credentials, task_id, config)
    refused = refused or services.pusher.may_begin(task_id)
    if refused is not None:
        return refused
    head = await services.store.head(task_stream(task_id))
    shown = msgspec.json.encode(Shown(token or "", scheme or "", credentials or "")).decode()
    push = PushRow(
        push_id=push_id(task_id, config),
        form="a2a",
        agent_id=me(context),
        stream=task_stream(task_id),
        url=url,
        position=head.newest if after is None else min(after, head.newest),
        epoch=head.epoch,
        created_at=services.clock.now_ms(),
        secrets=(Secret(seal(services, shown)),),
        extra={"scheme": scheme or ""},
    )
    command = SetPush(push, _shown(push), context.once)
    answer: TaskPush | Refusal = await services.house.ask(KIND, push.push_id, command)
    return answer


@tool(face="signin", title="Whether a task's changes may be pushed", read_only=True)
async def judge_task_push(
    context: Context,
    url: UrlParam,
    task_id: TaskParam | None = None,
    config_id: ConfigParam | None = None,
    token: TokenParam | None = None,
    scheme: SchemeParam | None = None,
    credentials: CredentialsParam | None = None,
) -> Judged | Refusal:
    """For A2A's door, where a message brings its push with it: what set_task_push would refuse, before there is a task
    that its sender does not know of."""
    row = None if task_id is None else await given(context, task_id)
    refused = row if isinstance(row, Refusal) else None
    return refused or await _judge(context, url, scheme, credentials, task_id, config_id) or Judged(url)


@tool(face="network", scope="task", title="List a task's pushes", read_only=True)
async def list_task_pushes(context: Context, task_id: TaskParam) -> TaskPushes | Refusal:
    """Where what becomes of a task that you gave is pushed to."""
    row = await given(context, task_id)
    if isinstance(row, Refusal):
        return row
    return TaskPushes([_shown(each) for each in await _pushes(context.services, task_id)])


@tool(face="network", scope="task", keyed=True, title="Push a task's changes no more", destructive=True)
async def delete_task_push(
    context: Context, task_id: TaskParam, config_id: ConfigParam
) -> NoTaskPush | Refusal:
    """End a push of a task that you gave; also where there is none any more."""
    row = await given(context, task_id)
    if isinstance(row, Refusal):
        return row
    name, gone = push_id(task_id, config_id), NoTaskPush(task_id, config_id, True)
    if await read_push(context.services.store, name) is None:
        return gone
    answer: NoTaskPush | Refusal = await context.services.house.ask(
        KIND, name, RemovePush(gone, context.once)
    )
    return gone if isinstance(answer, Refusal) and answer.code == "not_found" else answer


async def _judge(
    context: Context,
    url: str,
    scheme: str | None,
    credentials: str | None,
    task_id: str | None,
    config_id: str | None,
) -> Refusal | None:
    """Why a task (None: one that is to be made) can't have this push."""
    services = context.services
    agent = await agents.find(services, me(context))
    if agent is None:
        return NO_AGENT
    if not allowance(agent).webhook:
        said = "an agent that nobody has claimed has nothing pushed"
        return refuse("quota_exceeded", said, reason="webhook", limit=0)
    refused = judge_url(url, loopback=services.settings.webhooks.allow_loopback)
    if refused is not None:
        return refused
    if credentials is not None and scheme is None:
        return refuse("bad_request", "credentials are sent with a scheme: name it", path="scheme")
    others = [] if task_id is None else await _pushes(services, task_id)
    if len(others) >= MOST and all(config_of(each) != config_id for each in others):
        return refuse("quota_exceeded", f"a task has at most {MOST} pushes", reason="pushes", limit=MOST)
    return None


async def _pushes(services: Services, task_id: str) -> list[PushRow]:
    found = await services.store.find(KIND, "stream", task_stream(task_id), limit=MOST + 1)
    return [stored(PushRow, each.doc, KIND, each.id) for each in found]


def _shown(row: PushRow) -> TaskPush:
    return TaskPush(row.stream.removeprefix("task:"), config_of(row), row.url, row.extra["scheme"], row.state)
