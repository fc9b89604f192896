"""The tail: what is seen wherever the line between disk and memory runs, and what a crash leaves of it."""

import itertools
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copy

import pytest
import trio

from broker.store import sqlite_tail
from broker.store.port import Append, Deliver, Drop, Event, Retention, Store, Unavailable, Unit
from broker.store.sqlite import SqliteStore

pytest.register_assert_rewrite("tests.broker.store.conformance", "tests.broker.store.submitting")

from tests.broker.store.conformance import Conformance  # noqa: E402  # rewritten first
from tests.broker.store.units import AT, refused, row  # noqa: E402

ROOT = Path(__file__).parents[3]


def flushing(monkeypatch: pytest.MonkeyPatch, *, every: int, least: int = 1, run: int = 64) -> None:
    """Have a flush begin after so many items, write `least` runs with each batch, of `run` items each."""
    monkeypatch.setattr(sqlite_tail, "FLUSH", every)
    monkeypatch.setattr(sqlite_tail, "SLICE", least)
    monkeypatch.setattr(sqlite_tail, "RUN", run)


@pytest.mark.parametrize("every", [1, 3, 7])
class TestConformanceWhereverTheLineRuns(Conformance):
    @pytest.fixture
    async def store(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
    ) -> AsyncIterator[Store]:
        flushing(monkeypatch, every=every, run=2)
        made = SqliteStore(tmp_path / "data", hop="inline")
        yield made
        await made.aclose()


def crashed(source: Path, target: Path) -> Path:
    """What a process that ended this moment would have left: the files as they are."""
    target.mkdir()
    for name in ("turret.db", "turret.db-wal"):
        copy(source / name, target / name)
    return target


async def check(store: SqliteStore, rows: int, at: str = "") -> None:
    """All of a log of `rows` rows that one stream was told of, in pages of every place and size."""
    numbers = list(range(rows))
    for after, limit in itertools.product(range(-1, rows + 1), (1, 2, 3, rows + 1)):
        entries = await store.entries("conv:a", after, limit)
        assert [entry.n for entry in entries] == numbers[after + 1 :][:limit], (at, after, limit)
        assert all(entry.data == b"conv:a/%d" % entry.n for entry in entries)
        back = await store.tail("conv:a", after, limit)
        assert [entry.n for entry in back] == numbers[: max(after, 0)][::-1][:limit], (at, after, limit)
        events = await store.events("pk:a", after, limit)
        positions = [number + 1 for number in numbers][max(after, 0) :][:limit]
        assert [event.position for event in events] == positions, (at, after, limit)
        assert all(event.data == b"conv:a/%d" % (event.position - 1) for event in events)
    assert [entry.n for entry in await store.tail("conv:a", limit=3)] == numbers[::-1][:3]
    head = await store.head("pk:a")
    assert (head.oldest, head.newest) == (1, rows)


@pytest.mark.requirement("store.tail", "store.pages")
@pytest.mark.parametrize("every", [1, 4, 5, 100])
async def test_reads_are_whole_wherever_the_line_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    flushing(monkeypatch, every=every, run=3)
    store = SqliteStore(tmp_path / "data", hop="inline")
    for n in range(9):
        await store.commit(row("conv:a", n, "pk:a"))
        await store.commit(row("conv:b", n, "pk:b"))
        await check(store, n + 1)
    await store.aclose()
    store = SqliteStore(tmp_path / "data", hop="inline")
    assert not store.writer.tail.logs
    await check(store, 9, "closed and opened")
    await store.commit(row("conv:a", 9, "pk:a"))
    await check(store, 10)
    await store.aclose()


@pytest.mark.requirement("store.tail", "store.durable")
async def test_what_a_crash_leaves_is_whole_at_every_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every moment of a flush that takes many batches: nothing, some or all of the runs are written."""
    flushing(monkeypatch, every=24, run=2)
    store = SqliteStore(tmp_path / "data", hop="inline")
    heads: dict[str, int] = {}
    for number in range(60):
        log, streams = f"conv:{number % 8}", (f"pk:{number % 7}", "pk:all")
        await store.commit(row(log, number // 8, *streams))
        for name in (log, *streams):
            heads[name] = heads.get(name, 0) + 1
        again = SqliteStore(crashed(tmp_path / "data", tmp_path / f"copy{number}"), hop="inline")
        for name, newest in heads.items():
            if name.startswith("conv:"):
                assert [entry.n for entry in await again.entries(name)] == list(range(newest))
                assert await refused(again, row(name, newest - 1)) == "append"
            else:
                assert (await again.head(name)).newest == newest
                positions = [event.position for event in await again.events(name, 0)]
                assert positions == list(range(1, newest + 1))
        await again.commit(row(log, number // 8 + 1, "pk:all"))
        assert [event.position for event in await again.events("pk:all", number)] == [number + 1, number + 2]
        await again.aclose()
    await store.aclose()


KILLED = """
import os, signal, sys
from pathlib import Path
import trio
from broker.store import sqlite_tail
from broker.store.port import Append, Deliver, Unit
from broker.store.sqlite import SqliteStore
from broker.store.sqlite_tail import Tail

sqlite_tail.FLUSH, sqlite_tail.SLICE = 20, 1
flush, landed, left = Tail.flush, Tail.landed, int(sys.argv[3])

def die():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

def flush_and_die(tail, came=None):
    flush(tail, came)
    if sys.argv[2] == "before":
        die()

def die_and_land(tail):
    if sys.argv[2] == "after" and tail._flushed:
        die()
    landed(tail)

Tail.flush, Tail.landed = flush_and_die, die_and_land

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    n, other = [len(await store.entries(log, limit=10_000)) for log in ("conv:a", "conv:b")]
    while True:
        await store.commit(Unit(Append("conv:a", n, b"conv:a/%d" % n, 1), (), (Deliver("pk:a", "env"),)))
        n += 1
        print(n, flush=True)
        await store.commit(Unit(Append("conv:b", other, b"", 1), (), (Deliver("pk:b", "env"),)))
        other += 1

trio.run(main)
"""


@pytest.mark.requirement("store.durable")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_around_the_commit_of_a_flush_has_lost_nothing(tmp_path: Path, moment: str) -> None:
    """Twice on the same directory: the second process begins with what the first one left."""
    data = tmp_path / "data"
    for number in (1, 3):
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(data), moment, str(number)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        acknowledged = int(ran.stdout.split()[-1])
        left = crashed(data, tmp_path / f"left{number}")

        async def look(left: Path = left, acknowledged: int = acknowledged) -> None:
            store = SqliteStore(left, hop="inline")
            rows = len(await store.entries("conv:a", limit=10_000))
            assert acknowledged <= rows <= acknowledged + 1
            head = await store.head("pk:a")
            assert head.newest == rows
            assert len(await store.events("pk:a", 0, 10_000)) == rows
            await store.aclose()

        trio.run(look)


@pytest.mark.requirement("store.tail")
async def test_what_is_flushed_and_not_yet_let_go_is_seen_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing(monkeypatch, every=4, run=3)
    store = SqliteStore(tmp_path, hop="inline")
    tail = store.writer.tail
    for n in range(8):
        monkeypatch.setattr(tail, "landed", lambda: None)
        await store.commit(row("conv:a", n, "pk:a"))
        await check(store, n + 1)
        monkeypatch.undo()
        flushing(monkeypatch, every=4, run=3)
        tail.landed()
        await check(store, n + 1)
    await store.aclose()


async def test_a_flush_that_was_rolled_back_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing(monkeypatch, every=4, run=3)
    store = SqliteStore(tmp_path, hop="inline")
    for n in range(3):
        await store.commit(row("conv:a", n, "pk:a"))
    finish = store.writer.finish
    error = sqlite3.OperationalError("full")
    error.sqlite_errorname = "SQLITE_FULL"

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(store.writer, "finish", fail)
    for n in range(3, 6):
        with pytest.raises(Unavailable):
            await store.commit(row("conv:a", n - n % 3, "pk:a"))
        await check(store, 3)
    monkeypatch.setattr(store.writer, "finish", finish)
    for n in range(3, 9):
        await store.commit(row("conv:a", n, "pk:a"))
        await check(store, n + 1)
    await store.aclose()


@pytest.mark.requirement("store.bounded")
async def test_memory_is_bounded_however_many_logs_and_streams_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing(monkeypatch, every=30)
    store = SqliteStore(tmp_path, hop="inline")
    most = 0
    for number in range(300):
        await store.commit(row(f"conv:{number}", 0, f"pk:{number}", f"pk:{number % 7}"))
        tail = store.writer.tail
        runs = [*tail.logs.values(), *tail.streams.values()]
        most = max(most, sum(len(run.items) for run in runs))
    assert 20 <= most <= 50 + 3
    for number in range(300):
        assert len(await store.entries(f"conv:{number}")) == 1
    await store.aclose()


@pytest.mark.requirement("store.numbers")
async def test_a_number_that_was_rolled_back_is_not_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    await store.commit(row("conv:a", 0, "pk:a"))
    error = sqlite3.OperationalError("full")
    error.sqlite_errorname = "SQLITE_FULL"

    def fail(_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(store.writer, "finish", fail)
        with pytest.raises(Unavailable):
            await store.commit(row("conv:lost", 0, "pk:a"))
    await store.commit(row("conv:b", 0, "pk:a"))
    assert store.writer.db.execute("SELECT id FROM text").fetchall() == [(1,), (3,)]
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 2]
    await store.aclose()


# ── what is removed ──


@pytest.mark.requirement("store.numbers", "store.drop")
@pytest.mark.parametrize("every", [1, 5, 100])
async def test_a_log_that_is_dropped_takes_no_position_or_number_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    flushing(monkeypatch, every=every, run=2)
    store = SqliteStore(tmp_path / "data", hop="inline")
    for n in range(3):
        await store.commit(row("conv:b", n, "pk:a"))
        await store.commit(row("conv:a", n, "pk:a", "pk:only"))
    await store.commit(Unit(drop=Drop("conv:a")))
    for number, left in enumerate((tmp_path / "data", tmp_path / "copy")):
        if number:
            await store.aclose()
            store = SqliteStore(left, hop="inline")
        else:
            crashed(left, tmp_path / "copy")
        assert await store.entries("conv:a") == []
        assert [event.position for event in await store.events("pk:a", 0)] == [1, 3, 5]
        assert await store.events("pk:only", 0) == []
        assert (await store.head("pk:only")).newest == 3
        await store.commit(row("conv:c", 0, "pk:a", "pk:only"))
        assert await store.events("pk:only", 0) == [Event("pk:only", 4, "env", False, b"conv:c/0", AT)]
        assert [entry.data for entry in await store.entries("conv:c")] == [b"conv:c/0"]
    await store.aclose()


@pytest.mark.requirement("store.numbers", "store.sweep")
@pytest.mark.parametrize("every", [1, 5, 100])
async def test_a_sweep_takes_events_from_the_tail_and_from_within_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    flushing(monkeypatch, every=every, run=3)
    store = SqliteStore(tmp_path / "data", hop="inline")
    for n in range(8):
        own = Deliver("pk:a", "moving", data=b"own", at=AT + n)
        told = (own,) if n % 2 else (Deliver("pk:a", "env"),)
        await store.commit(Unit(append=Append("conv:a", n, b"row", AT + n), deliver=told))
    assert await store.sweep(Retention(now=0, events_before=AT + 4, events_keep=1)) == 4
    assert await store.sweep(Retention(now=0, events_before=AT + 4, events_keep=1)) == 0
    for number in range(2):
        if number:
            left = crashed(tmp_path / "data", tmp_path / "copy")
            await store.aclose()
            store = SqliteStore(left, hop="inline")
        head = await store.head("pk:a")
        assert (head.oldest, head.newest) == (5, 8)
        assert [event.position for event in await store.events("pk:a", 0)] == [5, 6, 7, 8]
        assert [event.data for event in await store.events("pk:a", 0)] == [b"row", b"own"] * 2
        assert len(await store.entries("conv:a")) == 8
        own_texts = store.writer.db.execute("SELECT count(*) FROM text WHERE log IS NULL").fetchone()
        assert own_texts == (2,), "an event's own text goes with it"
    await store.aclose()


async def test_a_damaged_run_is_unavailable(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    await store.commit(row("conv:a", 0, "pk:a"))
    await store.aclose()
    store = SqliteStore(tmp_path, hop="inline")
    store.writer.db.execute("UPDATE log_run SET texts = '[1'")
    store.writer.db.execute("UPDATE stream_run SET events = '[[1]]'")
    with pytest.raises(Unavailable, match="a run is damaged"):
        await store.entries("conv:a")
    with pytest.raises(Unavailable, match="a run is damaged"):
        await store.events("pk:a", 0)
    await store.aclose()


@pytest.mark.parametrize("what", ["indexed", "secret"])
async def test_a_store_that_has_lost_what_it_goes_by_is_not_opened(tmp_path: Path, what: str) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    store.writer.db.execute("DELETE FROM meta WHERE name = ?", (what,))
    await store.aclose()
    with pytest.raises(sqlite3.DatabaseError, match=what):
        SqliteStore(tmp_path, hop="inline")


@pytest.mark.requirement("store.tail", "store.numbers")
async def test_who_reads_while_a_thread_writes_flushes_sweeps_and_drops_sees_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing(monkeypatch, every=40, least=3, run=4)
    store = SqliteStore(tmp_path)
    rows: dict[str, int] = {}
    newest: dict[str, int] = {}
    writing = 8

    async def write(number: int) -> None:
        nonlocal writing
        for turn in range(3):
            log = f"conv:{number}:{turn}"
            for n in range(25):
                await store.commit(row(log, n, f"pk:{number}", "pk:all"))
                rows[log] = n + 1
                newest[f"pk:{number}"] = 25 * turn + n + 1
            if turn == 1:
                del rows[log]
                await store.commit(Unit(drop=Drop(log)))
        writing -= 1

    async def read() -> None:
        while writing:
            for log, least in list(rows.items()):
                entries = await store.entries(log)
                numbers = [entry.n for entry in entries]
                assert numbers == list(range(len(numbers)))
                assert len(numbers) >= least or log not in rows
            for stream, least in list(newest.items()):
                assert (await store.head(stream)).newest >= least
                events = await store.events(stream, least - 1, 1)
                assert not events or events[0].position >= least
            await store.sweep(Retention(now=0, events_before=AT + 1, events_keep=20), 30)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for number in range(8):
                nursery.start_soon(write, number)
    assert (await store.head("pk:all")).newest == 8 * 75
    await store.aclose()
