"""What a check finds in pushes: nothing in those that the broker wrote, and each fault of the others."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.broker import open_bench, tuned
from tests.support.stores import spoiled
from tests.support.webhooks import Receiver, happens, registered, settled

pytestmark = pytest.mark.requirement("webhook.check")
ROW = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'push'"


@pytest.fixture
async def made(tmp_path: Path, autojump_clock: MockClock) -> Path:
    """A closed store with a webhook that has taken something, and one that is disabled."""
    del autojump_clock
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    receiver = Receiver()
    async with open_bench(tuned(store={"min_free_bytes": 0}), store, courier=receiver) as bench:
        for name, status in (("Ann", 200), ("Bob", 410)):
            agent, receiver.answer = await make_agent(bench, name), status
            await registered(bench, agent)
            await happens(bench, agent, 1)
            await settled(bench)
    await store.aclose()
    return tmp_path / "data"


def found(path: Path) -> list[Fault]:
    """Those of documents: the audit's rows are sealed by a key that the store has none of."""
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        faults = [step for step in check_store(snapshot, Counts()) if isinstance(step, Fault)]
    return [fault for fault in faults if fault.where == "document"]


async def test_pushes_that_the_broker_wrote_hold(made: Path) -> None:
    assert found(spoiled(made)) == []
    assert found(spoiled(made, sums=True)) == []


@pytest.mark.parametrize(
    ("change", "said", "count"),
    [
        (('"form":"webhook"', '"form":"letter"'), "is no push's", 2),
        (('"push_id":"ag_0', '"push_id":"ag_1'), "says that it is", 2),
        (('"agent_id":"ag_0', '"agent_id":"ag_1'), "is not found by what it says", 2),
        (('"disabled":', '"disable_":'), "is not found by what it says", 1),
    ],
)
async def test_each_fault_of_the_others_is_named(
    made: Path, change: tuple[str, str], said: str, count: int
) -> None:
    faults = found(spoiled(made, ROW, values=change))
    assert len([fault for fault in faults if said in fault.message]) == len(faults) == count
