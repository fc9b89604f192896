"""The check of the file itself: schema, pages, streams; nothing is written, also beside a broker."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.store import sqlite_check, sqlite_file
from broker.store.port import Drop, Fault, NotAStore, SchemaTooNew, Unit
from broker.store.sqlite import SqliteStore
from tests.broker.store.units import row
from tests.support.stores import dealt, spoiled


def schema_faults(path: Path) -> list[tuple[str, str]]:
    with sqlite_check.opened(path) as (_, faults):
        return [(fault.name, fault.message) for fault in faults]


def stream_faults(path: Path) -> list[Fault]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [step for step in snapshot.streams() if isinstance(step, Fault)]


def page_faults(path: Path) -> list[str]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [fault.message for fault in snapshot.pages()]


@pytest.mark.requirement("store.check-schema")
@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("DROP INDEX mark_value", ("mark_value", "the index is missing")),
        ("CREATE TABLE mine (id)", ("mine", "the table is none of this schema")),
        ("ALTER TABLE remembered ADD COLUMN more", ("remembered", "the table is not as this schema has it")),
    ],
)
async def test_a_schema_that_is_not_ours_is_named(
    sql: str, fault: tuple[str, str], tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")
    assert schema_faults(spoiled(tmp_path / "data")) == []
    assert schema_faults(spoiled(tmp_path / "data", sql)) == [fault]


@pytest.mark.requirement("store.check-schema")
async def test_an_older_schema_is_said_and_a_newer_one_or_no_store_refused(
    tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")
    [(name, message)] = schema_faults(spoiled(tmp_path / "data", "PRAGMA user_version = 2"))
    newest = max(version for version, _ in sqlite_file.schema())
    assert (name, message.split(":")[0]) == ("version", f"schema 2 is older than this Turret's {newest}")
    with pytest.raises(SchemaTooNew):
        schema_faults(spoiled(tmp_path / "data", "PRAGMA user_version = 99"))
    with pytest.raises(NotAStore):
        schema_faults(spoiled(tmp_path / "data", "PRAGMA application_id = 7"))


@pytest.mark.requirement("store.check-schema")
async def test_what_a_comment_in_the_schema_says_is_no_difference(
    tmp_path: Path, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dealt(tmp_path / "data")
    steps = [(version, text.replace("-- ", "-- by the way: ")) for version, text in sqlite_file.schema()]
    monkeypatch.setattr(sqlite_file, "schema", lambda: iter(steps))
    assert schema_faults(spoiled(tmp_path / "data")) == []


@pytest.mark.requirement("store.check-schema")
async def test_a_store_that_lost_its_secret_is_a_fault(tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    [(_, message)] = schema_faults(spoiled(tmp_path / "data", "DELETE FROM meta WHERE name = 'secret'"))
    assert "secret" in message


@pytest.mark.requirement("store.check-pages")
async def test_each_damaged_page_is_named(tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data")
    assert page_faults(path) == []
    with closing(sqlite3.connect(path)) as db:
        [(page,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'document_name'").fetchall()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 64)
    faults = page_faults(path)
    assert any(f"page {page}" in message.lower() for message in faults), faults


@pytest.mark.requirement("store.check-streams")
@pytest.mark.parametrize(
    ("sql", "where", "message"),
    [
        ("UPDATE stream_run SET last = last + 1", 1, "1 is the oldest kept"),
        ("UPDATE stream_run SET events = replace(events, 'env', 'end')", None, "belongs to another event"),
        ("UPDATE stream_run SET events = replace(events, 'true', 'false')", None, "belongs to another event"),
        ("DELETE FROM text WHERE id = 1", 1, "text is missing"),
        ("DELETE FROM stream WHERE id = 1", None, "runs of events belong to no stream"),
        ("UPDATE stream_run SET events = '['", None, "can't be read"),
    ],
)
async def test_a_stream_with_a_gap_or_with_others_texts_is_named(
    sql: str, where: int | None, message: str, tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")
    assert stream_faults(spoiled(tmp_path / "data")) == []
    faults = stream_faults(spoiled(tmp_path / "data", sql))
    assert faults
    assert message in faults[0].message, faults
    assert where is None or faults[0].n == where


@pytest.mark.requirement("store.check-streams")
async def test_a_gap_between_two_runs_is_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    for n in range(130):
        await store.commit(row("conv:a", n, "pk:a"))
    await store.aclose()
    gap = "DELETE FROM stream_run WHERE last = 128"
    [fault] = stream_faults(spoiled(tmp_path / "data", gap))
    assert (fault.name, fault.n) == ("pk:a", 65)


@pytest.mark.requirement("store.check-streams")
async def test_events_whose_text_was_dropped_are_no_fault_and_swept_ones_are_none(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    for n in range(3):
        await store.commit(row("conv:a", n, "pk:a"))
        await store.commit(row("conv:b", n, "pk:a"))
    await store.commit(Unit(drop=Drop("conv:a")))
    await store.aclose()
    assert stream_faults(spoiled(tmp_path / "data")) == []
    assert stream_faults(spoiled(tmp_path / "data", "UPDATE stream SET removed = 2")) == []


@pytest.mark.requirement("store.check")
async def test_a_running_store_is_looked_at_as_it_is_with_what_is_in_no_run_yet(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    for n in range(70):
        await store.commit(row("conv:a", n, "pk:a", "pk:b"))
    path = tmp_path / "data" / sqlite_file.FILE
    with sqlite_check.opened(path) as (snapshot, faults):
        assert snapshot is not None
        assert faults == []
        await store.commit(row("conv:a", 70, "pk:a"))
        assert [entry.n for entry in snapshot.rows("conv:a")] == list(range(70))
        assert snapshot.count_rows() == 70
        assert list(snapshot.streams()) == [70, 70]
        assert snapshot.size() == 210
    await store.commit(row("conv:a", 71, "pk:a"))
    await store.aclose()


@pytest.mark.requirement("store.check")
async def test_a_check_writes_nothing(tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data")
    before = path.read_bytes()
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            snapshot._db.execute("DELETE FROM text")
    assert path.read_bytes() == before


@pytest.mark.requirement("store.check-sums")
@pytest.mark.parametrize(
    ("sql", "where", "n"),
    [
        ("UPDATE text SET data = CAST(replace(data, 'RFQ', 'RFP') AS BLOB) WHERE n = 2", "text", 2),
        ("UPDATE text SET told = CAST(replace(told, 'env', 'end') AS BLOB) WHERE n = 1", "text", 1),
        (
            "UPDATE document SET data = CAST(replace(data, 'ALFA', 'ALFB') AS BLOB) WHERE kind = 'desk'",
            "document",
            None,
        ),
        (
            "UPDATE remembered SET outcome = CAST(replace(outcome, 'ALFA', 'ALFB') AS BLOB)",
            "answer",
            None,
        ),
    ],
)
async def test_what_is_not_as_it_was_written_is_named(
    sql: str, where: str, n: int | None, tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")

    def found(path: Path) -> list[Fault]:
        with sqlite_check.opened(path) as (snapshot, _):
            assert snapshot is not None
            return list(snapshot.sums())

    assert found(spoiled(tmp_path / "data", sums=True)) == []
    faults = found(spoiled(tmp_path / "data", sql, sums=True))
    assert faults
    assert {(fault.where, fault.n) for fault in faults} == {(where, n)}
    assert found(spoiled(tmp_path / "data", sql)) == []  # an upgrade has left some rows without
