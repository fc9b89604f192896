"""The official A2A client gives tasks to an agent that answers over MCP; run in the environment of the SDK.

`python a2a_client.py URL`, with a token in A2A_TOKEN. Prints `ok <what>` for each step that went as it should; what did
not is raised.
"""

import asyncio
import os
import sys
from uuid import uuid4

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError


def request(kind, text="hello", task_id="", **configuration):
    """A message whose id says what is to come of it (a2a_parties.py)."""
    message = Message(
        role=Role.ROLE_USER, parts=[Part(text=text)], message_id=f"{kind}-{uuid4()}", task_id=task_id
    )
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))


def ok(what):
    print(f"ok {what}", flush=True)


async def steps(client, blocking):
    """`client` streams, `blocking` does not."""
    (answer,) = [each async for each in blocking.send_message(request("tck-complete-task"))]
    assert answer.task.status.state == TaskState.TASK_STATE_COMPLETED, answer
    assert answer.task.artifacts[0].parts[0].text == "Hello from TCK"
    ok("a message waits for the answer of an agent")

    events = [each async for each in client.send_message(request("tck-stream-001"))]
    kinds = [each.WhichOneof("payload") for each in events]
    assert kinds == ["task", "status_update", "artifact_update", "status_update"], kinds
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    ok("a stream has the task, what becomes of it, and an end")

    found = await client.get_task(GetTaskRequest(id=answer.task.id))
    assert found.history[0].parts[0].text == "hello"
    listed = await client.list_tasks(ListTasksRequest(page_size=1))
    assert (len(listed.tasks), listed.total_size) == (1, 2)
    ok("tasks are read and listed")

    (asked,) = [each async for each in blocking.send_message(request("tck-input-required"))]
    assert asked.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    (done,) = [
        each async for each in blocking.send_message(request("tck-complete-task", "more", asked.task.id))
    ]
    assert (done.task.id, done.task.status.state) == (asked.task.id, TaskState.TASK_STATE_COMPLETED)
    ok("a task that asks for more gets it")

    (waiting,) = [each async for each in blocking.send_message(request("tck-input-required"))]
    stream = client.subscribe(SubscribeToTaskRequest(id=waiting.task.id))
    first = await anext(stream)
    assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    config = TaskPushNotificationConfig(
        task_id=waiting.task.id, url="https://hooks.example/x", id="c1", token="t"
    )
    assert (await client.create_task_push_notification_config(config)).id == "c1"
    wanted = ListTaskPushNotificationConfigsRequest(task_id=waiting.task.id)
    assert len((await client.list_task_push_notification_configs(wanted)).configs) == 1
    await client.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id=waiting.task.id, id="c1")
    )
    assert len((await client.list_task_push_notification_configs(wanted)).configs) == 0
    ok("pushes are made, listed and ended")

    gone = await client.cancel_task(CancelTaskRequest(id=waiting.task.id))
    assert gone.status.state == TaskState.TASK_STATE_CANCELED
    last = [each async for each in stream][-1]
    assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED
    ok("a task is cancelled, and who follows it hears so")

    try:
        await client.get_task(GetTaskRequest(id="tk_none"))
    except TaskNotFoundError:
        ok("a task that is not there is told by its own error")
    try:
        await client.cancel_task(CancelTaskRequest(id=waiting.task.id))
    except TaskNotCancelableError:
        ok("and one that is over by another")


async def main(url):
    headers = {"authorization": f"Bearer {os.environ['A2A_TOKEN']}"}
    async with httpx.AsyncClient(headers=headers, timeout=40, trust_env=False) as http:
        made = [
            await create_client(url, ClientConfig(httpx_client=http, streaming=streams))
            for streams in (True, False)
        ]
        ok("the card is read")
        await steps(*made)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
