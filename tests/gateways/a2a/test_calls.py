"""What all methods have in common: params, tools, whose a task is."""

import pytest

from broker.wire import a2a
from broker.wire.refusals import Refusal
from broker.wire.task import View
from gateways.a2a.calls import Call, own, read
from gateways.a2a.errors import Fault
from tests.support.a2a import Doors


def call(doors: Doors, key: str | None = None) -> Call:
    return Call(doors.bench.broker, doors.ann, str(doors.bob.agent), key)


def test_params_are_read_by_their_type_or_their_fault_has_a_place() -> None:
    assert read(b'{"id":"x"}', a2a.TaskId) == a2a.TaskId("x")
    fault = read(b'{"id":7}', a2a.TaskId)
    assert isinstance(fault, Fault)
    assert fault.data[0]["fieldViolations"][0]["field"] == "id"
    deep = read(b"[" * 100_000, a2a.TaskId)
    assert isinstance(deep, Fault)


@pytest.mark.requirement("network.a2a.gateway")
async def test_a_remembered_answer_is_the_task_it_was(doors: Doors) -> None:
    params = {"target_agent_id": doors.bob.agent, "text": "x", "idempotency_key": "k"}
    one = await call(doors).view("send_task", **params)
    two = await call(doors).view("send_task", **params)
    assert isinstance(two, View)
    assert one == two


@pytest.mark.requirement("network.a2a.foreign")
async def test_a_task_is_ones_own_where_both_ends_are(doors: Doors) -> None:
    task = await doors.send()
    assert isinstance(await own(call(doors), task["id"]), View)
    assert isinstance(await own(call(doors), "x" * 65), Fault)
    assert isinstance(await own(call(doors), "tk_none"), Refusal)
    elsewhere = Call(doors.bench.broker, doors.ann, str(doors.eve.agent))
    assert isinstance(await own(elsewhere, task["id"]), Fault)
