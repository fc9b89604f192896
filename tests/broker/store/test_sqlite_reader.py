"""No statement of the embedded store looks through a large table: the planner says how it finds its rows."""

import re
import sqlite3
from pathlib import Path

import pytest

from broker.store import sqlite_file, sqlite_reader
from broker.store.port import Append, Deliver, Drop, Put, Remember, Retention, Unit
from broker.store.sqlite import SqliteStore
from broker.store.sqlite_reader import Reader
from broker.store.sqlite_tail import Tail

LARGE = ("log", "text", "log_run", "stream", "stream_run", "document", "mark", "remembered")
AT = 1_782_345_678_000


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements, with their values, that any connection opened in the test runs."""
    ran: list[str] = []
    connect = sqlite_file.connect

    def traced(path: Path, *, writer: bool = True) -> sqlite3.Connection:
        db = connect(path, writer=writer)
        db.set_trace_callback(ran.append)
        return db

    monkeypatch.setattr(sqlite_file, "connect", traced)
    return ran


def scans(db: sqlite3.Connection, statement: str) -> list[str]:
    """The steps of a statement's plan that look through a large table."""
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]
    return [step for step in plan if re.match(rf"SCAN ({'|'.join(LARGE)})\b", step)]


async def session(path: Path) -> None:
    """Everything that a store can be asked."""
    store = await SqliteStore.open(path, hop="inline")
    index = (("open", "pk"), ("due", 5))
    for n in range(2):
        await store.commit(
            Unit(
                append=Append("conv:a", n, b"row", AT),
                puts=(Put("conv", "a", n, b"doc", index, ("doc",)), Put("conv", f"b{n}", 0, b"doc", index)),
                deliver=(Deliver("pk:a", "ring"), Deliver("pk:b", "moving", data=b"{}")),
                remember=Remember("pk:a", f"k{n}", b"", b"", AT),
            )
        )
    await store.commit(Unit(puts=(Put("conv", "b1", 1, b"doc", ()), Put("conv", "a", 2, None))))
    await store.entries("conv:a")
    await store.tail("conv:a", 1)
    await store.get("conv", "a")
    await store.find("conv", "open", "pk")
    await store.find("conv", "open", "pk", newest=True)
    await store.due("conv", "due", 9)
    await store.search("conv", "doc", [("open", "pk")])
    await store.recall("pk:a", "k0")
    await store.head("pk:new")
    await store.events("pk:a", 0)
    for keep in (1, 1000):
        await store.sweep(Retention(now=AT + 1, events_before=AT + 1, events_keep=keep))
    await store.commit(Unit(drop=Drop("conv:a")))
    await store.aclose()


@pytest.mark.requirement("store.no-scan")
async def test_opening_reading_and_committing_find_their_rows_by_an_index(
    tmp_path: Path, statements: list[str]
) -> None:
    await session(tmp_path)
    del statements[:]
    await session_of_opening(tmp_path)
    opening = len(statements)
    (tmp_path / "more").mkdir()
    await session(tmp_path / "more")
    planned = [each for each in statements if re.match("SELECT|INSERT|UPDATE|DELETE", each)]
    assert len(planned) > 60 > opening > 4
    db = sqlite3.connect(tmp_path / sqlite_file.FILE)
    assert {each: found for each in planned if (found := scans(db, each))} == {}
    assert scans(db, "SELECT count(*) FROM text WHERE at = 1") == ["SCAN text"]
    db.close()


async def session_of_opening(path: Path) -> None:
    store = await SqliteStore.open(path, hop="inline")
    await store.aclose()


async def test_the_statements_of_the_list_read_in_order(tmp_path: Path) -> None:
    texts = [
        value
        for name, value in vars(sqlite_reader).items()
        if isinstance(value, str) and value.startswith("SELECT") and not name.startswith("_")
    ]
    assert len(texts) == 17
    db = sqlite_file.connect(sqlite_file.prepare(tmp_path))
    for text in texts:
        marks = ["x"] * text.count("?")
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", marks)]
        assert not any(re.match(rf"SCAN ({'|'.join(LARGE)})\b", step) for step in plan), (text, plan)
        assert not any("TEMP B-TREE" in step for step in plan), f"sorted, not read in order: {text} {plan}"
    db.close()


async def test_a_stream_that_nobody_wrote_to_has_a_head_all_the_same(tmp_path: Path) -> None:
    path = sqlite_file.prepare(tmp_path)
    writing = sqlite_file.connect(path)
    reader = Reader(sqlite_file.connect(path, writer=False), Tail(writing))
    head = reader.head("pk:a")
    assert (head.oldest, head.newest, len(head.epoch)) == (1, 0, 16)
    reader.close()
    writing.close()
