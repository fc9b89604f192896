"""The embedded store's directory: who may open it, what lies in it, how it comes to be.

1. One process at a time: a lock that ends with the process.
2. What is not a store of ours, or is a newer one, is left exactly as it is: it is judged by its first bytes.
3. A store comes to be whole, under another name first, or not at all.
"""

import errno
import fcntl
import logging
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final

from broker.store.epoch import new_secret
from broker.store.port import InUse, NotAStore, SchemaTooNew

FILE: Final = "turret.db"
LOCK: Final = "turret.lock"
APPLICATION_ID: Final = 0x54555252
"""`TURR`, where SQLite keeps whose file it is (bytes 68 to 71 of the header)."""
BACKUP_ID: Final = 0x54555242
"""`TURB`: a backup. It is no store until it was restored, since its streams have the epochs of another time."""
OLDEST: Final = (3, 38)
"""The first SQLite that always has what the statements ask for."""
BUSY_S: Final = 0.25
"""Seconds for which a connection waits for another one, and the loop with it; ours never hold a lock across a
wait, so that only a stranger's does this."""
READING_S: Final = 10.0
"""Seconds for which one who looks on waits, where another process is just opening or closing the store."""
WAL_PAGES: Final = 16_000
"""Pages (4 KiB) in the write-ahead log after which a commit itself moves them into the file: a bound, met only where
the checkpoints beside it have not kept up."""
WAL_BYTES: Final = 64 * 1024 * 1024
"""What the write-ahead log is cut down to after it has grown behind a reader."""

log = logging.getLogger(__name__)


def schema() -> Iterator[tuple[int, str]]:
    """The steps (version, SQL text), rising; the last version is the one that this Turret writes."""
    steps = sorted(entry.name for entry in (files("broker.store") / "schema").iterdir())
    for name in steps:
        if found := re.fullmatch(r"(\d{4})\.sql", name):
            yield int(found[1]), (files("broker.store") / "schema" / name).read_text("utf-8")


def quota_is_used_up(db: sqlite3.Connection, pages: int) -> bool:
    """After a write that failed: whether that is for want of room. SQLite tells a full disk from a bad one, but not
    a quota's end; so as much and a little more is tried beside the store."""
    left = bytes(4096 * (pages + 8))
    try:
        folder = Path(db.execute("PRAGMA database_list").fetchone()[2]).parent
        with tempfile.TemporaryFile(dir=folder) as file:
            while left:
                left = left[os.pwrite(file.fileno(), left, 0) :]
    except OSError as error:
        return error.errno in (errno.EDQUOT, errno.ENOSPC)
    return False


def lock(directory: Path) -> int:
    """Take the directory's lock, making the directory (0700) where there is none.

    Returns the descriptor to close for letting go. Raises InUse.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise InUse(f"{directory} is in use by another Turret") from error
    return descriptor


def prepare(directory: Path) -> Path:
    """The store's file, made where there is none and brought up to date where it is older.

    The lock must be held. Raises NotAStore, SchemaTooNew (the file is then as it was), OSError, sqlite3.Error.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise sqlite3.NotSupportedError(
            f"SQLite {sqlite3.sqlite_version} is too old: it has no JSON of its own"
        )
    if not has_search():
        raise sqlite3.NotSupportedError(
            "this Python's SQLite was built without FTS5, its full text search: use one that has it"
        )
    path = directory / FILE
    steps = list(schema())
    try:
        version = _judge(path, steps[-1][0])
    except FileNotFoundError:
        _create(path, steps)
        return path
    path.chmod(0o600)
    if version < steps[-1][0]:
        log.info("the store is brought from schema %d to %d, once", version, steps[-1][0])
        with closing(connect(path)) as db:
            bring_up(db, version)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def has_search() -> bool:
    """Whether this SQLite has full text search."""
    with closing(sqlite3.connect(":memory:")) as db:
        return db.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


def bring_up(db: sqlite3.Connection, version: int) -> None:
    """Bring a store of an older schema up to date, a transaction a step. Raises sqlite3.Error."""
    _run(db, [step for step in schema() if step[0] > version])


def _judge(path: Path, newest: int) -> int:
    version, is_backup = judge(path)
    if is_backup:
        raise NotAStore(f"{path} is a backup: `turret restore` makes a store of it")
    if version > newest:
        raise SchemaTooNew(f"{path} has schema {version}; this Turret knows up to {newest}")
    return version


def judge(path: Path) -> tuple[int, bool]:
    """The schema version of a file, and whether it is a backup, read without opening it as a database.

    Raises NotAStore, OSError.
    """
    with path.open("rb") as file:
        header = file.read(100)
    id = int.from_bytes(header[68:72], "big")
    if header[:16] != b"SQLite format 3\0" or id not in (APPLICATION_ID, BACKUP_ID):
        raise NotAStore(f"{path} is not a Turret store")
    return int.from_bytes(header[60:64], "big"), id == BACKUP_ID


def _create(path: Path, steps: list[tuple[int, str]]) -> None:
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(fresh, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        _run(db, steps)
    fresh.rename(path)
    sync(path.parent)


def _run(db: sqlite3.Connection, steps: list[tuple[int, str]]) -> None:
    db.create_function("new_secret", 0, new_secret)
    for version, text in steps:
        db.executescript(f"BEGIN IMMEDIATE;\n{text}\nPRAGMA user_version = {version};\nCOMMIT;")


def sync(path: Path) -> None:
    """Return when a file, or a directory's names, are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def renew_secret(db: sqlite3.Connection) -> None:
    """Give a store another secret, and so each of its streams another epoch: what a restore has to do.

    Nobody else may have it open. Raises sqlite3.Error.
    """
    db.execute("UPDATE meta SET value = ? WHERE name = 'secret'", (new_secret(),))


def connect_reading(path: Path) -> sqlite3.Connection:
    """A connection for one who looks on, beside a broker or not: it can change nothing, and moves no log.

    Raises sqlite3.Error.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=READING_S,
        isolation_level=None,
        check_same_thread=False,
    )


def connect(path: Path, *, writer: bool = True) -> sqlite3.Connection:
    """A connection in autocommit mode, for one thread at a time. Raises sqlite3.Error."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        db.execute("PRAGMA cache_size = -32768")
        if not writer:
            db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def checkpoint(db: sqlite3.Connection) -> int:
    """Move what is in the write-ahead log into the file, without waiting for a reader or a writer.

    Returns how many pages could not be moved: with 0 the next commit begins the log anew. Raises sqlite3.Error.
    """
    _, pages, moved = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return max(int(pages) - int(moved), 0)
