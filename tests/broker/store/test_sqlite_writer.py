"""The writer alone: what it answers when its transaction, its COMMIT or its rollback fails; and a real bad disk."""

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker.store import sqlite_file
from broker.store.port import Append, Deliver, Drop, InDoubt, Retention, Unavailable, Unit
from broker.store.sqlite_reader import Reader
from broker.store.sqlite_writer import Sweep, Writer

AT = 1_782_345_678_000
ROOT = Path(__file__).parents[3]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(sqlite_file.connect(sqlite_file.prepare(tmp_path)))
    yield made
    with suppress(sqlite3.ProgrammingError):
        made.close()


@pytest.fixture
def reader(tmp_path: Path, writer: Writer) -> Iterator[Reader]:
    made = Reader(sqlite_file.connect(sqlite_file.prepare(tmp_path), writer=False), writer.tail)
    yield made
    made.close()


def unit(log: str, n: int = 0) -> Unit:
    return Unit(append=Append(log, n, b"row", AT), deliver=(Deliver("pk:a", "env"),))


def test_works_of_all_kinds_share_a_transaction(writer: Writer, reader: Reader) -> None:
    sweep = Sweep(Retention(now=0, events_before=AT + 1, events_keep=1), 10)
    result = writer.run((unit("a"), unit("a"), unit("a", 1), sweep, Unit(drop=Drop("a"))))
    assert [
        outcome if outcome is None or isinstance(outcome, int) else str(outcome)
        for outcome in result.outcomes
    ] == [
        None,
        "append a",
        None,
        1,
        None,
    ]
    assert [event.position for event in result.told] == [1, 2]
    head = reader.head("pk:a")
    assert (head.oldest, head.newest) == (2, 2)
    assert reader.entries("a", -1, 10) == []


def test_what_changes_nothing_is_not_written(writer: Writer) -> None:
    assert writer.run((unit("a"),)).outcomes == [None]
    for works in ((unit("a"),), (Unit(),)):
        staged = writer.stage(works)
        assert not staged.pages
        writer.complete(staged)


def test_a_commit_that_says_busy_was_not_done(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_: object) -> None:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorname = "SQLITE_BUSY"
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(writer, "finish", busy)
        [outcome] = writer.run((unit("a"),)).outcomes
    assert isinstance(outcome, Unavailable)
    assert writer.broken is None
    assert writer.run((unit("a"),)).outcomes == [None]


def test_all_of_a_batch_are_in_doubt_when_its_commit_is(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise sqlite3.OperationalError("who knows")

    monkeypatch.setattr(writer, "finish", fail)
    result = writer.run((unit("a"), unit("b"), unit("b")))
    assert [type(outcome) for outcome in result.outcomes] == [InDoubt] * 3
    assert len({id(outcome) for outcome in result.outcomes}) == 3, "each task raises one of its own"
    assert result.told == []
    assert [type(outcome) for outcome in writer.run((unit("c"), unit("d"))).outcomes] == [Unavailable] * 2


def test_a_writer_whose_rollback_fails_writes_no_more(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(writer._stage, "write", fail)
    monkeypatch.setattr(writer._stage, "forget", fail)
    assert [type(outcome) for outcome in writer.run((unit("a"), unit("b"))).outcomes] == [Unavailable] * 2
    assert writer.broken == "a rollback failed: disk I/O error"
    monkeypatch.undo()
    assert [type(outcome) for outcome in writer.run((unit("a"),)).outcomes] == [Unavailable]


def test_a_stranger_that_holds_the_file_makes_it_unavailable_for_as_long(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = sqlite3.connect(tmp_path / sqlite_file.FILE, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    [outcome] = writer.run((unit("a"),)).outcomes
    assert isinstance(outcome, Unavailable)
    stranger.execute("COMMIT")
    stranger.close()
    assert writer.run((unit("a"),)).outcomes == [None]


BAD_DISK = """
import resource, signal, sys
from pathlib import Path
import trio
from broker.store.port import Append, InDoubt, Unavailable, Unit
from broker.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.commit(Unit(append=Append("conv:a", 0, b"x" * 5000, 1)))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    acknowledged = 0
    for n in range(1, 100):
        try:
            await store.commit(Unit(append=Append("conv:a", n, b"x" * 5000, 1)))
        except (InDoubt, Unavailable) as error:
            print(n, type(error).__name__, store.broken)
            break
    try:
        await store.commit(Unit(append=Append("conv:b", 0, b"", 1)))
    except Unavailable:
        print("refused")
    print(len(await store.entries("conv:a")))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.aclose()

trio.run(main)
"""


@pytest.mark.requirement("store.durable", "store.in-doubt")
def test_a_disk_that_really_fails_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BAD_DISK, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ran.returncode == 0, ran.stderr
    first, *rest = ran.stdout.splitlines()
    number, kind, broken = first.split(" ", 2)
    assert 3 < int(number) < 60
    assert kind == "InDoubt"
    assert "I/O" in broken
    assert rest == ["refused", number]
    writer = Writer(sqlite_file.connect(sqlite_file.prepare(tmp_path)))
    reader = Reader(sqlite_file.connect(tmp_path / sqlite_file.FILE, writer=False), writer.tail)
    assert [entry.n for entry in reader.entries("conv:a", -1, 1000)][: int(number)] == list(
        range(int(number))
    )
    assert reader._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    reader.close()
    writer.close()


@pytest.mark.requirement("store.unavailable", "faults.disk-full")
@pytest.mark.parametrize("wanting", ["EDQUOT", "ENOSPC", "EIO", None])
def test_a_write_that_failed_for_want_of_room_is_certainly_not_written_and_the_writer_goes_on(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanting: str | None
) -> None:
    def finish(_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_WRITE"
        raise error

    def pwrite(_: int, data: bytes, __: int) -> int:
        if wanting is not None:
            raise OSError(getattr(errno, wanting), "no")
        return min(len(data), 4096)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "finish", finish)
        patch.setattr(os, "pwrite", pwrite)
        [outcome] = writer.run((unit("a"),)).outcomes
    full = wanting in ("EDQUOT", "ENOSPC")
    assert isinstance(outcome, Unavailable if full else InDoubt)
    assert (writer.broken is None) is full
    assert full is (writer.run((unit("a"),)).outcomes == [None])
    assert list(tmp_path.glob("tmp*")) == []
