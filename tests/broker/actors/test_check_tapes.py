"""What a check finds in imported tapes: nothing in what the broker wrote, and each fault of the others."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.actors.check import Counts, check_store
from broker.actors.check_tapes import Log, check_tapes
from broker.actors.tapestore import read_imported
from broker.core.tapes.catalog import log_of
from broker.store import sqlite_backup, sqlite_check, sqlite_file
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.broker import open_bench, tuned
from tests.support.imports import bring, foreign, send
from tests.support.operators import OPERATOR
from tests.support.stores import spoiled

pytestmark = pytest.mark.requirement("catalog.check")
Change = Callable[[dict[str, Any]], object]
HERE, GONE, COMING = foreign(), foreign(seed=78), foreign(seed=79)


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A closed store: a tape that is here, one that was removed, one that is coming."""
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    async with open_bench(tuned(store={"min_free_bytes": 0}), store) as bench:
        for each in (HERE, GONE):
            await bring(bench, each)
        await bench.call("remove_tape", OPERATOR, ref=GONE.ref())
        await send(bench, COMING)
    await store.aclose()
    return tmp_path / "data"


def found(path: Path) -> list[Fault]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        faults = [step for step in check_store(snapshot, Counts()) if isinstance(step, Fault)]
        return [each for each in faults if each.where != "audit"]  # this broker's key was nowhere kept


async def test_what_the_broker_wrote_holds(data: Path) -> None:
    assert found(spoiled(data)) == []
    with sqlite_check.opened(spoiled(data)) as (snapshot, _):
        assert snapshot is not None
        logs = [log for log, _ in check_tapes(snapshot)]
    assert sorted(filter(None, logs)) == sorted([Log(log_of(each.ref(), 0), 1) for each in (HERE, COMING)])


def put(**members: Any) -> Change:
    return lambda text: text.update(members)


def damaged(data: Path, words: str, change: Change) -> list[str]:
    """What a check says of a copy in which the JSON of the tape's document with these words was changed."""
    path = spoiled(data)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        where = f"kind = 'tape' AND CAST(data AS TEXT) LIKE '%{words}%'"
        row, text = db.execute(f"SELECT id, data FROM document WHERE {where}").fetchone()
        row_of: dict[str, Any] = json.loads(text)
        change(row_of)
        db.execute("UPDATE document SET data = ? WHERE id = ?", (json.dumps(row_of).encode(), row))
    return [each.message for each in found(path)]


@pytest.mark.parametrize(
    ("words", "change", "said"),
    [
        ('"here"', put(state="lost"), "is no tape's"),
        ('"here"', put(ref="0" * 64), "says that it is"),
        ('"here"', put(ticks=1), "says something else of the tape"),
        ('"here"', put(parts=2), "has 1 parts, and its document says 2"),
        ('"here"', put(index=None), "is here, and has no index"),
        ('"here"', put(index=101), "has the index 101 of"),
        ('"here"', put(turn=3), "has 0 parts"),
        ('"importing"', put(due=1), "is not found by what it says"),
        ('"importing"', put(parts=0), "has 1 parts, and its document says 0"),
        ('"importing"', put(parts=7), "has 1 parts, and its document says 7"),
    ],
)
async def test_what_a_document_says_is_compared(data: Path, words: str, change: Change, said: str) -> None:
    assert any(message.startswith(said) for message in damaged(data, words, change))


async def test_bytes_that_are_not_those_of_the_ref_are_named(data: Path) -> None:
    content = HERE.content()
    path = spoiled(
        data, "UPDATE text SET data = ? WHERE data = ?", values=(content.replace(b"1", b"2", 1), content)
    )
    assert [(each.where, each.name, each.message) for each in found(path)] == [
        ("tape", HERE.ref(), "its bytes have another hash")
    ]


async def test_a_log_that_no_tape_has_is_named(data: Path) -> None:
    path = spoiled(data, "UPDATE log SET name = 'tape:other' WHERE name = ?", values=(log_of(HERE.ref(), 0),))
    assert any("no document of a tape" in each.message for each in found(path))


async def test_a_backup_holds_imported_tapes_and_a_restore_gives_them_back(data: Path) -> None:
    file, restored = data.with_name("backup"), data.with_name("restored")
    sqlite_backup.back_up(data, file, at=1_000, key=None, told=lambda *_: None)
    contents = sqlite_backup.contents(file)
    with sqlite_backup.restoring(file, restored, contents, now_ms=2_000, told=lambda *_: None):
        pass
    assert found(restored / sqlite_file.FILE) == []
    store = await SqliteStore.open(restored, hop="inline")
    tape = await read_imported(store, HERE.ref())
    await store.aclose()
    assert tape is not None
    assert tape.content() == HERE.content()
