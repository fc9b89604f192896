"""Backup and restore of the embedded store: one file, taken beside a running broker.

1. A backup is one snapshot of SQLite's: what was committed when it began is in it, whole, and nothing else. What the
   broker keeps in memory is only an index (decision 0012); whoever opens the copy reads it from the texts again.
2. A file gets its name when it is complete and on the disk, and takes nobody else's.
3. A restored store has another secret, and so each of its streams another epoch: a cursor of before says so.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from broker.core.conversation import Restored
from broker.store import sqlite_file
from broker.store.port import NotAStore, SchemaTooNew

STEP: Final = 2048
"""Pages (4 KiB) copied between two looks at the progress: some 10 ms."""
SET_META: Final = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
GET_META: Final = "SELECT value FROM meta WHERE name = ?"
GET_KEYS: Final = "SELECT data FROM document WHERE kind = 'wire' AND name = 'keys'"
SET_RESTORED: Final = (
    "INSERT OR REPLACE INTO document (kind, name, version, data) VALUES ('wire', 'restored',"
    " 1 + coalesce((SELECT version FROM document WHERE kind = 'wire' AND name = 'restored'), 0), ?)"
)

Progress = Callable[[int, int], None]
"""Told how many pages are copied, and of how many. What it raises ends the copying."""


class Contents(msgspec.Struct, frozen=True):
    """What a backup says of itself."""

    at: int
    """Wall milliseconds when it was begun."""
    version: int
    """The schema."""
    key: bytes | None
    """The text of the wire's key file, where the backup was taken with it."""
    wire_keys: bytes | None
    """The document that names the keys with which the store was served; None: it never was."""


def back_up(directory: Path, file: Path, *, at: int, key: bytes | None, told: Progress) -> None:
    """Write a backup of a store into a new file (mode 0600), beside a running broker or not.

    `at`: the wall milliseconds of a moment before. While it runs the write-ahead log of the store grows by what is
    written meanwhile. Raises FileExistsError, NotAStore, OSError, sqlite3.Error; nothing is left of it then.
    """
    path = directory / sqlite_file.FILE
    if sqlite_file.judge(path)[1]:
        raise NotAStore(f"{path} is a backup itself")
    if os.path.lexists(file):
        raise FileExistsError(errno.EEXIST, "a backup replaces no file", str(file))
    partial = file.with_name(f"{file.name}.partial")
    with _made(partial):
        with closing(sqlite_file.connect_reading(path)) as source, closing(_open(partial)) as target:
            _copy(source, target, told)
            target.execute(f"PRAGMA application_id = {sqlite_file.BACKUP_ID}")
            target.execute(SET_META, ("backup", at))
            if key is not None:
                target.execute(SET_META, ("wire.key", key))
        sqlite_file.sync(partial)
        _name(partial, file)
        sqlite_file.sync(file.parent)


def contents(file: Path) -> Contents:
    """Look into a backup. Raises NotAStore for what is none, SchemaTooNew, OSError, sqlite3.Error."""
    version, is_backup = sqlite_file.judge(file)
    if not is_backup:
        raise NotAStore(f"{file} is not a backup")
    if version > (newest := max(step for step, _ in sqlite_file.schema())):
        raise SchemaTooNew(f"{file} has schema {version}; this Turret knows up to {newest}")
    with closing(sqlite_file.connect_reading(file)) as db:
        at, key, wire_keys = (
            db.execute(sql, values).fetchone()
            for sql, values in ((GET_META, ("backup",)), (GET_META, ("wire.key",)), (GET_KEYS, ()))
        )
    if at is None:
        raise NotAStore(f"{file} does not say when it was taken")
    return Contents(
        at[0], version, None if key is None else key[0], None if wire_keys is None else wire_keys[0]
    )


@contextmanager
def restoring(file: Path, directory: Path, found: Contents, *, now_ms: int, told: Progress) -> Iterator[Path]:
    """Make a store of a backup in an empty directory (made where there is none). The block gets the new store's file
    to look at, under another name; it becomes the store when the block ends, and nothing is left when that raises.

    Raises FileExistsError where there is something in the directory, InUse, OSError, sqlite3.Error.
    """
    fresh = not directory.exists()
    if not fresh and any(directory.iterdir()):
        raise FileExistsError(errno.ENOTEMPTY, "a restore needs an empty directory", str(directory))
    lock = sqlite_file.lock(directory)
    path = directory / f"{sqlite_file.FILE}.restoring"
    try:
        with _made(path):
            with closing(sqlite_file.connect_reading(file)) as source, closing(_open(path)) as target:
                _copy(source, target, told)
                _adopt(target, found, now_ms)
            yield path
            sqlite_file.sync(path)
            path.rename(directory / sqlite_file.FILE)
            sqlite_file.sync(directory)
    except BaseException:
        (directory / sqlite_file.LOCK).unlink(missing_ok=True)
        if fresh:
            with suppress(OSError):
                directory.rmdir()
        raise
    finally:
        os.close(lock)


def _adopt(db: sqlite3.Connection, found: Contents, now_ms: int) -> None:
    """Make a store of a copy: another secret, a note of the time that is missing, and no key of the wire."""
    db.execute("PRAGMA secure_delete = ON")
    db.execute("BEGIN IMMEDIATE")
    db.execute(f"PRAGMA application_id = {sqlite_file.APPLICATION_ID}")
    db.execute("DELETE FROM meta WHERE name IN ('backup', 'wire.key')")
    sqlite_file.renew_secret(db)
    db.execute(SET_RESTORED, (msgspec.json.encode(Restored(found.at, now_ms)),))
    db.execute("COMMIT")
    sqlite_file.bring_up(db, found.version)


def _open(path: Path) -> sqlite3.Connection:
    """A file that nobody else knows of: what a crash leaves of it is thrown away."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA synchronous = OFF")
    return db


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, told: Progress) -> None:
    """Copy one snapshot: it is held by a transaction, else each commit in between would begin the copy anew."""
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_master").fetchone()
    source.backup(target, pages=STEP, progress=lambda _, left, pages: told(pages - left, pages))
    source.execute("COMMIT")
    target.execute("PRAGMA journal_mode = DELETE")  # one file, without a write-ahead log beside it


@contextmanager
def _made(path: Path) -> Iterator[None]:
    """A new file (mode 0600) that is gone, with what SQLite put beside it, when the block raises."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield
    except BaseException:
        for ending in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        raise


def _name(partial: Path, file: Path) -> None:
    """Give a file its name unless that is taken. Raises FileExistsError."""
    try:
        os.link(partial, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: nothing better is left than to look first
        if os.path.lexists(file):
            raise FileExistsError(errno.EEXIST, "a backup replaces no file", str(file)) from None
        partial.rename(file)
    else:
        partial.unlink()
