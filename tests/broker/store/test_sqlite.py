"""The embedded adapter: the law with both hops, durability, and what it does when the disk fails."""

import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest
import trio
import trio.testing

from broker.store import sqlite_file
from broker.store.port import (
    Append,
    Conflict,
    Deliver,
    Document,
    Drop,
    Event,
    InDoubt,
    InUse,
    Put,
    Remember,
    Retention,
    Store,
    Unavailable,
    Unit,
)
from broker.store.sqlite import SqliteStore
from broker.store.sqlite_stage import Texts

pytest.register_assert_rewrite(
    "tests.broker.store.conformance", "tests.broker.store.searching", "tests.broker.store.submitting"
)

from tests.broker.store.conformance import Conformance  # noqa: E402  # rewritten first
from tests.broker.store.units import AT, SOME, refused, row  # noqa: E402

LAW = pytest.mark.requirement(
    "store.all-or-none",
    "store.conflict-kinds",
    "store.one-row-per-n",
    "store.positions-without-gap",
    "store.told-before-return",
    "store.versions",
    "store.settle",
    "store.cancelled-commit",
    "store.submit",
    "store.pages",
    "store.index-order",
    "store.due",
    "store.text-once",
    "store.epoch",
    "store.remember",
    "store.sweep",
    "store.drop",
    "store.close",
    "store.search",
    "store.search-marks",
    "store.search-pages",
    "store.search-words",
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "data")
    yield made
    await made.aclose()


@LAW
class TestThread(Conformance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        made = await SqliteStore.open(tmp_path / "data")
        yield made
        await made.aclose()


@LAW
class TestInline(Conformance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        made = await SqliteStore.open(tmp_path / "data", hop="inline")
        yield made
        await made.aclose()


class TestWithAVirtualClock:
    async def test_no_timer_fires_during_a_commit(self, autojump_clock: object, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "data", hop="inline")
        with trio.move_on_after(0.001) as scope:
            async with trio.open_nursery() as nursery:
                for n in range(20):
                    nursery.start_soon(store.commit, row(f"conv:{n}", 0, "pk:a"))
            await store.head("pk:new")
            await store.aclose()
        assert not scope.cancelled_caught


# ── what lasts ──


async def fill(store: SqliteStore) -> list[object]:
    """A bit of everything; returns what can be read of it."""
    await store.commit(
        Unit(
            append=Append("conv:a", 0, b"row", AT),
            puts=(Put("conv", "a", 0, b"doc", (("open", "pk"), ("due", 5))),),
            deliver=(Deliver("pk:a", "ring", own=True), Deliver("pk:b", "moving", data=b"{}", at=AT)),
            remember=Remember("pk:a", "k", b"digest", b"outcome", AT),
        )
    )
    await store.commit(row("conv:gone", 0, "pk:a"))
    await store.commit(Unit(drop=Drop("conv:gone")))
    await store.head("pk:silent")
    return await everything(store)


async def everything(store: SqliteStore) -> list[object]:
    heads = [await store.head(name) for name in ("pk:a", "pk:b", "pk:silent")]
    events = [await store.events(name, 0) for name in ("pk:a", "pk:b")]
    rows = [await store.entries(name) for name in ("conv:a", "conv:gone")]
    found = [await store.find("conv", "open", "pk"), await store.due("conv", "due", 5)]
    return [*heads, events, rows, found, await store.get("conv", "a"), await store.recall("pk:a", "k")]


@pytest.mark.requirement("store.durable")
async def test_all_is_there_again_after_closing_and_opening(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    before = await fill(store)
    await store.aclose()
    assert sorted(os.listdir(tmp_path)) == ["turret.db", "turret.lock"]
    store = SqliteStore(tmp_path)
    assert await everything(store) == before
    assert await refused(store, row("conv:gone", 1)) == "drop"
    assert await refused(store, row("conv:a", 0)) == "append"
    assert await refused(store, Unit(remember=Remember("pk:a", "k", b"", b"", AT))) == "remember"
    assert await refused(store, Unit(puts=(Put("conv", "a", 0, b""),))) == "put"
    await store.commit(
        Unit(append=Append("conv:a", 1, b"", AT), puts=(Put("conv", "b", 0, b"", (("open", "pk"),)),))
    )
    await store.commit(Unit(puts=(Put("conv", "a", 1, b"2", (("open", "pk"),)),), deliver=()))
    await store.commit(row("conv:b", 0, "pk:a"))
    assert [document.id for document in await store.find("conv", "open", "pk")] == ["a", "b"]
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 3]
    await store.aclose()


async def test_positions_are_never_given_again_even_when_all_events_are_gone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for n in range(3):
        await store.commit(row("conv:a", n, "pk:a"))
    await store.commit(Unit(drop=Drop("conv:a")))
    assert await store.sweep(Retention(now=0, events_before=AT + 1, events_keep=0)) == 3
    await store.aclose()
    store = SqliteStore(tmp_path)
    head = await store.head("pk:a")
    assert (head.oldest, head.newest) == (4, 3)
    await store.commit(row("conv:b", 0, "pk:a"))
    assert [event.position for event in await store.events("pk:a", 0)] == [4]
    await store.aclose()


@pytest.mark.requirement("store.numbers")
async def test_an_event_never_shows_another_row_that_took_the_place_of_its_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.commit(row("conv:a", 0, "pk:a"))
    await store.commit(Unit(drop=Drop("conv:a")))
    await store.aclose()
    store = SqliteStore(tmp_path)
    await store.commit(row("conv:b", 0))
    assert await store.events("pk:a", 0) == []
    await store.aclose()


@pytest.mark.requirement("store.durable")
async def test_a_copy_of_the_files_holds_what_commit_returned_for(store: SqliteStore, tmp_path: Path) -> None:
    before = await fill(store)
    (tmp_path / "copy").mkdir()
    for name in ("turret.db", "turret.db-wal"):
        copy(tmp_path / "data" / name, tmp_path / "copy" / name)
    other = SqliteStore(tmp_path / "copy")
    assert await everything(other) == before
    await other.aclose()


@pytest.mark.requirement("store.reads-write-nothing")
async def test_asking_for_streams_that_nobody_wrote_to_writes_nothing(store: SqliteStore) -> None:
    await store.commit(row("conv:a", 0, "pk:a"))
    before = store.writer.db.total_changes
    for number in range(100):
        head = await store.head(f"pk:{number}")
        assert await store.events(f"pk:{number}", 0) == []
        assert (head.oldest, head.newest) == (1, 0)
    assert store.writer.db.total_changes == before
    assert store.writer.db.execute("SELECT name FROM stream").fetchall() == [("pk:a",)]


@pytest.mark.requirement("store.epoch", "store.epoch-restored")
async def test_a_renewed_secret_gives_every_stream_another_epoch(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.commit(row("conv:a", 0, "pk:a"))
    before = [await store.head(name) for name in ("pk:a", "pk:silent")]
    await store.aclose()
    with closing(sqlite_file.connect(tmp_path / sqlite_file.FILE)) as db:
        sqlite_file.renew_secret(db)
    store = SqliteStore(tmp_path)
    after = [await store.head(name) for name in ("pk:a", "pk:silent")]
    assert [(head.oldest, head.newest) for head in after] == [(1, 1), (1, 0)]
    assert len({head.epoch for head in (*before, *after)}) == 4
    await store.aclose()


async def test_the_write_ahead_log_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "WAL_PAGES", 20)
    store = SqliteStore(tmp_path)
    largest = 0
    for n in range(100):
        await store.commit(Unit(append=Append("conv:a", n, b"x" * 3000, AT), deliver=()))
        largest = max(largest, (tmp_path / "turret.db-wal").stat().st_size)
    assert largest < 50 * 4096
    await store.aclose()


async def test_a_directory_is_open_once(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(InUse, match="in use"):
        SqliteStore(tmp_path / "data")
    await store.aclose()
    again = SqliteStore(tmp_path / "data")
    await again.aclose()


async def test_a_store_that_can_not_be_opened_lets_the_directory_go(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.aclose()
    with sqlite_file.prepare(tmp_path).open("r+b") as file:
        file.seek(100)
        file.write(b"?" * 8000)
    for _ in range(2):
        with pytest.raises(sqlite3.DatabaseError, match="malformed"):
            SqliteStore(tmp_path)


async def test_what_waits_is_committed_together(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = 0
    finish = store.writer.finish

    def count(texts: Texts | None) -> None:
        nonlocal commits
        commits += 1
        finish(texts)

    monkeypatch.setattr(store.writer, "finish", count)
    async with trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(store.commit, row(f"conv:{number}", 0, "pk:a"))
    assert commits <= 3
    assert (await store.head("pk:a")).newest == 200


async def test_more_than_a_batch_is_committed_in_several(tmp_path: Path) -> None:
    for hop in ("thread", "inline"):
        store = await SqliteStore.open(tmp_path / hop, hop=hop)
        async with trio.open_nursery() as nursery:
            for number in range(600):
                nursery.start_soon(store.commit, row(f"conv:{number}", 0, "pk:a"))
        assert (await store.head("pk:a")).newest == 600
        await store.aclose()


# ── what fails ──


Finish = Callable[[Texts | None], None]


def failing(name: str, *, done: Finish | None = None) -> Finish:
    """A COMMIT that fails with SQLite's error `name`, after `done`."""

    def finish(texts: Texts | None) -> None:
        if done is not None:
            done(texts)
        error = sqlite3.OperationalError(name)
        error.sqlite_errorname = name
        raise error

    return finish


@pytest.mark.requirement("store.in-doubt")
@pytest.mark.parametrize("landed", [False, True])
async def test_a_commit_that_failed_in_its_fsync_is_in_doubt_and_the_store_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    store = SqliteStore(tmp_path)
    heard: list[Event] = []
    store.watch(heard.extend)
    await store.commit(row("conv:a", 0, "pk:a"))
    with monkeypatch.context() as patch:
        done = store.writer.finish if landed else None
        patch.setattr(store.writer, "finish", failing("SQLITE_IOERR_FSYNC", done=done))
        with pytest.raises(InDoubt):
            await store.commit(row("conv:a", 1, "pk:a"))
    assert store.broken is not None
    for _ in range(2):
        with pytest.raises(Unavailable, match="FSYNC"):
            await store.commit(row("conv:a", 1, "pk:a"))
    assert (await store.head("pk:new")).newest == 0, "reading needs no writing"
    assert len(heard) == 1
    assert len(await store.entries("conv:a", limit=1)) == 1
    await store.aclose()
    store = SqliteStore(tmp_path)
    assert store.broken is None
    if landed:
        assert await refused(store, row("conv:a", 1, "pk:a")) == "append"
    else:
        await store.commit(row("conv:a", 1, "pk:a"))
    assert [entry.n for entry in await store.entries("conv:a")] == [0, 1]
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 2]
    await store.aclose()


@pytest.mark.requirement("store.unavailable")
async def test_a_commit_that_found_the_disk_full_is_tried_again_one_by_one(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = store.writer.finish
    answers = [failing("SQLITE_FULL"), finish, failing("SQLITE_FULL"), finish]
    monkeypatch.setattr(store.writer, "finish", lambda texts: answers.pop(0)(texts))
    failed: list[str] = []

    async def write(log: str) -> None:
        try:
            await store.commit(row(log, 0, "pk:a"))
        except Unavailable:
            failed.append(log)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(write, f"conv:{number}")
    assert len(failed) == 1
    assert await store.entries(failed[0]) == []
    assert store.broken is None
    monkeypatch.undo()
    await store.commit(row(failed[0], 0, "pk:a"))
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 2, 3]


def limit_pages(store: SqliteStore, more: int | None) -> None:
    """Make the disk as good as full: no more than `more` new pages. None: as large as it likes."""
    db = store.writer.db
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {2**30 if more is None else pages + more}")


@pytest.mark.requirement("store.unavailable")
async def test_a_full_disk_is_unavailable_and_writing_goes_on_when_there_is_room(store: SqliteStore) -> None:
    large = Unit(append=Append("conv:large", 0, b"x" * 200_000, AT), deliver=(Deliver("pk:a", "env"),))
    await store.commit(row("conv:a", 0, "pk:a"))
    limit_pages(store, 5)
    with pytest.raises(Unavailable, match="full"):
        await store.commit(large)
    assert await store.entries("conv:large") == []
    assert len(await store.entries("conv:a")) == 1
    assert store.broken is None
    await store.commit(row("conv:a", 1, "pk:a"))
    limit_pages(store, None)
    await store.commit(large)
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 2, 3]


@pytest.mark.requirement("store.unavailable")
@pytest.mark.parametrize("hop", ["thread", "inline"])
async def test_one_bad_unit_does_not_fail_those_that_wait_with_it(tmp_path: Path, hop: str) -> None:
    store = await SqliteStore.open(tmp_path, hop=hop)  # type: ignore[arg-type]  # both are literals
    await store.commit(SOME)
    limit_pages(store, 8)
    answers: dict[str, Exception | None] = {}

    async def write(log: str, unit: Unit) -> None:
        try:
            await store.commit(unit)
            answers[log] = None
        except Exception as error:
            answers[log] = error

    units = {
        "conv:a": row("conv:a", 0, "pk:a"),
        "conv:large": Unit(append=Append("conv:large", 0, b"x" * 200_000, AT)),
        "conv:some": SOME,
        "conv:late": Unit(append=Append("conv:late", 0, b"", 2**70)),
        "conv:b": row("conv:b", 0, "pk:a"),
    }
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for log, unit in units.items():
                nursery.start_soon(write, log, unit)
    assert answers["conv:a"] is answers["conv:b"] is None
    assert isinstance(answers["conv:large"], Unavailable)
    assert isinstance(answers["conv:some"], Conflict)
    assert isinstance(answers["conv:late"], OverflowError), "a fault of its maker, not of the disk"
    assert [len(await store.entries(log)) for log in units] == [1, 0, 1, 0, 1]
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 2]
    await store.aclose()


@pytest.mark.requirement("store.unavailable")
async def test_a_file_that_can_only_be_read_is_unavailable(store: SqliteStore) -> None:
    await store.commit(SOME)
    store.writer.db.execute("PRAGMA query_only = ON")
    with pytest.raises(Unavailable, match="readonly"):
        await store.commit(row("conv:a", 0, "pk:a"))
    with pytest.raises(Unavailable):
        await store.sweep(Retention(now=AT, events_before=AT, events_keep=0))
    assert len(await store.entries("conv:some")) == 1
    store.writer.db.execute("PRAGMA query_only = OFF")
    await store.commit(row("conv:a", 0, "pk:a"))


async def test_a_failed_batch_is_forgotten_by_what_the_writer_remembers(store: SqliteStore) -> None:
    """What it saw while it staged a batch that was rolled back must not count: facets, documents, heads."""
    put = Put("conv", "a", 0, b"1", (("open", "pk"),))
    large = Unit(Append("conv:a", 0, b"x" * 200_000, AT), (put,), (Deliver("pk:a", "env"),))
    await store.commit(SOME)
    limit_pages(store, 5)
    with pytest.raises(Unavailable):
        await store.commit(large)
    limit_pages(store, None)
    await store.commit(large)
    assert await store.find("conv", "open", "pk") == [Document("a", 1, b"1", 2)]
    assert [event.position for event in await store.events("pk:a", 0)] == [1]


# ── what hangs ──


@pytest.mark.requirement("store.tail", "store.reads-do-not-wait")
async def test_a_wedged_disk_holds_up_no_read_and_no_cancellation(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.commit(row("conv:a", 0, "pk:a"))
    wedged = threading.Event()
    finish = store.writer.finish

    def wait(texts: Texts | None) -> None:
        wedged.wait(10)
        finish(texts)

    monkeypatch.setattr(store.writer, "finish", wait)
    try:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.commit, row("conv:a", 1, "pk:a"))
                await trio.testing.wait_all_tasks_blocked()
                assert len(await store.entries("conv:a")) == 1, "what is not durable is not seen"
                assert [entry.n for entry in await store.tail("conv:a", limit=1)] == [0]
                assert (await store.head("pk:a")).newest == 1
                nursery.start_soon(store.commit, row("conv:a", 2, "pk:a"))
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            wedged.set()
            await store.commit(row("conv:a", 3, "pk:a"))
    finally:
        wedged.set()
    assert [event.position for event in await store.events("pk:a", 0)] == [1, 2, 3, 4]


async def test_a_listener_that_fails_takes_nothing_down(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def listener(_: object) -> None:
        raise LookupError("a fault")

    store.watch(listener)
    await store.commit(row("conv:a", 0, "pk:a"))
    await store.commit(row("conv:a", 1, "pk:a"))
    assert [record.message for record in caplog.records] == ["the listener failed"] * 2


async def test_a_read_that_fails_is_unavailable(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store._reader.close()
    with pytest.raises(Unavailable, match="can't read"):
        await store.entries("conv:a")


async def test_a_caller_that_fails_in_its_answer_takes_nothing_down(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def then(_: object) -> None:
        raise LookupError("a fault")

    store.submit(row("conv:a", 0, "pk:a"), then)
    await store.commit(row("conv:a", 1, "pk:a"))
    assert [record.message for record in caplog.records] == ["what was to follow a commit failed"]
