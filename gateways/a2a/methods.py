"""A2A's methods that answer at once: each is one or two of the broker's tools.

1. A task exists for the one who gave it, at the endpoint of the agent to which it was given; elsewhere it is missing.
2. What is refused is a Refusal or a Fault, and the door shows it; nothing is raised for what a client sends.

Source: A2A specification 1.0, 3.1 and 9.4.
"""

from typing import Final

import msgspec
import trio

from broker.app import Ended, Slow
from broker.wire import a2a
from broker.wire.refusals import Refusal
from broker.wire.task import RESTING, View
from gateways.a2a import errors
from gateways.a2a.calls import Call, Method, Result, own, read, state_told
from gateways.a2a.errors import Fault
from gateways.a2a.pushes import create_push, delete_push, get_push, judge_push, list_pushes, set_push

PAGE: Final = 50
MOST: Final = 100
_NO_FILTER: Final = ("", "TASK_STATE_UNSPECIFIED")
_NEVER: Final = ("TASK_STATE_AUTH_REQUIRED",)
"""States of A2A's that no task here ever has."""


async def begin(call: Call, request: a2a.SendMessage) -> View | Fault | Refusal:
    """What SendMessage and SendStreamingMessage have in common: the task, begun or added to."""
    message, config = request.message, request.configuration.task_push_notification_config
    if config is not None:  # an error must not mean that there is a task after all
        bad = await judge_push(call, message.task_id or None, config)
        if bad is not None:
            return bad
    view = await call.view(
        "send_task",
        target_agent_id=call.agent_id,
        parts=msgspec.to_builtins(a2a.parts_of(message)),
        context_id=message.context_id or None,
        task_id=message.task_id or None,
        message_id=message.message_id or None,
        metadata=message.metadata,
        idempotency_key=call.key,
    )
    if isinstance(view, View) and config is not None:
        refused = await set_push(call, view.task.task_id, config, view.task.events)
        if not isinstance(refused, dict):
            return refused
    return view


async def send(call: Call, params: bytes) -> Result:
    """SendMessage: waits until the task is over or asks for something, unless told not to; at most
    `network.task_wait_s`."""
    request = read(params, a2a.SendMessage)
    if isinstance(request, Fault):
        return request
    wishes = request.configuration
    fault = _history(wishes.history_length)
    view = fault or await begin(call, request)
    if not isinstance(view, View):
        return view
    task_id = view.task.task_id
    if not wishes.return_immediately and view.task.state not in RESTING:
        refused = await _rest(call, task_id)
        if refused is not None:
            return refused
    last = await own(call, task_id, wishes.history_length)
    return {"task": a2a.task(last)} if isinstance(last, View) else last


async def get(call: Call, params: bytes) -> Result:
    """GetTask."""
    wanted = read(params, a2a.TaskId)
    if isinstance(wanted, Fault):
        return wanted
    view = _history(wanted.history_length) or await own(call, wanted.id, wanted.history_length)
    return a2a.task(view) if isinstance(view, View) else view


async def list_tasks(call: Call, params: bytes) -> Result:
    """ListTasks: those that the caller gave this agent, last changed first."""
    wanted = read(params, a2a.ListTasks)
    if isinstance(wanted, Fault):
        return wanted
    size = PAGE if wanted.page_size is None else wanted.page_size
    state, since, fault = None, None, _history(wanted.history_length)
    if not 1 <= size <= MOST:
        fault = errors.invalid("pageSize", f"it is 1 to {MOST}")
    if wanted.status not in _NO_FILTER and (state := a2a.state_of(wanted.status)) is None:
        fault = fault if wanted.status in _NEVER else errors.invalid("status", "there is no such state")
    try:
        since = a2a.time_of(wanted.status_timestamp_after) if wanted.status_timestamp_after else None
    except ValueError:
        fault = errors.invalid("statusTimestampAfter", "it is a time as RFC 3339 has it, in UTC")
    if fault is not None:
        return fault
    if wanted.status in _NEVER:
        return {"tasks": [], "nextPageToken": "", "pageSize": size, "totalSize": 0}
    page = await call.tool(
        "list_tasks",
        role="requester",
        counterpart_agent_id=call.agent_id,
        context_id=wanted.context_id or None,
        status=state,
        changed_after=max(0, since) if since is not None else None,
        limit=size,
        after=wanted.page_token or None,
        full=True,
    )
    if isinstance(page, Refusal):
        return page
    kept = wanted.history_length or 0
    tasks = [a2a.task(_short(each, kept), artifacts=wanted.include_artifacts) for each in page.tasks]
    return {
        "tasks": tasks,
        "nextPageToken": page.next or "",
        "pageSize": size,
        "totalSize": page.total or 0,
    }


async def cancel(call: Call, params: bytes) -> Result:
    """CancelTask."""
    wanted = read(params, a2a.TaskId)
    if isinstance(wanted, Fault):
        return wanted
    view = await own(call, wanted.id)
    if not isinstance(view, View):
        return view
    done = await call.view("cancel_task", task_id=wanted.id)
    if isinstance(done, Refusal):
        return errors.of_refusal(done, canceling=True) if done.code == "bad_request" else done
    return a2a.task(done)


async def extended_card(call: Call, params: bytes) -> Result:
    """GetExtendedAgentCard: there is none."""
    return errors.NO_CARD


async def _rest(call: Call, task_id: str) -> Refusal | None:
    """Wait until a task is over or asks for something, or until the time is over; or why the wait ends."""
    followed = await call.broker.follow_task(call.caller, task_id)
    if isinstance(followed, Refusal):
        return followed
    async with followed.reader as reader:
        if followed.view.task.state in RESTING:
            return None
        with trio.move_on_after(call.broker.settings.network.task_wait_s):
            try:
                while True:
                    for event in await reader.receive():
                        if state_told(event) in RESTING:
                            return None
            except Ended as ended:
                return ended.refusal
            except Slow:  # it has moved on very much: what it is now is looked at anyway
                return None
    return None


def _history(length: int | None) -> Fault | None:
    return errors.invalid("historyLength", "it is 0 or more") if length is not None and length < 0 else None


def _short(view: View, kept: int) -> View:
    history = view.history[len(view.history) - min(kept, len(view.history)) :]
    return msgspec.structs.replace(view, history=history)


METHODS: Final[dict[str, Method]] = {
    "SendMessage": send,
    "GetTask": get,
    "ListTasks": list_tasks,
    "CancelTask": cancel,
    "GetExtendedAgentCard": extended_card,
    "CreateTaskPushNotificationConfig": create_push,
    "GetTaskPushNotificationConfig": get_push,
    "ListTaskPushNotificationConfigs": list_pushes,
    "DeleteTaskPushNotificationConfig": delete_push,
}
