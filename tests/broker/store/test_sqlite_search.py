"""The embedded store's search: what reaches FTS5, what damage looks like, and that the loop goes on."""

import itertools
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from broker.store import sqlite_backup, sqlite_file, sqlite_search
from broker.store.memory import MemoryStore
from broker.store.port import Conflict, Put, Unavailable, Unit
from broker.store.sqlite import SqliteStore
from tests.broker.store.units import hits, put

texts = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    ("gold", "gold fish", "GOLD*", '"gold', "first : gold", "NEAR(gold fish)", "北京", "gö", "\ud800")
)
documents = st.lists(
    st.tuples(st.lists(texts, max_size=3), st.lists(st.sampled_from("xyz"), max_size=2)), max_size=8
)
questions = st.lists(st.tuples(texts | st.none(), st.lists(st.sampled_from("xyz"), max_size=2)), max_size=8)


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


kinds = itertools.count()
"""Each example has a kind of its own in the one store: to make a store takes longer than all else."""


async def of_memory(kept: Any, asked: Any) -> list[list[str]]:
    store = MemoryStore()
    for number, (text, marks) in enumerate(kept):
        await store.commit(put(str(number), *text, marks=marks))
    return [await hits(store, text, *marks) for text, marks in asked]


def of_sqlite(store: SqliteStore, kept: Any, asked: Any) -> list[list[str]]:
    kind = f"kind{next(kinds)}"
    store.writer.run(
        [put(str(number), *text, marks=marks, kind=kind) for number, (text, marks) in enumerate(kept)]
    )
    queries = [sqlite_search.matches(kind, text, [("tag", mark) for mark in marks]) for text, marks in asked]
    return [[document.id for document in store._searcher._find(kind, each, 0, 100)] for each in queries]


@pytest.mark.requirement("store.search-words")
def test_whatever_is_kept_and_asked_both_adapters_find_the_same(directory: Path) -> None:
    store = SqliteStore(directory, hop="inline")
    store.writer.db.execute("PRAGMA synchronous = OFF")

    @given(documents, questions)
    def compare(kept: Any, asked: Any) -> None:
        assert of_sqlite(store, kept, asked) == trio.run(of_memory, kept, asked)

    compare()
    trio.run(store.aclose)


def test_a_query_is_made_of_quoted_words_and_of_columns_of_ours() -> None:
    first, second, third = sqlite_search.matches("note", 'go "NEAR(x', [])
    every = '("go" AND "near" AND "x"*)'
    assert first.startswith("{first} : " + every + " AND marks : (")
    assert second.startswith("({first second} : " + every + " NOT {first} : " + every + ") AND marks : (")
    assert third.startswith("({first second third} : " + every + " NOT {first second} : " + every)
    assert sqlite_search.matches("note", "*", [("tag", "x")]) == []
    [filtered] = sqlite_search.matches("note", None, [("tag", '" OR "')])
    assert '" OR "' not in filtered


def test_index_rows_that_run_into_each_other_are_different_words() -> None:
    assert len({sqlite_search._mark(*each) for each in (("a", "b", "c"), ("a", "bc", ""), ("ab", "c"))}) == 3


@pytest.mark.requirement("store.search-loop")
async def test_a_search_runs_beside_the_loop(directory: Path) -> None:
    store = SqliteStore(directory)
    await store.commit(put("a", "gold"))
    searcher, went_on = store._searcher, trio.Event()
    token = trio.lowlevel.current_trio_token()
    find = searcher._find

    def slow(*args: Any) -> Any:
        trio.from_thread.run_sync(went_on.set, trio_token=token)
        return find(*args)

    searcher._find = slow  # type: ignore[method-assign]  # a seam of the test's
    with trio.fail_after(5):
        assert await hits(store, "gold") == ["a"]
        assert went_on.is_set()
        await store.aclose()


@pytest.mark.requirement("store.close")
async def test_closing_waits_for_the_search_that_is_under_way_and_refuses_the_next(directory: Path) -> None:
    store = SqliteStore(directory)
    await store.commit(put("a", "gold"))
    found: list[Any] = []

    async def search() -> None:
        try:
            found.append(await hits(store, "gold"))
        except Unavailable:
            found.append("refused")

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(search)
            await trio.testing.wait_all_tasks_blocked()
            await store.aclose()
    assert found[0] == ["a"]
    assert len(found) == 3
    with pytest.raises(Unavailable):
        await store.search("note", "gold")


@pytest.mark.requirement("store.search-damaged")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE document SET data = CAST('x' AS BLOB)",
        "DELETE FROM document",
        "UPDATE document SET kind = 'other'",
        "UPDATE search_data SET block = CAST('xxxxxxxxxxxxxxxx' AS BLOB)",
    ],
)
async def test_what_is_damaged_is_unavailable(directory: Path, sql: str, caplog: Any) -> None:
    store = SqliteStore(directory, hop="inline")
    await store.commit(put("a", "gold"))
    await store.aclose()
    with closing(sqlite3.connect(directory / sqlite_file.FILE, isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(sql)
    store = SqliteStore(directory, hop="inline")
    with pytest.raises(Unavailable, match="can't search"):
        await store.search("note", "gold")
    assert "can't search" in caplog.text
    await store.commit(Unit(puts=(Put("other", "b", 0, b"1"),)))  # others go on
    await store.aclose()


async def test_a_unit_that_conflicts_leaves_no_words_behind(directory: Path) -> None:
    store = SqliteStore(directory, hop="inline")
    await store.commit(put("a", "gold"))
    with pytest.raises(Conflict):
        await store.commit(Unit(puts=(put("b", "silver").puts[0], Put("note", "a", 0, b"x"))))
    assert await hits(store, "silver") == []
    await store.aclose()
    store = SqliteStore(directory, hop="inline")
    await store.commit(put("a", "silver", expect=1))  # what is searched is known after a start too
    assert (await hits(store, "gold"), await hits(store, "silver")) == ([], ["a"])
    await store.aclose()


@pytest.mark.requirement("store.schema")
async def test_a_store_of_the_fifth_schema_learns_to_search_and_keeps_its_documents(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list(sqlite_file.schema())
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "schema", lambda: iter(steps[:5]))
        path = sqlite_file.prepare(directory)
    with closing(sqlite_file.connect(path)) as db:
        db.execute("INSERT INTO document (id, kind, name, version, data) VALUES (1, 'note', 'a', 1, X'31')")
    store = SqliteStore(directory, hop="inline")
    assert await hits(store, None) == []
    await store.commit(put("a", "gold", expect=1))
    assert await hits(store, "gold") == ["a"]
    await store.aclose()


def test_an_sqlite_without_full_text_search_is_said(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "has_search", lambda: False)
    with pytest.raises(sqlite3.NotSupportedError, match="FTS5"):
        SqliteStore(directory)


@pytest.mark.requirement("store.search", "store.search-marks", "store.search-pages", "store.search-words")
async def test_what_the_index_holds_is_what_the_documents_say_now(directory: Path) -> None:
    store = SqliteStore(directory, hop="inline")
    await store.commit(put("a", "gold", marks=("x",)))
    await store.commit(put("b", "gold fish", marks=("y",)))
    await store.commit(put("c", "none", "gold", "fish"))
    await store.commit(put("d", "gold"))
    await store.commit(put("d", "silver fish", "gold", expect=1))
    assert await hits(store, "gold") == ["b", "a", "d", "c"]
    assert await hits(store, "gold fi") == ["b", "d", "c"]
    assert await hits(store, "gold", "x") == ["a"]
    one_by_one, place = [], 0
    while len(one_by_one) < 9 and (page := await store.search("note", "gold", after=place, limit=1)):
        one_by_one += [document.id for document in page]
        place = page[-1].order
    assert one_by_one == ["b", "a", "d", "c"]
    await store.commit(put("many", " ".join(f"w{number}" for number in range(40))))
    assert await hits(store, " ".join(f"w{number}" for number in range(40))) == ["many"]
    assert await hits(store, " ".join(f"w{number}" for number in range(40)) + " none") == []
    assert list(sqlite_search.misplaced(store.writer.db)) == []
    await store.aclose()


@pytest.mark.requirement("store.search")
async def test_a_restored_backup_finds_what_was_there(directory: Path) -> None:
    store = SqliteStore(directory / "data", hop="inline")
    await store.commit(put("a", "gold", marks=("x",)))
    file = directory / "backup"
    sqlite_backup.back_up(directory / "data", file, at=1, key=None, told=lambda *_: None)
    await store.commit(put("b", "gold"))
    await store.aclose()
    found = sqlite_backup.contents(file)
    with sqlite_backup.restoring(file, directory / "again", found, now_ms=2, told=lambda *_: None):
        pass
    store = SqliteStore(directory / "again", hop="inline")
    assert await hits(store, "gold", "x") == ["a"]
    await store.commit(put("b", "gold"))
    assert await hits(store, "gold") == ["b", "a"]
    assert list(sqlite_search.misplaced(store.writer.db)) == []
    await store.aclose()


@pytest.mark.requirement("store.search-loop")
async def test_beyond_so_many_that_wait_a_search_is_refused_at_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_search, "WAITING", 3)
    store = SqliteStore(directory, hop="inline")
    await store.commit(put("a", "gold"))
    answers: list[str] = []

    async def search() -> None:
        try:
            answers.extend(await hits(store, "gold"))
        except Unavailable:
            answers.append("refused")

    async with trio.open_nursery() as nursery, store._searcher._turn:
        for _ in range(5):
            nursery.start_soon(search)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == ["refused"] * 2
    assert sorted(answers) == ["a"] * 3 + ["refused"] * 2
    await store.aclose()
