"""A step of retention alone: how far it goes, what it looks at, and what it leaves."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.store import sqlite_file
from broker.store.port import Append, Deliver, Drop, Retention, Unit
from broker.store.sqlite_sweep import LONG, NEXT_LONG, TEXT, Sweep
from broker.store.sqlite_writer import Writer

AT = 1_782_345_678_000


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(sqlite_file.connect(sqlite_file.prepare(tmp_path)))
    yield made
    made.close()


def fill(writer: Writer, log: str, rows: int, at: int = AT) -> None:
    """A log whose rows are events of the stream of the same name."""
    units = [Unit(Append(log, n, b"row", at), (), (Deliver(log, "env"),)) for n in range(rows)]
    assert writer.run(units).outcomes == [None] * rows


def swept(writer: Writer, *, before: int = AT + 1, keep: int = 0, limit: int = 10_000) -> object:
    [outcome] = writer.run((Sweep(Retention(now=0, events_before=before, events_keep=keep), limit),)).outcomes
    return outcome


def left(db: sqlite3.Connection) -> list[tuple[str, int, int]]:
    """Name, `removed` and number of runs of each stream."""
    return db.execute(
        "SELECT name, removed, (SELECT count(*) FROM stream_run WHERE stream = stream.id) FROM stream"
    ).fetchall()


@pytest.mark.requirement("store.sweep")
def test_a_step_ends_within_a_run_and_the_next_one_goes_on_there(writer: Writer) -> None:
    fill(writer, "a", 130)
    assert swept(writer, limit=10) == 10
    assert left(writer.db) == [("a", 10, 3)]
    assert swept(writer, limit=100, keep=20) == 100
    assert left(writer.db) == [("a", 110, 2)]
    assert swept(writer, keep=20) == 0
    assert swept(writer) == 20
    assert left(writer.db) == [("a", 130, 0)]


@pytest.mark.requirement("store.no-scan")
@pytest.mark.parametrize("length", [LONG - 1, LONG, LONG + 70])
def test_with_much_to_keep_only_long_streams_are_looked_at(writer: Writer, length: int) -> None:
    fill(writer, "short", 80)
    fill(writer, "long", length)
    assert swept(writer, keep=LONG) == max(length - LONG, 0)
    plan = writer.db.execute(f"EXPLAIN QUERY PLAN {NEXT_LONG}", (0,)).fetchall()
    assert "INDEX stream_long" in plan[0][3]
    assert bool(writer.db.execute(NEXT_LONG, (0,)).fetchone()) is (length >= LONG)


def test_a_stream_whose_first_event_is_young_costs_one_look(writer: Writer) -> None:
    fill(writer, "a", 200, AT + 5)
    looked: list[str] = []
    writer.db.set_trace_callback(looked.append)
    assert swept(writer) == 0
    writer.db.set_trace_callback(None)
    assert sum(each.startswith(TEXT.split("?")[0]) for each in looked) == 1


def test_an_event_whose_text_was_dropped_goes_whatever_its_age(writer: Writer) -> None:
    fill(writer, "a", 3, AT + 5)
    assert writer.run((Unit(drop=Drop("a")),)).outcomes == [None]
    assert swept(writer) == 3
