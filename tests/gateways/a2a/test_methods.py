"""A2A's methods that answer at once (network.md, A2A)."""

from typing import Any

import pytest
import trio

from broker.app import Caller
from tests.support.a2a import Doors, open_doors, said
from tests.support.broker import open_bench, tuned

NOBODY = "tk_" + "0" * 26


@pytest.mark.requirement("network.a2a.gateway")
async def test_a_task_is_sent_answered_over_mcp_and_read(doors: Doors) -> None:
    task = await doors.send("what is 2 + 2?")
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    (message,) = task["history"]
    assert (message["messageId"], message["role"], message["parts"]) == (
        "m-1", "ROLE_USER", [{"text": "what is 2 + 2?"}],
    )  # fmt: skip
    assert (message["taskId"], message["contextId"]) == (task["id"], task["contextId"])
    await doors.complete(task["id"], "4")
    done = await doors.result("GetTask", {"id": task["id"]})
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    (artifact,) = done["artifacts"]
    assert artifact["parts"] == [{"text": "4"}]
    assert done["status"]["timestamp"].endswith("Z")


@pytest.mark.requirement("network.a2a.gateway")
async def test_names_as_the_definition_has_them_are_taken_too(doors: Doors) -> None:
    message = {"message_id": "m-1", "role": "ROLE_USER", "context_id": "cx-own", "task_id": None}
    part = {"data": {"snake_case": {"media_type": 1}}, "media_type": "application/json", "filename": None}
    params = {"message": {**message, "parts": [part]}, "configuration": {"return_immediately": True}}
    task = (await doors.result("SendMessage", params))["task"]
    assert task["contextId"] == "cx-own"
    assert task["history"][0]["parts"] == [
        {"data": {"snake_case": {"media_type": 1}}, "mediaType": "application/json"}
    ]


@pytest.mark.requirement("network.a2a.waits")
async def test_a_message_waits_until_its_task_is_over(doors: Doors, autojump_clock: Any) -> None:
    found: list[Any] = []

    async def send() -> None:
        found.append(await doors.send("slowly", wait=True))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.sleep(3)
        (waiting,) = (await doors.bench.call("list_tasks", doors.bob))["tasks"]
        await doors.update(waiting["task"]["task_id"], "working")
        await trio.sleep(3)
        assert found == []
        await doors.complete(waiting["task"]["task_id"])
    assert found[0]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert found[0]["artifacts"][0]["parts"] == [{"text": "done"}]


@pytest.mark.requirement("network.a2a.waits")
async def test_a_message_waits_for_a_question_and_at_most_so_long(doors: Doors, autojump_clock: Any) -> None:
    began = trio.current_time()
    task = await doors.send(wait=True)
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert trio.current_time() - began == pytest.approx(25, abs=0.5)
    await doors.update(task["id"], "input-required", "which?")
    asked = await doors.result("GetTask", {"id": task["id"]})
    assert asked["status"]["message"]["parts"] == [{"text": "which?"}]
    assert asked["status"]["message"]["role"] == "ROLE_AGENT"
    added = await doors.send("this", taskId=task["id"])
    assert added["status"]["state"] == "TASK_STATE_WORKING"
    assert len(added["history"]) == 3


@pytest.mark.requirement("network.a2a.waits")
async def test_a_wait_ends_with_the_right_by_which_it_waits(doors: Doors, autojump_clock: Any) -> None:
    statuses: list[int] = []

    async def send() -> None:
        statuses.append((await doors.rpc("SendMessage", {"message": said()})).status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.sleep(1)
        operator = Caller(operator=True)
        await doors.bench.call("suspend_agent", operator, agent_id=doors.ann.agent, reason="x")
        await trio.sleep(1)
        assert statuses == [403]


@pytest.mark.requirement("network.a2a.gateway")
async def test_history_is_as_long_as_asked_for(doors: Doors) -> None:
    task = await doors.send("1")
    for text in ("2", "3"):
        await doors.send(text, taskId=task["id"])
    for length, texts in ((None, ["1", "2", "3"]), (0, None), (2, ["2", "3"]), (2**31 - 1, ["1", "2", "3"])):
        params = {"id": task["id"]} | ({} if length is None else {"historyLength": length})
        shown = await doors.result("GetTask", params)
        history = shown.get("history")
        assert (history and [each["parts"][0]["text"] for each in history]) == texts
    error = await doors.error("GetTask", {"id": task["id"], "historyLength": -1})
    assert error["code"] == -32602


@pytest.mark.requirement("network.a2a.gateway")
async def test_lists_are_paged_filtered_and_the_last_changed_first(doors: Doors) -> None:
    ids = [(await doors.send(str(n), contextId="cx-a" if n else "cx-b"))["id"] for n in range(3)]
    await doors.complete(ids[1])
    first = await doors.result("ListTasks", {"pageSize": 2})
    assert [each["id"] for each in first["tasks"]] == [ids[1], ids[2]]
    assert (first["totalSize"], first["pageSize"]) == (3, 2)
    assert all("artifacts" not in each and "history" not in each for each in first["tasks"])
    rest = await doors.result("ListTasks", {"pageToken": first["nextPageToken"], "includeArtifacts": True})
    assert [each["id"] for each in rest["tasks"]] == [ids[0]]
    assert rest["nextPageToken"] == ""
    assert rest["tasks"][0]["artifacts"] == []
    for params, expected in (
        ({"contextId": "cx-b"}, [ids[0]]),
        ({"status": "TASK_STATE_COMPLETED", "includeArtifacts": True, "historyLength": 1}, [ids[1]]),
        ({"status": "TASK_STATE_AUTH_REQUIRED"}, []),
        ({"status": "TASK_STATE_UNSPECIFIED", "contextId": "cx-b"}, [ids[0]]),
        ({"status": "working"}, None),
        ({"statusTimestampAfter": "2099-01-01T00:00:00Z"}, []),
        ({"statusTimestampAfter": "2020-01-01T00:00:00.000Z", "contextId": "cx-a"}, [ids[1], ids[2]]),
        ({"statusTimestampAfter": "yesterday"}, None),
        ({"pageSize": 0}, None),
        ({"pageSize": 101}, None),
        ({"pageToken": "made-up"}, None),
        ({"historyLength": -5}, None),
    ):
        if expected is None:
            assert (await doors.error("ListTasks", params))["code"] == -32602
        else:
            assert [each["id"] for each in (await doors.result("ListTasks", params))["tasks"]] == expected
    assert (await doors.result("ListTasks", token="eve"))["tasks"] == []


@pytest.mark.requirement("network.a2a.gateway")
async def test_a_task_is_cancelled_once(doors: Doors) -> None:
    task = await doors.send()
    gone = await doors.result("CancelTask", {"id": task["id"]})
    assert gone["status"]["state"] == "TASK_STATE_CANCELED"
    again = await doors.error("CancelTask", {"id": task["id"]})
    assert (again["code"], again["data"][0]["reason"]) == (-32002, "TASK_NOT_CANCELABLE")
    more = await doors.error("SendMessage", {"message": said("more", taskId=task["id"])})
    assert (more["code"], more["data"][0]["reason"]) == (-32004, "UNSUPPORTED_OPERATION")


@pytest.mark.requirement("network.a2a.foreign")
@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
async def test_a_foreign_task_is_as_one_that_never_was(doors: Doors, method: str) -> None:
    task = await doors.send()
    foreign = await doors.error(method, {"id": task["id"]}, token="eve")
    missing = await doors.error(method, {"id": NOBODY}, token="eve")
    assert foreign == missing
    assert foreign["code"] == -32001
    # Its target reads it over its own tools; at its own endpoint it is nobody who gave it.
    assert await doors.error(method, {"id": task["id"]}, token="bob") == missing
    # And it is no task of another agent's.
    assert await doors.error(method, {"id": task["id"]}, to=str(doors.eve.agent)) == missing
    for strange in ("", "x" * 65):
        assert (await doors.error(method, {"id": strange}))["code"] == -32001


@pytest.mark.requirement("network.a2a.foreign")
async def test_who_has_not_agreed_cant_tell_an_agent_from_nobody(doors: Doors) -> None:
    params = {"message": said()}
    stranger = await doors.error("SendMessage", params, to=str(doors.eve.agent))
    nobody = await doors.error("SendMessage", params, to="ag_" + "0" * 26)
    assert stranger == nobody
    assert (stranger["code"], stranger["data"][0]["reason"]) == (-32000, "AGREEMENT_REQUIRED")
    foreign = await doors.send()
    added = await doors.error("SendMessage", {"message": said(taskId=foreign["id"])}, token="eve")
    assert added == await doors.error("SendMessage", {"message": said(taskId=NOBODY)}, token="eve")
    assert added["code"] == -32001


@pytest.mark.requirement("network.a2a.gateway")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "params"),
        ({"message": {}}, "message"),
        ({"message": said(parts=[])}, "message.parts"),
        ({"message": said(parts=[{}])}, "parts[0]"),
        ({"message": said(parts=[{"text": "a", "url": "b"}])}, "parts[0]"),
        ({"message": said(role="ROLE_AGENT")}, "message.role"),
        ({"message": said(contextId="a b")}, "message.contextId"),
        ({"message": said(text="x" * 20_000)}, "parts"),
        ({"message": said(), "configuration": {"historyLength": -1}}, "historyLength"),
    ],
)
async def test_what_is_wrong_with_a_message_is_said_with_its_place(
    doors: Doors, params: Any, field: str
) -> None:
    error = await doors.error("SendMessage", params)
    assert error["code"] == -32602
    (data,) = error["data"]
    assert data["@type"].endswith("BadRequest")
    assert data["fieldViolations"][0]["field"] == field


@pytest.mark.requirement("network.a2a.gateway")
async def test_a_task_in_another_context_is_refused(doors: Doors) -> None:
    task = await doors.send(contextId="cx-1")
    error = await doors.error("SendMessage", {"message": said(taskId=task["id"], contextId="cx-2")})
    assert (error["code"], error["data"][0]["fieldViolations"][0]["field"]) == (-32602, "message.contextId")


@pytest.mark.requirement("network.a2a.gateway")
async def test_an_idempotency_key_makes_one_task_of_two_requests(doors: Doors) -> None:
    params = {"message": said(), "configuration": {"returnImmediately": True}}
    one = await doors.result("SendMessage", params, idempotency_key='"k1"')
    two = await doors.result("SendMessage", params, idempotency_key='"k1"')
    assert one == two
    assert (await doors.result("SendMessage", params, idempotency_key="k1")) == one
    assert (await doors.result("SendMessage", params))["task"]["id"] != one["task"]["id"]


@pytest.mark.requirement("network.a2a.gateway")
@pytest.mark.parametrize("key", ["", " ", "a b", "k" * 129, "ü"])
async def test_what_is_no_idempotency_key_is_refused_and_begins_no_task(doors: Doors, key: str) -> None:
    """Whoever sends one would send the message again."""
    error = await doors.error("SendMessage", {"message": said()}, idempotency_key=key)
    assert (error["code"], error["data"][0]["fieldViolations"][0]["field"]) == (-32602, "Idempotency-Key")
    assert (await doors.result("ListTasks"))["totalSize"] == 0


@pytest.mark.requirement("network.a2a.errors")
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "SubscribeToTask"])
async def test_a_fault_of_ours_is_an_error_of_json_rpc_with_its_number(
    doors: Doors, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    task = await doors.send()
    monkeypatch.setattr(doors.bench.broker, "call", breaks)
    error = await doors.error(method, {"message": said(), "id": task["id"]})
    assert (error["code"], error["message"]) == (-32603, "internal error")
    assert error["data"][0]["requestId"]
    assert "secret" not in str(error)
    caplog.clear()


@pytest.mark.requirement("network.a2a.gateway")
async def test_there_is_no_extended_card_and_no_other_method(doors: Doors) -> None:
    assert (await doors.error("GetExtendedAgentCard"))["code"] == -32004
    assert (await doors.error("message/send"))["code"] == -32601


@pytest.mark.requirement("network.a2a.direct")
async def test_an_agent_with_an_endpoint_of_its_own_is_given_nothing_here(doors: Doors) -> None:
    kept = await doors.send()
    await doors.bench.call("set_a2a_endpoint", doors.bob, url="https://bob.a2a-agents.org/a2a")
    error = await doors.error("SendMessage", {"message": said()})
    assert (error["code"], error["data"][0]["metadata"]) == (
        -32004, {"url": "https://bob.a2a-agents.org/a2a"},
    )  # fmt: skip
    await doors.complete(kept["id"])
    assert (await doors.result("GetTask", {"id": kept["id"]}))["status"]["state"] == "TASK_STATE_COMPLETED"
    await doors.bench.call("delete_a2a_endpoint", doors.bob)
    assert (await doors.send())["status"]["state"] == "TASK_STATE_SUBMITTED"


@pytest.mark.requirement("network.a2a.limits")
async def test_what_the_broker_has_no_room_for_is_an_error_with_its_reason() -> None:
    async with open_bench(tuned(network={"tasks_open": 1})) as bench:
        doors = await open_doors(bench)
        await doors.send()
        error = await doors.error("SendMessage", {"message": said()})
        assert error["code"] == -32000
        assert error["data"][0]["metadata"]["reason"] == "tasks"
        assert error["data"][0]["domain"] == "turret"
