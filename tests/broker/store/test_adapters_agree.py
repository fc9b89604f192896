"""Random programs of units, played on both adapters: the same answers, and the same reads afterwards.

A program is planned by Hypothesis and played in one run, with the embedded store closed and opened where it says.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.store import sqlite_file, sqlite_tail
from broker.store.memory import MemoryStore
from broker.store.port import (
    Append,
    Conflict,
    Deliver,
    Document,
    Drop,
    Event,
    Put,
    Remember,
    Retention,
    Store,
    Unit,
)
from broker.store.sqlite import SqliteStore

LOGS = ("conv:a", "conv:b", "conv:c")
STREAMS = ("pk:a", "pk:b")
IDS = ("one", "two")
MARKS: tuple[tuple[str, str | int], ...] = (
    ("code", "A"),
    ("code", "B"),
    ("code", "1"),
    ("due", 1),
    ("due", 2),
    ("code", 1),
)
Step = Unit | Retention | str

texts = st.binary(max_size=3)
times = st.integers(0, 9)
appends = st.builds(Append, st.sampled_from(LOGS), st.integers(0, 4), texts, times)
puts = st.builds(
    Put,
    st.sampled_from(("desk", "conv")),
    st.sampled_from(IDS),
    st.integers(0, 3),
    st.none() | texts,
    st.lists(st.sampled_from(MARKS), max_size=4).map(tuple),
    st.lists(st.sampled_from(("a", "a b", "B", "")), max_size=3).map(tuple),
)
deliveries = st.builds(
    Deliver,
    st.sampled_from(STREAMS),
    st.sampled_from(("env", "end")),
    st.booleans(),
    st.none() | texts,
    times,
)
units = st.builds(
    Unit,
    st.none() | appends,
    st.lists(puts, max_size=3).map(tuple),
    st.lists(deliveries, max_size=3).map(tuple),
    st.none()
    | st.builds(Remember, st.sampled_from(STREAMS), st.sampled_from(("k", "l")), texts, texts, times),
    st.none() | st.sampled_from([None] * 9 + [Drop(log) for log in LOGS]),
)
retentions = st.builds(Retention, now=times, events_before=times, events_keep=st.integers(0, 3))
programs = st.lists(
    st.one_of(units, units, units, units, retentions, st.just("reopen"), st.just("crash")),
    min_size=1,
    max_size=30,
)
flushes = st.sampled_from((1, 2, 5, 9, 6144))
"""After how many items the embedded store begins to write its runs."""


async def answer(store: Store, step: Unit | Retention, limit: int) -> object:
    """What a store says to one step, as a value."""
    try:
        if isinstance(step, Unit):
            await store.commit(step)
            return None
        return await store.sweep(step, limit)
    except Conflict as conflict:
        return conflict.what, conflict.key
    except ValueError:
        return "fault"


def without_order(documents: list[Document]) -> list[tuple[str, int, bytes]]:
    """The order's numbers are each adapter's own; what they order is not."""
    return [(document.id, document.version, document.doc) for document in documents]


async def everything(store: Store) -> list[object]:
    """All that can be read, in pages of different sizes."""
    read: list[object] = []
    for log in LOGS:
        read += [await store.entries(log), await store.entries(log, 1, 2)]
        read += [await store.tail(log), await store.tail(log, 2, 1)]
    for stream in STREAMS:
        head = await store.head(stream)
        read += [head.oldest, head.newest]
        read += [await store.events(stream, 0), await store.events(stream, 1, 2)]
        read += [await store.recall(stream, key) for key in ("k", "l")]
    for kind in ("desk", "conv"):
        read += [await store.get(kind, id) for id in IDS]
        for name, value in MARKS:
            if isinstance(value, int):
                read.append(await store.due(kind, name, value))
            else:
                found = await store.find(kind, name, value)
                read += [
                    without_order(found),
                    without_order(await store.find(kind, name, value, newest=True)),
                ]
                after = found[0].order if found else 0
                read.append(without_order(await store.find(kind, name, value, after, 1)))
                for text in (None, "a", "b a"):  # a document that went and came back may have its old place
                    hits = await store.search(kind, text, [(name, value)])
                    read.append(sorted((hit.order >> 48, hit.id, hit.doc) for hit in hits))
    return read


def crashed(directory: Path, times: int) -> Path:
    """What a process that ended this moment would have left, elsewhere."""
    left = directory.with_name(f"{directory.name}-{times}")
    left.mkdir()
    for name in (sqlite_file.FILE, f"{sqlite_file.FILE}-wal"):
        copy(directory / name, left / name)
    return left


async def play(program: list[Step], directory: Path) -> None:
    memory = MemoryStore()
    embedded = SqliteStore(directory, hop="inline")
    told: tuple[list[Event], list[Event]] = ([], [])
    memory.watch(told[0].extend)
    embedded.watch(told[1].extend)
    for times, step in enumerate(program):
        if isinstance(step, str):
            left = crashed(directory, times) if step == "crash" else directory
            await embedded.aclose()
            directory = left
            embedded = SqliteStore(directory, hop="inline")
            embedded.watch(told[1].extend)
        else:
            assert await answer(memory, step, 2) == await answer(embedded, step, 2)
    assert told[0] == told[1]
    assert await everything(memory) == await everything(embedded)
    await embedded.aclose()
    embedded = SqliteStore(directory, hop="inline")
    assert await everything(memory) == await everything(embedded)
    await embedded.aclose()


@contextmanager
def flushing(every: int) -> Iterator[None]:
    before = sqlite_tail.FLUSH, sqlite_tail.SLICE, sqlite_tail.RUN
    sqlite_tail.FLUSH, sqlite_tail.SLICE, sqlite_tail.RUN = every, 1, 2  # type: ignore[misc]  # a test's
    try:
        yield
    finally:
        sqlite_tail.FLUSH, sqlite_tail.SLICE, sqlite_tail.RUN = before  # type: ignore[misc]  # as they were


@given(programs, flushes)
def test_both_adapters_give_the_same_answers_and_reads(program: list[Step], every: int) -> None:
    with tempfile.TemporaryDirectory() as directory, flushing(every):
        trio.run(play, program, Path(directory) / "data")


async def together(units: list[Unit], directory: Path) -> None:
    """All at once, so that they share batches; then the same, one by one, in the order that the log shows."""
    embedded = SqliteStore(directory, hop="inline")
    landed: list[Unit] = []
    order: list[int] = []

    async def write(number: int, unit: Unit, then: Callable[[Unit], None]) -> None:
        order.append(number)
        try:
            await embedded.commit(unit)
        except (Conflict, ValueError):
            return
        then(unit)

    async with trio.open_nursery() as nursery:
        for number, unit in enumerate(units):
            nursery.start_soon(write, number, unit, landed.append)
    memory = MemoryStore()
    accepted = [number for number in order if await answer(memory, units[number], 0) is None]
    assert sorted(map(repr, landed)) == sorted(repr(units[number]) for number in accepted)
    assert await everything(memory) == await everything(embedded)
    await embedded.aclose()


@given(st.lists(units, min_size=2, max_size=30), flushes)
@settings(max_examples=30)
def test_units_that_share_a_batch_are_as_if_they_came_one_by_one(units: list[Unit], every: int) -> None:
    with tempfile.TemporaryDirectory() as directory, flushing(every):
        trio.run(together, units, Path(directory))
