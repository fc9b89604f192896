"""Pages by the place of the last one shown."""

import pytest

from broker.store.memory import MemoryStore
from broker.store.port import Document, Put, Unit
from broker.tools.paging import PAGE_BYTES, cursor, fitting, read_page, scan
from broker.wire.refusals import Refusal


async def test_pages_follow_each_other_newest_first() -> None:
    store = MemoryStore()
    for n in range(5):
        await store.commit(Unit(puts=(Put("x", str(n), 0, b"{}", (("in", "a"),)),)))
    after: str | None = None
    seen: list[list[str]] = []
    for _ in range(3):
        page = await read_page(store, "x", "in", "a", after, 2)
        assert not isinstance(page, Refusal)
        seen.append([each.id for each in page.documents])
        after = page.next
        assert (after is None) is (len(seen) == 3)
    assert seen == [["4", "3"], ["2", "1"], ["0"]]
    skipped = await read_page(store, "x", "in", "a", None, 2, skip=3)
    assert not isinstance(skipped, Refusal)
    assert ([each.id for each in skipped.documents], skipped.next) == (["1", "0"], None)


@pytest.mark.parametrize(
    "after", ["", "in", "in-", "in--1", "in-x", "out-3", "in-1.0", "in-²", "in-" + "1" * 19]
)
async def test_what_is_no_cursor_of_the_list_is_refused(after: str) -> None:
    assert isinstance(await read_page(MemoryStore(), "x", "in", "a", after, 2), Refusal)


async def test_a_list_may_be_read_from_its_oldest_on_and_anew_from_its_beginning() -> None:
    store = MemoryStore()
    for n in range(3):
        await store.commit(Unit(puts=(Put("x", str(n), 0, b"{}", (("in", "a"),)),)))
    page = await read_page(store, "x", "in", "a", cursor("in", 0), 2, newest=False)
    assert not isinstance(page, Refusal)
    assert [each.id for each in page.documents] == ["0", "1"]
    last = await read_page(store, "x", "in", "a", page.next, 2, newest=False)
    assert not isinstance(last, Refusal)
    assert ([each.id for each in last.documents], last.next) == (["2"], None)


@pytest.mark.parametrize(("looked_at", "step"), [(3, 2), (4, 2), (2, 5), (500, 2)])
@pytest.mark.parametrize("newest", [False, True])
async def test_a_scan_gives_what_fits_however_it_is_cut(
    looked_at: int, step: int, newest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.tools.paging.LOOKED_AT", looked_at)
    monkeypatch.setattr("broker.tools.paging.STEP", step)
    store = MemoryStore()
    for n in range(8):
        await store.commit(Unit(puts=(Put("x", str(n), 0, b"{}", (("in", "a"),)),)))

    def even(document: Document) -> int | None:
        return int(document.id) if int(document.id) % 2 == 0 else None

    seen: list[int] = []
    after: str | None = None
    for _ in range(9):
        page = await scan(store, "x", ("in", "a"), even, after, 2, newest=newest)
        assert not isinstance(page, Refusal)
        assert len(page.rows) <= 2
        seen += page.rows
        after = page.next
        if after is None:
            break
    assert after is None
    assert seen == ([6, 4, 2, 0] if newest else [0, 2, 4, 6])
    assert isinstance(await scan(store, "x", ("in", "a"), even, "in-1", 2, called="other"), Refusal)


async def test_the_next_page_of_texts_begins_where_the_one_before_was_full() -> None:
    store = MemoryStore()
    for n in range(3):
        large = b'"%s"' % (b"x" * (PAGE_BYTES // 2))
        await store.commit(Unit(puts=(Put("x", str(n), 0, large, (("in", "a"),)),)))
    first = await read_page(store, "x", "in", "a", None, 3, texts=True)
    assert not isinstance(first, Refusal)
    assert [each.id for each in first.documents] == ["2"]
    second = await read_page(store, "x", "in", "a", first.next, 1, texts=True)
    assert not isinstance(second, Refusal)
    assert [each.id for each in second.documents] == ["1"]
    last = await read_page(store, "x", "in", "a", second.next, 3, texts=True)
    assert not isinstance(last, Refusal)
    assert ([each.id for each in last.documents], last.next) == (["0"], None)


def test_a_page_of_texts_ends_before_it_is_too_large_but_holds_one() -> None:
    large = "x" * (PAGE_BYTES + 1)
    assert fitting([large, "a"], len) == [large]
    assert fitting(["a", large, "b"], len) == ["a"]
    assert fitting(["a" * (PAGE_BYTES - 1), "b", "c"], len) == ["a" * (PAGE_BYTES - 1), "b"]
    assert fitting([], len) == []
