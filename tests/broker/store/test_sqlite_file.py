"""The data directory: who may open it, what it is judged by, and how it comes to be."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.store import sqlite_file
from broker.store.port import InUse, NotAStore, Retention, SchemaTooNew
from broker.store.sqlite import SqliteStore
from tests.broker.store.units import AT, refused, row


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.requirement("store.modes")
@pytest.mark.usefixtures("no_umask")
def test_what_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    os.close(sqlite_file.lock(directory))
    with closing(sqlite_file.connect(sqlite_file.prepare(directory))) as db:
        db.execute("INSERT INTO log (name) VALUES ('a')")
        modes = {path.name: mode(path) for path in directory.iterdir()}
    assert modes == dict.fromkeys(("turret.db", "turret.db-wal", "turret.db-shm", "turret.lock"), 0o600)
    assert mode(directory) == 0o700


@pytest.mark.requirement("store.modes")
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = sqlite_file.prepare(tmp_path)
    path.chmod(0o644)
    sqlite_file.prepare(tmp_path)
    assert mode(path) == 0o600


@pytest.mark.requirement("store.one-process")
def test_a_lock_is_held_by_one_and_let_go_with_its_process(tmp_path: Path) -> None:
    held = sqlite_file.lock(tmp_path)
    with pytest.raises(InUse, match="in use by another Turret"):
        sqlite_file.lock(tmp_path)
    os.close(held)
    program = (
        "import os, sys; from pathlib import Path; from broker.store import sqlite_file\n"
        "sqlite_file.lock(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        check=False,
        timeout=30,
    )
    assert ran.returncode == -9
    os.close(sqlite_file.lock(tmp_path))


def test_a_store_says_what_it_is(tmp_path: Path) -> None:
    path = sqlite_file.prepare(tmp_path)
    assert sqlite_file.prepare(tmp_path) == path
    with closing(sqlite_file.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (sqlite_file.APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (7,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["turret.db"]


@pytest.mark.requirement("store.schema")
def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = sqlite_file.prepare(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 8")
    path.chmod(0o640)
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="schema 8; this Turret knows up to 7"):
        sqlite_file.prepare(tmp_path)
    assert path.read_bytes() == before
    assert mode(path) == 0o640
    assert [item.name for item in tmp_path.iterdir()] == ["turret.db"]


@pytest.mark.requirement("store.schema")
@pytest.mark.parametrize("what", ["text", "empty", "another's database"])
def test_what_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path, what: str) -> None:
    path = tmp_path / sqlite_file.FILE
    path.write_text("" if what == "empty" else "a letter to my aunt" * 20)
    if what == "another's database":
        path.unlink()
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE entry (id)")
            db.execute("PRAGMA application_id = 1")
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="not a Turret store"):
        sqlite_file.prepare(tmp_path)
    assert path.read_bytes() == before


def test_an_sqlite_that_is_too_old_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
    with pytest.raises(sqlite3.NotSupportedError, match="too old"):
        sqlite_file.prepare(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_being_made_when_the_lights_went_out_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "turret.new").write_bytes(b"SQLite format 3\0half")
    path = sqlite_file.prepare(tmp_path)
    with closing(sqlite_file.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM text").fetchone() == (0,)


def test_an_older_store_is_brought_up_to_date_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sqlite_file.prepare(tmp_path)
    with closing(sqlite_file.connect(path)) as db:
        db.execute("INSERT INTO log (name) VALUES ('conv:a')")
    steps = [*sqlite_file.schema(), (8, "ALTER TABLE log ADD COLUMN colour TEXT;")]
    monkeypatch.setattr(sqlite_file, "schema", lambda: iter(steps))
    sqlite_file.prepare(tmp_path)
    with closing(sqlite_file.connect(path)) as db:
        assert db.execute("SELECT name, colour FROM log").fetchall() == [("conv:a", None)]
        assert db.execute("PRAGMA user_version").fetchone() == (8,)
    monkeypatch.undo()
    with pytest.raises(SchemaTooNew):
        sqlite_file.prepare(tmp_path)


@pytest.mark.requirement("store.schema")
def test_a_store_of_the_first_schema_gets_a_secret_and_loses_streams_that_nobody_wrote_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list(sqlite_file.schema())
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "schema", lambda: iter(steps[:1]))
        path = sqlite_file.prepare(tmp_path)
    with closing(sqlite_file.connect(path)) as db:
        streams = [(1, "pk:silent", 0), (2, "pk:swept", 3), (3, "pk:a", 0)]
        db.executemany("INSERT INTO stream (id, name, epoch, removed) VALUES (?, ?, 'e', ?)", streams)
        db.execute("INSERT INTO event (stream, position, kind, own, at) VALUES (3, 1, 'env', 0, 1)")
    sqlite_file.prepare(tmp_path)
    with closing(sqlite_file.connect(path)) as db:
        assert db.execute("SELECT id, name, removed FROM stream").fetchall() == streams[1:]
        assert db.execute("SELECT stream, last FROM stream_run").fetchall() == [(3, 1)]
        assert db.execute("SELECT length(value) FROM meta WHERE name = 'secret'").fetchall() == [(32,)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def of_schema_2(path: Path, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A store as the second schema kept it, open."""
    steps = list(sqlite_file.schema())
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "schema", lambda: iter(steps[:2]))
        return sqlite_file.connect(sqlite_file.prepare(path))


@pytest.mark.requirement("store.schema")
async def test_a_store_of_the_second_schema_keeps_rows_events_positions_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(of_schema_2(tmp_path, monkeypatch)) as db:
        db.execute("BEGIN")
        db.executemany(
            "INSERT INTO log (id, name, dropped) VALUES (?, ?, ?)", [(1, "a", 0), (2, "b", 1), (3, "c", 0)]
        )
        streams = [(1, "pk:a", 0), (2, "pk:swept", 30), (3, "pk:gone", 7)]
        db.executemany("INSERT INTO stream (id, name, removed) VALUES (?, ?, ?)", streams)
        entries = [(2 * n + 1, 1, n, AT + n, b"a/%d" % n) for n in range(150)] + [(302, 3, 0, AT, b"c/0")]
        db.executemany("INSERT INTO entry (id, log, n, at, data) VALUES (?, ?, ?, ?, ?)", entries)
        events = [
            (1, n + 1, "env", n % 2, AT + n, 2 * n + 1 if n % 3 else None, None if n % 3 else b"own/%d" % n)
            for n in range(150)
        ]
        events += [
            (2, position, "env", 1, AT, 400, None) for position in range(31, 41)
        ]  # their log was dropped
        events.append((2, 41, "end", 0, AT, 302, None))
        sql = "INSERT INTO event (stream, position, kind, own, at, entry, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
        db.executemany(sql, events)
        db.execute("UPDATE sqlite_sequence SET seq = 500 WHERE name = 'entry'")
        db.execute("COMMIT")
    for _ in range(3):
        store = SqliteStore(tmp_path, hop="inline")
        assert [entry.data for entry in await store.entries("a", 60, 10)] == [
            b"a/%d" % n for n in range(61, 71)
        ]
        assert [entry.n for entry in await store.tail("a", 70, 10)] == list(range(69, 59, -1))
        assert [(entry.at, entry.data) for entry in await store.entries("c")] == [(AT, b"c/0")]
        told = await store.events("pk:a", 60, 6)
        assert [(event.position, event.own) for event in told] == [(n, n % 2 == 0) for n in range(61, 67)]
        assert [event.data for event in told[:4]] == [b"own/60", b"a/61", b"a/62", b"own/63"]
        assert [event.at for event in told[:2]] == [AT + 60, AT + 61]
        assert [event.position for event in await store.events("pk:swept", 0)] == [41]
        heads = [await store.head(name) for name in ("pk:a", "pk:swept", "pk:gone")]
        assert [(head.oldest, head.newest) for head in heads] == [(1, 150), (31, 41), (8, 7)]
        assert await refused(store, row("b", 0)) == "drop"
        assert await refused(store, row("a", 149)) == "append"
        await store.aclose()
    store = SqliteStore(tmp_path, hop="inline")
    await store.commit(row("a", 150, "pk:a", "pk:gone"))
    ids = store.writer.db.execute("SELECT max(id) FROM text").fetchone()
    assert ids == (551,), "beyond every number that was ever given, and those of the events' own texts"
    assert [event.position for event in await store.events("pk:gone", 0)] == [8]
    assert store.writer.db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert await store.sweep(Retention(now=0, events_before=AT + 90, events_keep=1)) == 90 + 10
    await store.aclose()


def test_a_reading_connection_can_not_write(tmp_path: Path) -> None:
    path = sqlite_file.prepare(tmp_path)
    with (
        closing(sqlite_file.connect(path, writer=False)) as db,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        db.execute("INSERT INTO log (name) VALUES ('a')")


def test_a_directory_with_strange_characters_in_its_name_is_a_directory(tmp_path: Path) -> None:
    directory = tmp_path / "50% ?mode=memory #1 ü"
    directory.mkdir()
    path = sqlite_file.prepare(directory)
    with closing(sqlite_file.connect(path)) as db:
        db.execute("INSERT INTO log (name) VALUES ('a')")
    assert path.stat().st_size > 0
