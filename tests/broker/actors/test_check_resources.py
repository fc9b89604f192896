"""What a check finds in resources: nothing in those that the broker wrote, and each fault of the others."""

from pathlib import Path

import pytest
import trio

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.broker import open_bench
from tests.support.resources import publish
from tests.support.stores import spoiled

pytestmark = pytest.mark.requirement("resource.check")
ROW = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'resource'"
LIBRARY = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'library'"
CONTENT = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'content'"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with three resources, of which one was changed and one is gone."""
    directory = tmp_path_factory.mktemp("resources") / "data"
    trio.run(make, directory)
    return directory


async def make(directory: Path) -> None:
    store = await SqliteStore.open(directory, hop="inline")
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        await publish(bench, ann, title="Straße", content="text", tags=["fx"], access="private")
        changed = await publish(bench, ann)
        gone = await publish(bench, ann)
        await bench.call("update_resource", ann, resource_id=changed, title="New", content="other")
        await bench.call("delete_resource", ann, resource_id=gone)
    await store.aclose()


def found(path: Path) -> list[Fault]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [step for step in check_store(snapshot, Counts()) if isinstance(step, Fault)]


def test_resources_that_the_broker_wrote_hold(made: Path) -> None:
    assert found(spoiled(made)) == []
    assert found(spoiled(made, sums=True)) == []


@pytest.mark.parametrize(
    ("sql", "values", "words"),
    [
        (CONTENT, ("text", "tell"), "its content is not what was published"),
        (CONTENT, ("text", "texts"), "its content is not what was published"),
        (ROW, ('"text":2', '"text":1'), "its content is not what was published"),
        (ROW, ('"tags":["fx"]', '"tags":[]'), "is not found by what it says"),
        (ROW, ('"access":"private"', '"access":"public"'), "is not found by what it says"),
        (ROW, ('"title":"New"', '"title":"Old"'), "is found by other words than its own"),
        (ROW, ('"title":"New"', '"title":7'), "is no resource's"),
        (ROW, ('"resource_id":"rs_0', '"resource_id":"rs_1'), "says that it is"),
        (LIBRARY, ('"count":2', '"count":3'), "counts (3, 9)"),
        (LIBRARY, ('"bytes":9', '"bytes":8'), "counts (2, 8)"),
        (LIBRARY, ('"count":2', '"count":""'), "is no library's"),
        ("DELETE FROM document WHERE kind = 'content'", (), "has no content"),
        ("DELETE FROM document WHERE kind = 'library'", (), "has no library"),
        ("DELETE FROM document WHERE kind = 'resource'", (), "is the content of no resource"),
        ("UPDATE document SET searched = 1 WHERE kind = 'library'", (), "is not found by its words"),
        ("UPDATE search_content SET c2 = 'more'", (), "is not found by its words"),
        ("DELETE FROM search_content", (), "is not found by its words"),
        ("DELETE FROM document WHERE kind = 'resource'", (), "words lead to no document"),
        ("DELETE FROM search", (), "is found by other words than its own"),
        ("UPDATE search_data SET block = CAST('xxxxxxxx' AS BLOB)", (), "the index of words can't be read"),
    ],
)
def test_what_was_changed_is_named(made: Path, sql: str, values: tuple[str, ...], words: str) -> None:
    faults = [fault.message for fault in found(spoiled(made, sql, values=values))]
    assert any(words in message for message in faults), faults
