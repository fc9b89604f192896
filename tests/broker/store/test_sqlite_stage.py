"""What is kept in memory of the tables' newest state: bounded, and true after it was forgotten."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.store import sqlite_file, sqlite_stage
from broker.store.port import Append, Conflict, Deliver, Put, Unit
from broker.store.sqlite_stage import Stage
from broker.store.sqlite_tail import Run

AT = 1_782_345_678_000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = sqlite_file.connect(sqlite_file.prepare(tmp_path))
    yield made
    made.close()


def unit(n: int, version: int) -> Unit:
    put = Put("conv", "c", version, b"doc", (("open", "pk"), ("due", version)))
    return Unit(append=Append("a", n, b"row", AT), puts=(put,), deliver=(Deliver("pk:a", "env"),))


def write(stage: Stage, *units: Unit) -> list[object]:
    stage.begin()
    refused: list[object] = [stage.add(each) for each in units]
    stage.write()
    return refused


def test_units_of_one_batch_see_each_other(db: sqlite3.Connection) -> None:
    stage = Stage(db)
    assert write(stage, unit(0, 0), unit(1, 1), unit(2, 2)) == [None] * 3
    assert db.execute("SELECT n FROM text ORDER BY id").fetchall() == [(0,), (1,), (2,)]
    assert stage.tail.streams == {1: Run(1, [(1, "env", False), (2, "env", False), (3, "env", False)])}
    assert db.execute("SELECT version FROM document").fetchall() == [(3,)]
    assert db.execute("SELECT value FROM mark ORDER BY id").fetchall() == [("pk",), (2,)]


@pytest.mark.parametrize("how", ["kept", "forgotten", "too much", "anew"])
def test_the_next_batch_goes_on_where_the_last_one_ended(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    stage = Stage(db)
    write(stage, unit(0, 0))
    if how == "forgotten":
        stage.forget()
    elif how == "too much":
        monkeypatch.setattr(sqlite_stage, "KEPT", 0)
    elif how == "anew":
        stage = Stage(db)
    again = write(stage, unit(0, 1), unit(1, 0), unit(1, 1))
    assert [type(each) for each in again] == [Conflict, Conflict, type(None)]
    assert stage.tail.streams == {1: Run(1, [(1, "env", False), (2, "env", False)])}
    assert db.execute("SELECT id, value FROM mark ORDER BY id").fetchall() == [(1, "pk"), (3, 1)]
    assert db.execute("SELECT name FROM stream").fetchall() == [("pk:a",)]
    assert db.execute("SELECT kind, name FROM facet").fetchall() == [("conv", "open"), ("conv", "due")]


def test_memory_is_bounded(db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_stage, "KEPT", 10)
    stage = Stage(db)
    for number in range(40):
        write(stage, Unit(append=Append(f"conv:{number}", 0, b"", AT)))
    assert len(stage._logs) <= 12
