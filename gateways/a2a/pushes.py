"""A2A's methods about push notifications.

What a receiver knows us by goes in and never comes out again. Source: A2A specification 1.0, 3.1.7 to 3.1.10.
"""

from typing import Any

import msgspec

from broker.wire import a2a
from broker.wire.refusals import Refusal
from broker.wire.task import View
from gateways.a2a import errors
from gateways.a2a.calls import Call, Result, own, read
from gateways.a2a.errors import Fault


async def create_push(call: Call, params: bytes) -> Result:
    """CreateTaskPushNotificationConfig."""
    config = read(params, a2a.PushConfig)
    if isinstance(config, Fault):
        return config
    view = await own(call, config.task_id)
    return await set_push(call, config.task_id, config, None) if isinstance(view, View) else view


async def set_push(call: Call, task_id: str, config: a2a.PushConfig, after: int | None) -> Result:
    """Have what follows so many events of a task (None: what follows now) pushed."""
    answer = await call.tool("set_task_push", task_id=task_id, after=after, **_given(config))
    return answer if isinstance(answer, Refusal) else _shown(answer)


async def judge_push(call: Call, task_id: str | None, config: a2a.PushConfig) -> Refusal | None:
    """Why a task (None: one that is to be made) can't have this push; looked at before anything is made."""
    given = {name: value for name, value in _given(config).items() if value is not None}
    if task_id is not None:
        given["task_id"] = task_id
    answer = await call.broker.signin(call.caller, "judge_task_push", msgspec.json.encode(given))
    return answer if isinstance(answer, Refusal) else None


def _given(config: a2a.PushConfig) -> dict[str, str | None]:
    """A configuration as the tools take it."""
    shown = config.authentication
    return {
        "url": config.url,
        "config_id": config.id or None,
        "token": config.token or None,
        "scheme": shown.scheme if shown is not None else None,
        "credentials": (shown.credentials or None) if shown is not None else None,
    }


async def get_push(call: Call, params: bytes) -> Result:
    """GetTaskPushNotificationConfig."""
    found = await _all(call, params)
    if isinstance(found, Fault | Refusal):
        return found
    wanted, pushes = found
    return next((_shown(each) for each in pushes if each.config_id == wanted.id), errors.TASK_NOT_FOUND)


async def list_pushes(call: Call, params: bytes) -> Result:
    """ListTaskPushNotificationConfigs: there are few, and all are on one page."""
    found = await _all(call, params)
    if isinstance(found, Fault | Refusal):
        return found
    return {"configs": [_shown(each) for each in found[1]], "nextPageToken": ""}


async def delete_push(call: Call, params: bytes) -> Result:
    """DeleteTaskPushNotificationConfig; also where there is none any more."""
    wanted = read(params, a2a.PushConfigId)
    if isinstance(wanted, Fault):
        return wanted
    view = await own(call, wanted.task_id)
    if not isinstance(view, View):
        return view
    answer = await call.tool("delete_task_push", task_id=wanted.task_id, config_id=wanted.id)
    return answer if isinstance(answer, Refusal) else {}


async def _all(call: Call, params: bytes) -> tuple[a2a.PushConfigId, list[Any]] | Fault | Refusal:
    wanted = read(params, a2a.PushConfigId)
    if isinstance(wanted, Fault):
        return wanted
    view = await own(call, wanted.task_id)
    if not isinstance(view, View):
        return view
    answer = await call.tool("list_task_pushes", task_id=wanted.task_id)
    return answer if isinstance(answer, Refusal) else (wanted, answer.pushes)


def _shown(push: Any) -> dict[str, Any]:
    made = {"id": push.config_id, "taskId": push.task_id, "url": push.url}
    return {**made, "authentication": {"scheme": push.scheme}} if push.scheme else made
