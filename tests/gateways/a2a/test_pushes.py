"""A2A's methods about push notifications, and what is posted (network.md, A2A)."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from broker.app import Outcome
from tests.support.a2a import Doors, open_doors, said
from tests.support.broker import open_bench

URL = "https://hooks.a2a-agents.org/x"
CREATE, GET = "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"
LIST, DELETE = "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"


class Receiver:
    """A courier that keeps what it is given."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.three = trio.Event()

    async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        await trio.lowlevel.checkpoint()
        self.got.append((url, dict(headers), json.loads(body)))
        if len(self.got) == 3:
            self.three.set()
        return Outcome(204)


@pytest.mark.requirement("network.a2a.push")
async def test_what_becomes_of_a_task_is_posted_with_what_was_asked_for() -> None:
    receiver = Receiver()
    async with open_bench(courier=receiver) as bench:
        doors = await open_doors(bench)
        config = {
            "url": URL,
            "id": "c1",
            "token": "tok",
            "authentication": {"scheme": "Bearer", "credentials": "secret"},
        }
        params = {
            "message": said(),
            "configuration": {"returnImmediately": True, "taskPushNotificationConfig": config},
        }
        task = (await doors.result("SendMessage", params))["task"]
        await doors.update(task["id"], "working")
        await doors.complete(task["id"], "done")
        with trio.fail_after(5):
            await receiver.three.wait()
        for url, headers, _ in receiver.got:
            assert url == URL
            assert headers["authorization"] == "Bearer secret"
            assert headers["x-a2a-notification-token"] == "tok"
            assert headers["content-type"] == "application/a2a+json"
        bodies = [body for _, _, body in receiver.got]
        assert bodies[0]["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING"
        assert bodies[1]["artifactUpdate"]["artifact"]["parts"] == [{"text": "done"}]
        assert bodies[2]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert bodies[2]["statusUpdate"]["taskId"] == task["id"]


@pytest.mark.requirement("network.a2a.push")
async def test_a_push_is_made_looked_at_and_ended(doors: Doors) -> None:
    task = await doors.send()
    made = await doors.result(CREATE, {"taskId": task["id"], "url": URL, "token": "tok"})
    assert made == {"id": made["id"], "taskId": task["id"], "url": URL}
    named = await doors.result(
        CREATE,
        {
            "task_id": task["id"],
            "url": URL,
            "id": "c2",
            "authentication": {"scheme": "Basic", "credentials": "x"},
        },
    )
    assert named["authentication"] == {"scheme": "Basic"}  # what it knows us by is told nobody again
    assert await doors.result(GET, {"taskId": task["id"], "id": "c2"}) == named
    listed = await doors.result(LIST, {"taskId": task["id"]})
    assert (sorted(each["id"] for each in listed["configs"]), listed["nextPageToken"]) == (
        sorted([made["id"], "c2"]), "",
    )  # fmt: skip
    for _ in range(2):
        assert await doors.result(DELETE, {"taskId": task["id"], "id": "c2"}) == {}
    assert (await doors.error(GET, {"taskId": task["id"], "id": "c2"}))["code"] == -32001


@pytest.mark.requirement("network.a2a.foreign")
@pytest.mark.parametrize("method", [CREATE, GET, LIST, DELETE])
async def test_pushes_of_a_foreign_task_are_as_of_none(doors: Doors, method: str) -> None:
    task = await doors.send()
    await doors.result(CREATE, {"taskId": task["id"], "url": URL, "id": "c1", "token": "tok"})
    params = {"url": URL, "id": "c1"}
    foreign = await doors.error(method, {**params, "taskId": task["id"]}, token="eve")
    assert foreign == await doors.error(method, {**params, "taskId": "tk_" + "0" * 26}, token="eve")
    assert foreign["code"] == -32001
    assert len((await doors.result(LIST, {"taskId": task["id"]}))["configs"]) == 1


@pytest.mark.requirement("network.a2a.push")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://x.org/",
        "http://x.org/",
        "https://user:pass@x.org/",
        "https://x.org:22/",
        "x",
        "",
    ],
)
async def test_a_url_that_is_no_public_https_one_is_refused(doors: Doors, url: str) -> None:
    task = await doors.send()
    error = await doors.error(CREATE, {"taskId": task["id"], "url": url})
    assert (error["code"], error["data"][0]["fieldViolations"][0]["field"]) == (-32602, "url")
    params = {"message": said(), "configuration": {"taskPushNotificationConfig": {"url": url}}}
    assert (await doors.error("SendMessage", params))["code"] == -32602
    listed = await doors.result("ListTasks", {"historyLength": 5})
    assert (listed["totalSize"], len(listed["tasks"][0]["history"])) == (1, 1)  # an error has begun no task
    params["message"]["taskId"] = task["id"]
    assert (await doors.error("SendMessage", params))["code"] == -32602
    assert len((await doors.result("GetTask", {"id": task["id"]}))["history"]) == 1


@pytest.mark.requirement("network.a2a.foreign")
async def test_how_many_pushes_a_foreign_task_has_is_told_nobody(doors: Doors) -> None:
    task = await doors.send()
    for n in range(5):
        await doors.result(CREATE, {"taskId": task["id"], "url": URL, "id": f"c{n}"})
    wishes = {"taskPushNotificationConfig": {"url": URL}, "returnImmediately": True}
    errors = [
        await doors.error("SendMessage", {"message": said(taskId=each), "configuration": wishes}, token=token)
        for token, each in (("eve", task["id"]), ("eve", "tk_" + "0" * 26), ("ann", task["id"]))
    ]
    assert [each["code"] for each in errors] == [-32001, -32001, -32000]
    assert errors[0] == errors[1]
