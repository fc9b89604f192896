"""Pages by the place of the last one shown."""

import pytest

from broker.store.memory import MemoryStore
from broker.store.port import Put, Unit
from broker.tools.paging import cursor, read_page
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
        documents, more = page
        seen.append([each.id for each in documents])
        after = cursor("in", documents[-1])
        assert more is (len(seen) < 3)
    assert seen == [["4", "3"], ["2", "1"], ["0"]]
    skipped = await read_page(store, "x", "in", "a", None, 2, skip=3)
    assert not isinstance(skipped, Refusal)
    assert ([each.id for each in skipped[0]], skipped[1]) == (["1", "0"], False)


@pytest.mark.parametrize(
    "after", ["", "in", "in-", "in-0", "in--1", "in-x", "out-3", "in-1.0", "in-²", "in-" + "1" * 19]
)
async def test_what_is_no_cursor_of_the_list_is_refused(after: str) -> None:
    assert isinstance(await read_page(MemoryStore(), "x", "in", "a", after, 2), Refusal)
