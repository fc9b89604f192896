"""What is stored is decoded by its type, or named as damaged, once a minute, without all of a conversation's id."""

import logging

import msgspec
import pytest

from broker.store.memory import MemoryStore
from broker.store.port import Put, Unavailable, Unit
from broker.store.stored import damaged, every, read_row, stored

pytestmark = pytest.mark.requirement("faults.damage")


class Point(msgspec.Struct):
    """Something stored."""

    x: int


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"x":"1"}', b"\xff", b'{"x":1}{', b"[" * 9_999, b'{"x":' + b"[" * 9_999]
)
def test_what_is_no_such_thing_is_unavailable_and_named(
    text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"POINT {text[:20]!r} of {len(text)}"
    for _ in range(3):
        with pytest.raises(Unavailable, match="is damaged"):
            stored(Point, text, "code", name)
    [said] = [each for each in caplog.records if name in each.getMessage()]
    assert (said.levelno, said.name) == (logging.ERROR, "turret.store")


def test_what_is_whole_is_given() -> None:
    assert stored(Point, b'{"x":1,"more":2}', "code", "a") == Point(1)


def test_a_conversations_id_is_not_told_whole(caplog: pytest.LogCaptureFixture) -> None:
    error = damaged("conv", "a1b2c3d4e5f6a7b8", "gone")
    assert "conv a1b2c3d4… is damaged: gone" in caplog.text
    assert "e5f6" not in caplog.text + str(error)


async def test_a_row_is_read_by_its_type_and_all_of_an_index_page_after_page() -> None:
    store = MemoryStore()
    for x in range(5):
        await store.commit(Unit(puts=(Put("point", f"p{x}", 0, b'{"x":%d}' % x, (("all", "1"),)),)))
    assert await read_row(store, Point, "point", "p3") == Point(3)
    assert await read_row(store, Point, "point", "p9") is None
    for page in (1, 2, 5, 500):
        assert [document.id async for document in every(store, "point", "all", "1", page)] == [
            f"p{x}" for x in range(5)
        ]
