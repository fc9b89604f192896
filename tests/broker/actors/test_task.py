"""A task's actor: one commit a change, on three streams, found by its mark (network.md, A2A)."""

import json
from typing import Any

import pytest
import trio

from broker.actors.task import Forget, lane_name, read_task, task_stream
from broker.app import Caller
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import agree


@pytest.fixture
async def pair(bench: Bench) -> tuple[Caller, Caller]:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob, scopes=["task"])
    return ann, bob


async def begun(bench: Bench, ann: Caller, bob: Caller) -> str:
    made = await bench.call("send_task", ann, target_agent_id=bob.agent, text="x")
    return str(made["task"]["task_id"])


@pytest.mark.requirement("network.a2a.streams")
async def test_a_task_says_where_its_stream_stands(bench: Bench, pair: tuple[Caller, Caller]) -> None:
    ann, bob = pair
    task_id = await begun(bench, ann, bob)
    steps: tuple[tuple[str, Caller, dict[str, Any]], ...] = (
        ("update_task", bob, {"status": "working"}),
        ("update_task", bob, {"status": "input-required", "text": "?"}),
        ("send_task", ann, {"target_agent_id": bob.agent, "text": "so"}),
        ("complete_task", bob, {"outcome": "completed", "text": "done"}),
    )
    for name, caller, params in steps:
        assert code(await bench.call(name, caller, task_id=task_id, **params)) == "accepted"
        row = await read_task(bench.store, task_id)
        assert row is not None
        head = await bench.store.head(task_stream(task_id))
        assert (row.told, row.told) == (head.newest, len(await bench.store.events(task_stream(task_id), 0)))
    kinds = [each.kind for each in await bench.store.events(task_stream(task_id), 0)]
    assert kinds == ["task_status"] * 4 + ["task_artifact", "task_status"]


@pytest.mark.requirement("network.a2a.lists")
async def test_of_a_task_there_is_one_mark(bench: Bench, pair: tuple[Caller, Caller]) -> None:
    ann, bob = pair
    task_id = await begun(bench, ann, bob)
    lane = lane_name(str(ann.agent), str(bob.agent))
    for name, status in (("open", None), ("open", "working"), ("done", "completed")):
        if status == "working":
            await bench.call("update_task", bob, task_id=task_id, status=status)
        elif status is not None:
            await bench.call("complete_task", bob, task_id=task_id, outcome=status, text="x")
        found = {
            where: [
                json.loads(each.doc)["task_id"] for each in await bench.store.find("taskmark", where, lane)
            ]
            for where in ("lane", "open", "done")
        }
        assert found == {"lane": [task_id], "open": [], "done": [], name: [task_id]}


@pytest.mark.requirement("network.a2a.kept")
async def test_what_is_forgotten_leaves_nothing_and_what_is_open_stays(
    bench: Bench, pair: tuple[Caller, Caller]
) -> None:
    ann, bob = pair
    task_id = await begun(bench, ann, bob)
    house = bench.broker._services.house
    await bench.call("set_task_push", ann, task_id=task_id, url="https://x.org/", config_id="c1")
    await house.ask("task", task_id, Forget())
    assert await read_task(bench.store, task_id) is not None
    await bench.call("cancel_task", ann, task_id=task_id)
    await house.ask("task", task_id, Forget())
    assert await read_task(bench.store, task_id) is None
    await trio.testing.wait_all_tasks_blocked()
    assert await bench.store.get("push", f"{task_id}.c1") is None
    assert await bench.store.find("taskmark", "out", str(ann.agent)) == []
    assert await house.ask("task", task_id, Forget()) is None


@pytest.mark.requirement("network.a2a.answer")
async def test_of_many_answers_at_once_one_stands(bench: Bench, pair: tuple[Caller, Caller]) -> None:
    ann, bob = pair
    task_id = await begun(bench, ann, bob)
    answers: list[str] = []

    async def answer(text: str) -> None:
        made = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text=text)
        answers.append(code(made))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(answer, str(number))
    assert sorted(answers) == ["accepted"] + ["bad_request"] * 9
    row = await read_task(bench.store, task_id)
    assert row is not None
    assert len(row.artifacts) == 1
