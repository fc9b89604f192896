"""What was not written so is not handed out: changed, exchanged and missing rows, events and documents."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.store.port import Deliver, Drop, Put, Remember, Remembered, Unavailable, Unit
from broker.store.sqlite import SqliteStore
from broker.store.sums import damaged, sum_of
from tests.broker.store.units import row

pytestmark = pytest.mark.requirement("faults.damage")


def test_a_sum_knows_every_bit_and_every_place() -> None:
    text = b"what was said"
    for index in range(len(text)):
        for bit in range(8):
            changed = bytearray(text)
            changed[index] ^= 1 << bit
            assert sum_of(b"to whom", bytes(changed)) != sum_of(b"to whom", text)
    assert sum_of(b"a", b"b") == sum_of(b"ab")
    assert "row 3 is damaged" in str(damaged("row 3"))


async def filled(folder: Path) -> SqliteStore:
    """Two logs of 100 rows told to a stream each, one document; all of it in runs."""
    store = SqliteStore(folder, hop="inline")
    for n in range(100):
        await store.commit(row("a", n, "pk:a"))
        await store.commit(row("b", n, "pk:b"))
    await store.commit(Unit(puts=(Put("conv", "c", 0, b'{"a":1}', (("party", "p"), ("due", 5))),)))
    await store.aclose()
    return SqliteStore(folder, hop="inline")


Read = Callable[[SqliteStore], Awaitable[Any]]
ROWS: tuple[Read, ...] = (
    lambda store: store.entries("a", -1, 500),
    lambda store: store.tail("a", None, 500),
)
EVENTS: Read = lambda store: store.events("pk:a", 0, 500)  # noqa: E731
DOCUMENTS: tuple[Read, ...] = (
    lambda store: store.get("conv", "c"),
    lambda store: store.find("conv", "party", "p"),
    lambda store: store.due("conv", "due", 9),
)
SPOILT: dict[str, tuple[str, tuple[Read, ...]]] = {
    "a letter of a row": ("UPDATE text SET data = data || ' ' WHERE log = 1 AND n = 50", (*ROWS, EVENTS)),
    "whom a row was told": ("UPDATE text SET told = '[]' || told WHERE log = 1 AND n = 50", (*ROWS, EVENTS)),
    "a row's number": ("UPDATE text SET n = 51 WHERE log = 1 AND n = 50", ROWS),
    "a row of another log": ("UPDATE text SET log = 2 WHERE log = 1 AND n = 50", ROWS),
    "a row that is gone": ("DELETE FROM text WHERE log = 1 AND n = 50", (*ROWS, EVENTS)),
    "a run of another log": (
        "UPDATE log_run SET texts = (SELECT texts FROM log_run WHERE log = 2 AND last = 63)"
        " WHERE log = 1 AND last = 63",
        ROWS,
    ),
    "a run of rows that is gone": ("DELETE FROM log_run WHERE log = 1 AND last = 63", ROWS[:1]),
    "an event of another stream": (
        "UPDATE stream_run SET events = (SELECT events FROM stream_run WHERE stream = 2 AND last = 64)"
        " WHERE stream = 1 AND last = 64",
        (EVENTS,),
    ),
    "a run of events that is gone": ("DELETE FROM stream_run WHERE stream = 1 AND last = 64", (EVENTS,)),
    "a letter of a document": ("UPDATE document SET data = '{\"a\":2}'", DOCUMENTS[:2]),
    "a document that is gone": ("DELETE FROM document", DOCUMENTS[1:]),
    "a document of another kind": ("UPDATE document SET kind = 'desk'", DOCUMENTS[1:]),
}


@pytest.mark.parametrize("what", SPOILT)
async def test_what_was_not_written_so_is_not_handed_out(tmp_path: Path, what: str) -> None:
    change, reads = SPOILT[what]
    store = await filled(tmp_path)
    for read in reads:
        assert await read(store)
    store.writer.db.execute(change)
    for read in reads:
        with pytest.raises(Unavailable, match=r"can't read: .* is damaged; turret check tells more"):
            await read(store)
    assert len(await store.entries("b", -1, 500)) == 100, "the rest is served"
    assert len(await store.events("pk:b", 0, 500)) == 100
    await store.aclose()


@pytest.mark.parametrize("member", ["digest", "outcome"])
async def test_an_answer_that_has_changed_is_not_given_again(tmp_path: Path, member: str) -> None:
    store = await filled(tmp_path)
    for key in ("one", "other"):
        await store.commit(Unit(remember=Remember("pk", key, b"digest", b"outcome", 9)))
    store.writer.db.execute(f"UPDATE remembered SET {member} = {member} || 'x' WHERE name = 'one'")
    with pytest.raises(Unavailable, match="a remembered answer is damaged"):
        await store.recall("pk", "one")
    assert await store.recall("pk", "other") == Remembered(b"digest", b"outcome", 9)
    store.writer.db.execute("UPDATE remembered SET sum = NULL")
    assert await store.recall("pk", "one") is not None, "one from before there were sums"
    await store.aclose()


async def test_a_document_that_is_due_and_damaged_has_no_text_and_hides_no_other(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    await store.commit(Unit(puts=(Put("conv", "d", 0, b"{}", (("due", 6),)),)))
    store.writer.db.execute("UPDATE document SET data = '{\"a\":2}' WHERE name = 'c'")
    assert [(each.id, each.doc) for each in await store.due("conv", "due", 9)] == [("c", b""), ("d", b"{}")]
    await store.aclose()


async def test_rows_that_a_drop_has_taken_are_no_damage(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    await store.commit(Unit(drop=Drop("a")))
    assert await store.entries("a") == await store.tail("a") == []
    assert await store.events("pk:a", 0, 500) == []
    await store.commit(Unit(deliver=(Deliver("pk:a", "desk_closed", data=b"{}"),)))
    assert [event.position for event in await store.events("pk:a", 0, 500)] == [101]
    await store.aclose()


async def test_rows_from_before_there_were_sums_are_taken_as_they_are(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    store.writer.db.execute("UPDATE text SET sum = NULL")
    store.writer.db.execute("UPDATE document SET sum = NULL")
    for read in (*ROWS, EVENTS, *DOCUMENTS):
        assert await read(store)
    await store.aclose()
