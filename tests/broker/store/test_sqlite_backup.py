"""Backup and restore: whole at any moment, never in anybody's place, another time's epochs."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import trio

from broker.core.conversation import Restored
from broker.store import sqlite_backup, sqlite_file, sqlite_tail
from broker.store.port import InUse, NotAStore, Put, SchemaTooNew, Store, Unit
from broker.store.sqlite import SqliteStore
from tests.broker.store.units import row

LOGS = 40


def silent(done: int, of: int) -> None:
    assert 0 <= done <= of


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def back_up(directory: Path, file: Path, key: bytes | None = None) -> None:
    sqlite_backup.back_up(directory, file, at=1_000, key=key, told=silent)


def restore(file: Path, directory: Path, look: Callable[[Path], object] = str) -> None:
    found = sqlite_backup.contents(file)
    with sqlite_backup.restoring(file, directory, found, now_ms=2_000, told=silent) as store:
        look(store)


async def filled(directory: Path, units: int = 10) -> None:
    store = SqliteStore(directory)
    for n in range(units):
        await store.commit(row("conv:a", n, "pk:a", "pk:b"))
    await store.aclose()


async def complete(store: Store) -> int:
    """How many rows there are; each log's and each stream's are without a gap, and tell of the same."""
    rows = 0
    for number in range(LOGS):
        found = await store.entries(f"conv:{number}", limit=100_000)
        assert [entry.n for entry in found] == list(range(len(found)))
        rows += len(found)
    for name in ("pk:a", "pk:b"):
        events = await store.events(name, 0, 100_000)
        assert [event.position for event in events] == list(range(1, rows + 1))
    return rows


@pytest.mark.requirement("store.backup-whole")
async def test_a_copy_taken_at_any_moment_opens_and_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sqlite_tail, "FLUSH", 50
    )  # so that copies are taken in the middle of writing runs too
    monkeypatch.setattr(sqlite_tail, "SLICE", 2)
    store = SqliteStore(tmp_path / "data")
    acked, taken = [0], 0
    done = trio.Event()

    async def load(start: int) -> None:
        n = 0
        while not done.is_set():
            for log in range(start, LOGS, 4):
                await store.commit(row(f"conv:{log}", n, "pk:a", "pk:b"))
                acked[0] += 1
            n += 1

    async with trio.open_nursery() as nursery:
        for start in range(4):
            nursery.start_soon(load, start)
        for number in range(25):
            before = acked[0]
            await trio.to_thread.run_sync(back_up, tmp_path / "data", tmp_path / f"{number}.backup")
            restore(tmp_path / f"{number}.backup", tmp_path / f"{number}")
            copy = SqliteStore(tmp_path / f"{number}")
            assert before <= await complete(copy) <= acked[0] + 4
            await copy.commit(row("conv:new", 0, "pk:a"))
            await copy.aclose()
            taken += before > 0
        done.set()
    await store.aclose()
    assert taken > 5
    assert acked[0] > 250, "too little load to tell anything"


@pytest.mark.requirement("store.backup-file")
async def test_a_backup_is_one_private_file_and_takes_nobodys_place(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    file = tmp_path / "one.backup"
    old = os.umask(0)
    try:
        back_up(tmp_path / "data", file)
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(FileExistsError):
        back_up(tmp_path / "data", file)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        back_up(tmp_path / "data", tmp_path / "link")
    assert file.read_bytes() == before
    assert names(tmp_path) == ["data", "link", "one.backup"]


@pytest.mark.requirement("store.backup-file")
async def test_a_file_that_comes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    file = tmp_path / "one.backup"
    with pytest.raises(FileExistsError):
        sqlite_backup.back_up(tmp_path / "data", file, at=1, key=None, told=lambda done, of: file.touch())
    assert file.read_bytes() == b""


@pytest.mark.requirement("store.backup-file")
async def test_the_same_where_the_file_system_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    restore(tmp_path / "one.backup", tmp_path / "copy")
    late = tmp_path / "late.backup"
    with pytest.raises(FileExistsError):
        sqlite_backup.back_up(tmp_path / "data", late, at=1, key=None, told=lambda done, of: late.touch())
    assert late.read_bytes() == b""


@pytest.mark.requirement("store.backup-file")
async def test_nothing_is_left_of_a_backup_that_was_cut_short(tmp_path: Path) -> None:
    await filled(tmp_path / "data")

    def full(done: int, of: int) -> None:
        raise OSError(28, "no space left")

    with pytest.raises(OSError, match="no space"):
        sqlite_backup.back_up(tmp_path / "data", tmp_path / "one.backup", at=1, key=None, told=full)
    assert names(tmp_path) == ["data"]


@pytest.mark.requirement("store.backup-is-no-store")
async def test_a_backup_is_opened_by_no_broker_before_it_was_restored(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    (tmp_path / "by-hand").mkdir()
    back_up(tmp_path / "data", tmp_path / "by-hand" / sqlite_file.FILE)
    with pytest.raises(NotAStore, match="turret restore"):
        SqliteStore(tmp_path / "by-hand")
    with pytest.raises(NotAStore):
        back_up(tmp_path / "by-hand", tmp_path / "two.backup")


@pytest.mark.requirement("store.restored", "store.epoch-restored")
async def test_a_restored_store_has_all_rows_other_epochs_and_a_note_of_the_time_between(
    tmp_path: Path,
) -> None:
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    restore(tmp_path / "one.backup", tmp_path / "copy")
    old, new = SqliteStore(tmp_path / "data"), SqliteStore(tmp_path / "copy")
    assert len(await new.entries("conv:a")) == 10
    heads = [await store.head("pk:a") for store in (old, new)]
    assert heads[0].newest == heads[1].newest == 10
    assert heads[0].epoch != heads[1].epoch
    note = await new.get("wire", "restored")
    assert note is not None
    assert msgspec.json.decode(note.doc, type=Restored) == Restored(1_000, 2_000)
    await old.aclose()
    await new.aclose()


@pytest.mark.requirement("store.restored")
async def test_what_was_restored_before_may_be_backed_up_and_restored_again(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    for name, before in (("one", "data"), ("two", "one")):
        back_up(tmp_path / before, tmp_path / f"{name}.backup")
        restore(tmp_path / f"{name}.backup", tmp_path / name)
    store = SqliteStore(tmp_path / "two")
    note = await store.get("wire", "restored")
    assert note is not None
    assert note.version == 2
    await store.commit(Unit(puts=(Put("wire", "restored", 2, b"{}"),)))
    await store.aclose()


@pytest.mark.requirement("store.restored")
async def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    steps = list(sqlite_file.schema())
    newest = steps[-1][0] + 1
    steps.append((newest, "ALTER TABLE log ADD COLUMN colour TEXT;"))
    monkeypatch.setattr(sqlite_file, "schema", lambda: iter(steps))
    restore(tmp_path / "one.backup", tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "copy" / sqlite_file.FILE)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (newest,)
        assert db.execute("SELECT colour FROM log").fetchall() == [(None,)]


@pytest.mark.requirement("store.restored")
async def test_a_key_in_a_backup_is_handed_over_and_stays_in_no_store(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    key = b"not-a-key-but-as-secret" * 4
    back_up(tmp_path / "data", tmp_path / "one.backup", key)
    assert sqlite_backup.contents(tmp_path / "one.backup").key == key
    restore(tmp_path / "one.backup", tmp_path / "copy")
    assert all(key not in each.read_bytes() for each in (tmp_path / "copy").iterdir())
    back_up(tmp_path / "data", tmp_path / "without.backup")
    assert sqlite_backup.contents(tmp_path / "without.backup").key is None


@pytest.mark.requirement("store.restore-empty")
@pytest.mark.parametrize("there", [True, False])
async def test_a_restore_that_fails_leaves_things_as_they_were(tmp_path: Path, there: bool) -> None:
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    target = tmp_path / "copy"
    if there:
        target.mkdir()
    with pytest.raises(ZeroDivisionError):
        restore(tmp_path / "one.backup", target, lambda store: 1 // (store.name == sqlite_file.FILE))
    assert target.exists() is there
    assert not there or names(target) == []
    restore(tmp_path / "one.backup", target)


@pytest.mark.requirement("store.restore-empty")
async def test_a_restore_goes_into_an_empty_directory_only(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "wire.key").write_bytes(b"another's")
    with pytest.raises(FileExistsError):
        restore(tmp_path / "one.backup", tmp_path / "copy")
    assert names(tmp_path / "copy") == ["wire.key"]


@pytest.mark.requirement("store.restore-empty")
async def test_while_a_restore_runs_nobody_opens_its_directory(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    with pytest.raises(InUse):
        restore(tmp_path / "one.backup", tmp_path / "copy", lambda store: SqliteStore(store.parent))


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 99")


def undated(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("DELETE FROM meta WHERE name = 'backup'")


def other(file: Path) -> None:
    file.write_bytes(b"something else")


@pytest.mark.requirement("store.backup-is-no-store")
@pytest.mark.parametrize(
    ("spoil", "error"), [(newer, SchemaTooNew), (undated, NotAStore), (other, NotAStore)]
)
async def test_what_is_no_backup_of_ours_is_not_restored(
    spoil: Callable[[Path], None], error: type[Exception], tmp_path: Path
) -> None:
    await filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "one.backup")
    spoil(tmp_path / "one.backup")
    with pytest.raises(error):
        sqlite_backup.contents(tmp_path / "one.backup")
    with pytest.raises(NotAStore, match="not a backup"):
        sqlite_backup.contents(tmp_path / "data" / sqlite_file.FILE)
