"""What a check finds in channels: nothing in those that the broker wrote, and each fault of the others."""

from pathlib import Path

import pytest

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.broker import open_bench
from tests.support.channels import open_town
from tests.support.stores import spoiled

pytestmark = pytest.mark.requirement("channel.check")
ROW = "UPDATE text SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE CAST(data AS TEXT) LIKE '%message_id%'"
DOCUMENT = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB)"


@pytest.fixture
async def made(tmp_path: Path) -> Path:
    """A closed store with two channels."""
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    async with open_bench(store=store) as bench:
        town = await open_town(bench, 2, private=True)
        for at in range(3):
            await town.send(town.members[at % 2], f"line {at}")
        await town.call("leave_channel", town.members[0])
        await open_town(bench, 0, name="other")
    await store.aclose()
    return tmp_path / "data"


def found(path: Path) -> tuple[list[Fault], Counts]:
    counts = Counts()
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [step for step in check_store(snapshot, counts) if isinstance(step, Fault)], counts


async def test_channels_that_the_broker_wrote_hold(made: Path) -> None:
    faults, counts = found(spoiled(made))
    assert faults == []
    assert (counts.channels, counts.messages, counts.conversations, counts.envelopes) == (2, 3, 0, 0)


@pytest.mark.parametrize(
    ("sql", "values", "where", "words"),
    [
        (ROW, ('"seq":2', '"seq":7'), "channel", "is 7 of"),
        (ROW, ('"seq":2', '"seq":"2"'), "channel", "no message"),
        (ROW, ('"at":17', '"at":16'), "channel", "its time"),
        (DOCUMENT, ('"members":2', '"members":3'), "document", "its members say"),
        (DOCUMENT, ('"role":"owner"', '"role":"member"'), "document", "its members say"),
        (DOCUMENT, ('"name":"town"', '"name":"gown"'), "document", "is not claimed by it"),
        (DOCUMENT, ('"name":"town"', '"name":7'), "document", "is no channel's"),
    ],
)
async def test_what_was_changed_is_named(
    made: Path, sql: str, values: tuple[str, str], where: str, words: str
) -> None:
    faults, _ = found(spoiled(made, sql, values=values))
    assert any((each.where == where and words in each.message) for each in faults), faults


async def test_a_log_without_its_channel_is_named_and_so_are_members_without_one(made: Path) -> None:
    faults, _ = found(
        spoiled(
            made,
            "DELETE FROM document WHERE kind = 'channel' AND CAST(data AS TEXT) LIKE ?",
            values=('%"town"%',),
        )
    )
    words = " ".join(each.message for each in faults)
    assert "no document of a channel" in words
    assert "has members" in words
