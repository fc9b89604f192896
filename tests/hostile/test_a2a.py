"""Whatever a client sends to A2A's door, it gets an answer of JSON-RPC, and never a fault of ours (network.md, A2A)."""

import json
import random
from typing import Any

import pytest

from gateways.a2a.card import PREFIX
from tests.support.a2a import Doors, open_doors, said
from tests.support.broker import Bench

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**53, 2**70, 1.5, 1e308, "", " ", "x" * 70, "\x00", "\u2028", "ag_", "tk_x", "null",
    [], [[]], {}, {"": {}}, {"text": "x"}, {"__proto__": 1}, [{"text": "x"}] * 40, "2026-13-99T99:99:99Z",
    "0001-01-01T00:00:00Z", "TASK_STATE_WORKING", "lane-1", "https://[::1", "https://x.org:99999/",
)  # fmt: skip
SENT = ("SendMessage", "SendStreamingMessage")


def spoiled(value: Any, chance: random.Random) -> Any:
    """The same with something odd in it, somewhere."""
    if chance.random() < 0.12:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {name: spoiled(each, chance) for name, each in value.items() if chance.random() > 0.05}
        return kept | (
            {chance.choice(list(value) or ["x"]) + "_y": chance.choice(ODD)} if chance.random() < 0.1 else {}
        )
    if isinstance(value, list):
        return [spoiled(each, chance) for each in value]
    return value


def params(method: str, task_id: str) -> dict[str, Any]:
    """Good ones."""
    push = {
        "url": "https://x.org/",
        "id": "c1",
        "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "c"},
    }
    part = {"data": {"a": 1}, "mediaType": "application/json", "filename": "f", "metadata": {"k": 1}}
    message = {
        **said(),
        "taskId": task_id,
        "contextId": "cx-1",
        "metadata": {},
        "extensions": [],
        "parts": [part],
    }
    wishes = {"historyLength": 3, "returnImmediately": True, "taskPushNotificationConfig": push}
    if method in SENT:
        return {"message": message, "configuration": wishes, "metadata": {}, "tenant": ""}
    if method == "ListTasks":
        return {
            "contextId": "cx-1", "status": "TASK_STATE_WORKING", "pageSize": 5, "pageToken": "", "historyLength": 1,
            "statusTimestampAfter": "2026-01-01T00:00:00Z", "includeArtifacts": True,
        }  # fmt: skip
    if "Push" in method:
        return {"taskId": task_id, "pageSize": 5, "pageToken": "", **push}
    return {"id": task_id, "historyLength": 2, "metadata": {}, "tenant": None}


METHODS = (
    *SENT,
    *("GetTask", "ListTasks", "CancelTask", "SubscribeToTask", "GetExtendedAgentCard"),
    *("CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"),
    *("ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"),
)


async def answered(doors: Doors, method: str, given: Any) -> Any:
    """What the door says; of a stream the first event. None where it could not even be sent."""
    if method in ("SendStreamingMessage", "SubscribeToTask"):
        async with doors.streaming(method, given) as stream:
            stream.leave.set()
            await stream.over.wait()
            if stream.answer.headers["content-type"].startswith("text/event-stream"):
                return {"result": {}}
        return stream.answer.json
    answer = await doors.rpc(method, given)
    assert answer.status == 200, (method, given, answer.body)
    return answer.json


@pytest.mark.requirement("network.a2a.errors")
@pytest.mark.parametrize("seed", range(2))
async def test_odd_params_are_answered_by_an_error_and_not_by_a_fault(
    bench: Bench, seed: int, autojump_clock: Any
) -> None:
    chance, doors = random.Random(seed), await open_doors(bench)
    codes: dict[int, int] = {}
    task: Any = None
    for number in range(150):
        method = METHODS[number % len(METHODS)]
        task = await doors.send(contextId="cx-1") if number % 20 == 0 else task
        given = spoiled(params(method, task["id"]), chance)
        shown = await answered(doors, method, given)
        assert ("result" in shown) != ("error" in shown), (method, given, shown)
        code = shown.get("error", {}).get("code", 0)
        assert code != -32603, (method, given)
        codes[code] = codes.get(code, 0) + 1
    assert codes[0] > 10
    assert codes[-32602] > 10


@pytest.mark.requirement("network.a2a.errors")
@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":'
        + b'{"a":' * 3_000
        + b"1"
        + b"}" * 3_000
        + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a","id":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":null}',
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask\\u0000","params":{}}',
        b'{"jsonrpc":"2.0","id":1e3,"method":"GetTask","params":{}}',
        b"",
        b"null",
    ],
)
async def test_odd_texts_are_answered_by_an_error_too(bench: Bench, body: bytes) -> None:
    doors = await open_doors(bench)
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    answer = await doors.ask(f"{PREFIX}{doors.bob.agent}", "POST", body, "ann", **headers)
    assert answer.status == 200
    assert answer.json["error"]["code"] in (-32700, -32600, -32601, -32602, -32001), answer.json
    json.dumps(answer.json)
