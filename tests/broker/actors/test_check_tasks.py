"""What a check finds in tasks: nothing in those that the broker wrote, and each fault of the others."""

from pathlib import Path

import pytest

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.broker import open_bench, tuned
from tests.support.pairs import agree
from tests.support.stores import spoiled

pytestmark = pytest.mark.requirement("network.a2a.check")
ROW = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'task'"
MARK = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'taskmark'"


@pytest.fixture
async def made(tmp_path: Path) -> Path:
    """A closed store with a task that waits, one that is asked about and one that is answered."""
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    async with open_bench(tuned(store={"min_free_bytes": 0}), store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob, scopes=["task"])
        ids = []
        for _ in range(3):
            made = await bench.call("send_task", ann, target_agent_id=bob.agent, text="x")
            ids.append(made["task"]["task_id"])
        await bench.call("update_task", bob, task_id=ids[1], status="input-required", text="?")
        await bench.call("complete_task", bob, task_id=ids[2], outcome="completed", text="done")
    await store.aclose()
    return tmp_path / "data"


def found(path: Path) -> list[Fault]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [step for step in check_store(snapshot, Counts()) if isinstance(step, Fault)]


async def test_tasks_that_the_broker_wrote_hold(made: Path) -> None:
    assert found(spoiled(made)) == []
    assert found(spoiled(made, sums=True)) == []


CASES = (
    (ROW, ('"state":"completed"', '"state":"nothing"'), "is no task's"),
    (ROW, ('"task_id":"tk_0', '"task_id":"tk_1'), "says that it is"),
    (ROW, ('"state":"completed"', '"state":"failed"'), "is not found by what it says"),
    (ROW, ('"due":1', '"due":2'), "is not due when it says"),
    (ROW, ('"revision":2', '"revision":3'), "has no mark"),
    (MARK, ('"state":"completed"', '"state":"failed"'), "is not found by what it says"),
    (MARK, ('"state":"completed"', '"state":7'), "is not found by what it says"),
    ("DELETE FROM document WHERE kind = ?", ("task",), "is the mark of no task"),
)


async def test_tasks_that_are_not_what_was_written_are_named(made: Path) -> None:
    for sql, values, words in CASES:
        faults = found(spoiled(made, sql, values=values))
        assert any(words in fault.message for fault in faults), (values, faults)
