"""Checkpoints beside the writer: the log begins anew, commits go on meanwhile, closing waits for what is under way."""

import sqlite3
import threading
from pathlib import Path

import pytest
import trio
import trio.lowlevel
import trio.testing

from broker.store import sqlite, sqlite_checkpoint, sqlite_file
from broker.store.port import Append, Unit
from broker.store.sqlite import SqliteStore
from broker.store.sqlite_checkpoint import Checkpointer
from tests.broker.store.units import AT, row


def large(n: int) -> Unit:
    return Unit(append=Append("conv:large", n, b"x" * 4000, AT))


def log_pages(directory: Path) -> int:
    return (directory / "turret.db-wal").stat().st_size // 4096


@pytest.mark.requirement("store.checkpoint")
@pytest.mark.parametrize("hop", ["thread", "inline"])
async def test_the_log_begins_anew_while_commits_follow_on_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hop: str
) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 40)
    store = SqliteStore(tmp_path, hop=hop)  # type: ignore[arg-type]  # both are literals
    largest = 0
    for n in range(400):
        await store.commit(large(n))
        largest = max(largest, log_pages(tmp_path))
        await trio.testing.wait_all_tasks_blocked()
    assert largest < 400, "it holds less than a third of what was written"
    assert len(await store.entries("conv:large", limit=1000)) == 400
    await store.aclose()


@pytest.mark.requirement("store.checkpoint")
async def test_an_idle_store_moves_the_rest_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 10)
    go, checkpoint = threading.Event(), sqlite_file.checkpoint

    def late(db: sqlite3.Connection) -> int:
        go.wait(5)
        return checkpoint(db)

    monkeypatch.setattr(sqlite_file, "checkpoint", late)
    store = SqliteStore(tmp_path)
    for n in range(4):
        await store.commit(large(n))
    go.set()
    with trio.fail_after(5):
        while store.writer.pages:
            await trio.lowlevel.checkpoint()
    before = log_pages(tmp_path)
    await store.commit(row("conv:a", 0))
    assert log_pages(tmp_path) == before, "the log was begun anew"
    await store.aclose()


@pytest.mark.requirement("store.checkpoint")
async def test_commits_go_on_during_a_checkpoint_and_closing_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 10)
    go, begun, checkpoint = threading.Event(), threading.Event(), sqlite_file.checkpoint

    def slow(db: sqlite3.Connection) -> int:
        begun.set()
        go.wait(5)
        return checkpoint(db)

    monkeypatch.setattr(sqlite_file, "checkpoint", slow)
    store = SqliteStore(tmp_path / "data")
    with trio.fail_after(5):
        rows = 0
        while not begun.is_set():
            await store.commit(large(rows))
            rows += 1
        await store.commit(large(rows))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.aclose)
            await trio.testing.wait_all_tasks_blocked()
            go.set()
    again = SqliteStore(tmp_path / "data")
    assert len(await again.entries("conv:large", limit=10_000)) == rows + 1
    await again.aclose()


async def test_a_checkpoint_that_fails_is_over_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite_file, "checkpoint", fail)
    monkeypatch.setattr(sqlite, "PAGES", 10)
    checkpointer = Checkpointer(sqlite_file.connect(sqlite_file.prepare(tmp_path)))
    done, closed = trio.Event(), trio.Event()
    checkpointer.start(done.set)
    with trio.fail_after(5):
        await done.wait()
        assert checkpointer.busy
        checkpointer.close(closed.set)
        await closed.wait()
        for hop in ("thread", "inline"):
            store = SqliteStore(tmp_path / hop, hop=hop)  # type: ignore[arg-type]  # both are literals
            for n in range(20):
                await store.commit(large(n))
            await store.aclose()


def test_a_checkpoint_says_what_it_could_not_move(tmp_path: Path) -> None:
    path = sqlite_file.prepare(tmp_path)
    db, reader = sqlite_file.connect(path), sqlite_file.connect(path, writer=False)
    db.execute("INSERT INTO log (name) VALUES ('a')")
    reading = reader.execute("SELECT 1 FROM log UNION ALL SELECT 2 FROM log")
    reading.fetchone()
    db.execute("INSERT INTO log (name) VALUES ('b')")
    assert sqlite_file.checkpoint(db) > 0
    reading.close()
    assert sqlite_file.checkpoint(db) == 0
    assert sqlite_checkpoint.PAGES < sqlite_file.WAL_PAGES
    db.close()
    reader.close()


@pytest.mark.requirement("observe.store")
@pytest.mark.parametrize("hop", ["thread", "inline"])
async def test_commits_and_checkpoints_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hop: str
) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 10)
    store = SqliteStore(tmp_path, hop=hop)  # type: ignore[arg-type]  # both are literals
    seen = store.statistics()
    assert (seen.units.count, seen.commits.count, seen.checkpoints.count) == (0, 0, 0)
    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(store.commit, Unit(append=Append(f"conv:{name}", 0, b"x", AT)))
    seen = store.statistics()
    assert (seen.units.count, seen.units.sum, seen.commits.count) == (1, 3, 1)
    assert 0 < seen.commits.sum < 60
    assert seen.file_bytes > 0
    assert seen.log_bytes > 0
    for n in range(8):
        await store.commit(large(n))
    with trio.fail_after(5):
        while not store.statistics().checkpoints.count:
            await trio.lowlevel.checkpoint()
    assert 0 < store.statistics().checkpoints.sum < 60
    await store.aclose()
