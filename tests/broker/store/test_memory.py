"""The reference adapter: the law, and the gate that other tests lean on."""

import pytest
import trio
import trio.testing

from broker.store.memory import MemoryStore
from broker.store.port import Event, InDoubt, Store, Unavailable, Unit

pytest.register_assert_rewrite(
    "tests.broker.store.conformance", "tests.broker.store.searching", "tests.broker.store.submitting"
)

from tests.broker.store.conformance import Conformance  # noqa: E402  # rewritten first
from tests.broker.store.units import SOME, refused, row  # noqa: E402


@pytest.mark.requirement(
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
class TestConformance(Conformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


async def test_a_held_commit_is_written_when_it_is_released() -> None:
    store = MemoryStore()
    store.gate.hold()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, row("conv:a", 0))
            nursery.start_soon(store.commit, row("conv:b", 0))
            await trio.testing.wait_all_tasks_blocked()
            assert store.gate.waiting == 1
            assert await store.entries("conv:a") == []
            store.gate.release()
    assert len(await store.entries("conv:a")) == len(await store.entries("conv:b")) == 1


@pytest.mark.parametrize("written", [False, True])
async def test_who_gives_up_on_a_held_commit_leaves_it_written_or_not(written: bool) -> None:
    store = MemoryStore()
    store.gate.hold(written=written)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, SOME)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        store.gate.release()
    assert bool(await store.entries("conv:some")) is written
    await store.commit(row("conv:b", 0))


async def test_a_broken_commit_is_not_written_and_the_next_one_is() -> None:
    store = MemoryStore()
    store.gate.fail_next(Unavailable("full"))
    with pytest.raises(Unavailable, match="full"):
        await store.commit(SOME)
    assert await store.entries("conv:some") == []
    await store.commit(SOME)


@pytest.mark.parametrize("told", [False, True])
async def test_what_is_in_doubt_may_have_been_applied(told: bool) -> None:
    store = MemoryStore()
    heard: list[Event] = []
    store.watch(heard.extend)
    store.gate.fail_next(InDoubt("lost"), applied=True, told=told)
    with pytest.raises(InDoubt):
        await store.commit(row("conv:a", 0, "pk:a"))
    assert len(await store.entries("conv:a")) == 1
    assert len(heard) == told
    assert await refused(store, row("conv:a", 0, "pk:a")) == "append"


async def test_a_fault_waits_for_the_commit_that_it_is_meant_for() -> None:
    store = MemoryStore()

    def meant(unit: Unit) -> bool:
        return unit.append is not None and unit.append.log == "conv:b"

    store.gate.fail_next(InDoubt(), when=meant)
    await store.commit(row("conv:a", 0))
    with pytest.raises(InDoubt):
        await store.commit(row("conv:b", 0))
    assert await store.entries("conv:b") == []


async def test_only_what_is_in_doubt_may_be_applied() -> None:
    with pytest.raises(ValueError, match="doubt"):
        MemoryStore().gate.fail_next(Unavailable(), applied=True)


async def test_a_broken_store_refuses_writes_and_reads_on() -> None:
    store = MemoryStore()
    await store.commit(SOME)
    store.broken = "the disk is gone"
    with pytest.raises(Unavailable, match="the disk is gone"):
        await store.commit(row("conv:a", 0))
    assert len(await store.entries("conv:some")) == 1


@pytest.mark.requirement("store.reads-write-nothing")
async def test_asking_for_a_stream_that_nobody_wrote_to_takes_no_room() -> None:
    store = MemoryStore()
    for number in range(100):
        await store.head(f"pk:{number}")
        await store.events(f"pk:{number}", 0)
    assert not store._streams


@pytest.mark.requirement("store.epoch")
async def test_another_store_gives_a_stream_another_epoch() -> None:
    assert (await MemoryStore().head("pk:a")).epoch != (await MemoryStore().head("pk:a")).epoch


async def test_room_is_what_a_test_says() -> None:
    store = MemoryStore()
    store.free = 12
    assert store.free_bytes() == 12


async def test_what_is_submitted_waits_at_the_gate_like_a_commit() -> None:
    store = MemoryStore()
    answers: list[BaseException | None] = []
    store.gate.hold()
    store.submit(SOME, answers.append)
    store.gate.fail_next(InDoubt("lost"), applied=True)
    await trio.testing.wait_all_tasks_blocked()
    assert (answers, store.gate.waiting) == ([], 1)
    store.gate.release()
    await trio.testing.wait_all_tasks_blocked()
    assert [str(answer) for answer in answers] == ["lost"]
    assert len(await store.entries("conv:some")) == 1
