import random
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.reader import NEAR, PAGE, Delivery, Ended, Reader, Slow
from broker.actors.streams import Hub
from broker.clock import VirtualClock
from broker.config import Streams
from broker.store.port import Drop, Retention, Unit
from broker.wire.refusals import refuse
from tests.support.streams import AT, SteppedStore, Writer

MOVED = refuse("desk_moved", "this desk has moved")


def make(clock: VirtualClock, **settings: int) -> tuple[SteppedStore, Hub, Writer]:
    store = SteppedStore()
    return store, Hub(store, Streams(**settings), clock), Writer(store)


async def receive(reader: Reader, count: int) -> list[int]:
    """Positions of the next events, until there are `count`."""
    got: list[Delivery] = []
    with trio.fail_after(5):
        while len(got) < count:
            got += await reader.receive()
    return [each.position for each in got]


@pytest.mark.requirement("streams.row-members")
async def test_a_row_is_told_with_cursor_own_and_accepted_at(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    async with await hub.read("pk:aa", None) as reader:
        await writer.write(kind="ring", own=True)
        (delivery,) = await reader.receive()
    assert delivery.kind == "ring"
    assert delivery.own
    assert msgspec.json.decode(delivery.params) == {
        "cursor": delivery.cursor,
        "own": True,
        "accepted_at": AT,
        "conv": "conv:1",
        "n": 0,
        "sig": "s0",
        "chain": "c0",
        "envelope": {"pad": ""},
    }


@pytest.mark.parametrize("data", [b'{"code":"EURO"}', b"{}"])
async def test_an_event_with_data_of_its_own_has_no_accepted_at(clock: VirtualClock, data: bytes) -> None:
    _, hub, writer = make(clock)
    async with await hub.read("pk:aa", None) as reader:
        await writer.tell("desk_closed", data)
        (delivery,) = await reader.receive()
    told = msgspec.json.decode(delivery.params)
    assert told == {"cursor": delivery.cursor, "own": False} | msgspec.json.decode(data)


@pytest.mark.requirement("streams.stored-then-live")
async def test_commits_while_the_stored_part_is_read_come_once_and_in_order(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(PAGE + 20)
    async with await hub.read("pk:aa", "0") as reader:
        store.after_read = lambda: writer.write(3)
        got = []
        for _ in range(5):
            got += [each.position for each in await reader.receive()]
            assert not reader.live
        store.after_read = None
        got += await receive(reader, 3)
        assert reader.live
        await writer.write(2)
        got += await receive(reader, 2)
    assert got == list(range(1, writer.written + 1))


@pytest.mark.requirement("streams.stored-then-live")
@pytest.mark.parametrize("seed", range(20))
async def test_any_interleaving_of_writing_reading_and_cancelling_gives_each_once(
    clock: VirtualClock, seed: int
) -> None:
    rng = random.Random(seed)
    store, hub, writer = make(clock)
    total = 400

    async def dawdle() -> None:
        for _ in range(rng.randrange(4)):
            await trio.lowlevel.checkpoint()

    async def write() -> None:
        while writer.written < total:
            await writer.write(min(rng.randrange(1, 30), total - writer.written))
            await dawdle()

    async def read(after: str | None) -> None:
        await dawdle()
        got: list[int] = []
        async with await hub.read("pk:aa", after) as reader:
            first = int(reader.resume.from_.rpartition(".")[2]) + 1
            while len(got) < total + 1 - first:
                with trio.move_on_after(5) as scope:
                    if rng.random() < 0.3:
                        scope.cancel()
                    got += [each.position for each in await reader.receive()]
                await dawdle()
        assert got == list(range(first, total + 1))

    await writer.write(rng.randrange(200))
    store.after_read = dawdle
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            for _ in range(4):
                nursery.start_soon(read, "0")
                nursery.start_soon(read, None)


async def test_a_reader_in_its_backlog_holds_at_most_a_page(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(PAGE * 3)
    async with await hub.read("pk:aa", "0") as reader:
        assert len(await reader.receive()) == PAGE
        await writer.write(PAGE)
        assert reader.pending == (0, 0)
        assert await receive(reader, PAGE * 3) == list(range(PAGE + 1, PAGE * 4 + 1))


@pytest.mark.requirement("streams.backlog-is-not-slowness")
async def test_a_backlog_beyond_the_queue_is_no_slowness(clock: VirtualClock) -> None:
    _, hub, writer = make(clock, queue_events=4)
    await writer.write(500)
    async with await hub.read("pk:aa", "0") as reader:
        assert await receive(reader, 500) == list(range(1, 501))


@pytest.mark.requirement("streams.slow-reader-is-closed")
async def test_a_reader_beyond_its_queue_of_events_is_slow_and_one_at_the_bound_is_not(
    clock: VirtualClock,
) -> None:
    _, hub, writer = make(clock, queue_events=10)
    async with await hub.read("pk:aa", None) as reader:
        await writer.write(10)
        assert reader.pending[0] == 10
        assert await receive(reader, 10) == list(range(1, 11))
        await writer.write(11)
        for _ in range(2):
            with pytest.raises(Slow):
                await reader.receive()
        assert reader.pending == (0, 0)
    assert hub.statistics().slow == 1
    async with await hub.read("pk:aa", reader.resume.head) as again:
        assert again.resume.recovered
        assert await receive(again, 21) == list(range(1, 22))


@pytest.mark.requirement("streams.slow-reader-is-closed")
async def test_a_reader_beyond_its_queue_of_bytes_is_slow(clock: VirtualClock) -> None:
    store, hub, _ = make(clock, queue_bytes=20_000)
    writer = Writer(store, size=6_000)
    async with await hub.read("pk:aa", None) as reader:
        await writer.write(3)
        assert 18_000 < reader.pending[1] < 20_000
        await writer.write(1)
        with pytest.raises(Slow):
            await reader.receive()


async def test_what_was_taken_no_longer_counts_as_pending(clock: VirtualClock) -> None:
    _, hub, writer = make(clock, queue_events=PAGE + 10)
    async with await hub.read("pk:aa", None) as reader:
        await writer.write(PAGE + 10)
        size = reader.pending[1]
        first = await reader.receive()
        assert len(first) == PAGE
        assert reader.pending == (10, size - sum(len(each.params) for each in first))
        await writer.write(PAGE)
        assert await receive(reader, PAGE + 10) == list(range(PAGE + 1, PAGE * 2 + 11))
        assert reader.pending == (0, 0)


@pytest.mark.requirement("streams.slow-reader-slows-nobody")
async def test_a_reader_that_stands_still_disturbs_no_other(clock: VirtualClock) -> None:
    _, hub, writer = make(clock, queue_events=10)
    async with await hub.read("pk:aa", None) as slow, await hub.read("pk:aa", None) as brisk:
        got = []
        for _ in range(40):
            await writer.write()
            got += await receive(brisk, 1)
        assert got == list(range(1, 41))
        with pytest.raises(Slow):
            await slow.receive()


async def test_one_batch_beyond_the_queue_is_no_fault_of_a_reader_that_was_up_to_date(
    clock: VirtualClock,
) -> None:
    store, hub, writer = make(clock, queue_events=10)
    async with await hub.read("pk:aa", None) as reader:
        store._listener = None  # commits that the store will tell of together
        await writer.write(15)
        hub.committed(await store.events("pk:aa", 0))
        assert not reader.live
        assert await receive(reader, 15) == list(range(1, 16))


async def test_a_hint_with_a_gap_sends_the_reader_to_the_store(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    async with await hub.read("pk:aa", None) as reader:
        listener, store._listener = store._listener, None
        await writer.write(3)
        store._listener = listener
        await writer.write(1)
        assert await receive(reader, 4) == [1, 2, 3, 4]
        assert reader.live


async def test_hints_of_what_was_read_already_are_passed_over(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(4)
    async with await hub.read("pk:aa", "0") as reader:
        await receive(reader, 4)
        store._listener = None
        await writer.write(2)
        hub.committed(await store.events("pk:aa", 1))
        assert await receive(reader, 2) == [5, 6]
        hub.committed(await store.events("pk:aa", 0))
        assert reader.pending == (0, 0)
        assert reader.live


async def test_a_cancelled_receive_loses_nothing(clock: VirtualClock, autojump_clock: MockClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(5)
    async with await hub.read("pk:aa", "0") as reader:
        for _ in range(3):  # in the backlog
            with trio.CancelScope() as scope:
                scope.cancel()
                await reader.receive()
            assert scope.cancelled_caught
        assert await receive(reader, 5) == [1, 2, 3, 4, 5]
        with trio.move_on_after(1) as scope:  # while it waits
            await reader.receive()
        assert scope.cancelled_caught
        await writer.write(2)
        with trio.CancelScope() as scope:  # with something there
            scope.cancel()
            await reader.receive()
        assert scope.cancelled_caught
        assert await receive(reader, 2) == [6, 7]


@pytest.mark.parametrize("moment", range(6))
@pytest.mark.parametrize("stored", [True, False])
async def test_a_receive_cancelled_at_any_moment_loses_nothing(
    clock: VirtualClock, moment: int, stored: bool
) -> None:
    _, hub, writer = make(clock)
    got: list[Delivery] = []
    for _ in range(20):  # Trio runs a turn's tasks in either order
        async with await hub.read("pk:aa", got[-1].cursor if got else "0") as reader:
            if stored:
                await writer.write(2)
                reader.live = False
            else:
                await writer.write(2)
            scope = trio.CancelScope()
            async with trio.open_nursery() as nursery:

                async def receive_once() -> None:
                    with scope:  # noqa: B023
                        got.extend(await reader.receive())  # noqa: B023

                nursery.start_soon(receive_once)
                for _ in range(moment):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
            if not got or got[-1].position < writer.written:
                with trio.fail_after(5):
                    got += await reader.receive()
    assert [each.position for each in got] == list(range(1, 41))


async def test_receiving_is_always_a_checkpoint(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(1)
    async with await hub.read("pk:aa", "0") as reader:
        with trio.testing.assert_checkpoints():
            await reader.receive()
        await writer.write(1)
        with trio.testing.assert_checkpoints():
            await reader.receive()


async def test_one_task_at_a_time_waits_for_a_reader(clock: VirtualClock) -> None:
    _, hub, _ = make(clock)
    async with await hub.read("pk:aa", None) as reader, trio.open_nursery() as nursery:
        nursery.start_soon(reader.receive)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await reader.receive()
        nursery.cancel_scope.cancel()


async def test_closing_wakes_the_one_who_waits(clock: VirtualClock) -> None:
    _, hub, _ = make(clock)
    reader = await hub.read("pk:aa", None)
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await reader.receive()

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        reader.close()
        reader.close()
    with pytest.raises(trio.ClosedResourceError):
        await reader.receive()


@pytest.mark.requirement("streams.move-ends-the-follow")
@pytest.mark.parametrize("after", [None, "0"], ids=["live", "in its backlog"])
async def test_the_end_comes_after_what_was_committed_before_it(
    clock: VirtualClock, after: str | None
) -> None:
    _, hub, writer = make(clock)
    await writer.write(2)
    async with await hub.read("pk:aa", after) as reader:
        await writer.write(PAGE)
        await writer.tell("desk_moved", b'{"code":"EURO"}')
        reader.end(MOVED)
        reader.end(refuse("unavailable", "a second end changes nothing"))
        await writer.write(5)
        first = 1 if after else 3
        assert await receive(reader, PAGE + 4 - first) == list(range(first, PAGE + 4))
        for _ in range(2):
            with pytest.raises(Ended) as caught:
                await reader.receive()
            assert caught.value.refusal == MOVED


async def test_an_end_wakes_the_one_who_waits(clock: VirtualClock) -> None:
    _, hub, _ = make(clock)
    async with await hub.read("pk:aa", None) as reader, trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(Ended):
                await reader.receive()

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        reader.end(MOVED)


async def test_an_end_during_the_reading_of_a_page_is_kept(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(3)

    async def end_and_write() -> None:
        reader.end(MOVED)
        await writer.write(3)

    async with await hub.read("pk:aa", "0") as reader:
        store.after_read = end_and_write
        assert await receive(reader, 3) == [1, 2, 3]
        with pytest.raises(Ended):
            await reader.receive()


@pytest.mark.requirement("statements.follow-until")
@pytest.mark.parametrize("step_s", [0, -1000], ids=["the wall runs", "the wall is set back"])
async def test_reading_ends_at_until_to_the_second(
    clock: VirtualClock, autojump_clock: MockClock, step_s: int
) -> None:
    _, hub, writer = make(clock)
    until = clock.now_ms() // 1000 + 100
    async with await hub.read("pk:aa", None, until=until) as reader:
        started = trio.current_time()
        await writer.write(1)
        assert await receive(reader, 1) == [1]
        clock.step(step_s * 1000)
        with pytest.raises(Ended) as caught:
            await reader.receive()
        assert trio.current_time() - started == pytest.approx(100, abs=0.001)
        assert caught.value.refusal.code == "bad_statement"


@pytest.mark.requirement("statements.follow-until")
async def test_a_wall_clock_set_forward_past_until_ends_the_reading(
    clock: VirtualClock, autojump_clock: MockClock
) -> None:
    _, hub, _ = make(clock)
    async with await hub.read("pk:aa", None, until=clock.now_ms() // 1000 + 80_000) as reader:
        started = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(Ended):
                    await reader.receive()

            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            clock.step(80_000_000)
        assert trio.current_time() - started <= 30.001


async def test_what_was_committed_before_until_is_given_after_it(
    clock: VirtualClock, autojump_clock: MockClock
) -> None:
    _, hub, writer = make(clock)
    async with await hub.read("pk:aa", None, until=clock.now_ms() // 1000 + 10) as reader:
        await writer.write(2)
        await trio.sleep(11)
        assert await receive(reader, 2) == [1, 2]
        with pytest.raises(Ended):
            await reader.receive()


@pytest.mark.requirement("streams.dropped-transcripts")
async def test_events_of_dropped_transcripts_are_passed_over(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(2)
    await Writer(store, log="conv:x").write(2)
    await writer.write(2)
    await Writer(store, log="conv:y").write(2)
    for each in ("conv:x", "conv:y"):
        await store.commit(Unit(drop=Drop(each)))
    async with await hub.read("pk:aa", "0") as reader:
        assert await receive(reader, 4) == [1, 2, 5, 6]
        assert reader.live
        await writer.write(1)
        assert await receive(reader, 1) == [9]


async def test_a_reader_that_retention_overtook_is_told_so(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(PAGE * 3)
    async with await hub.read("pk:aa", "0") as reader:
        await receive(reader, PAGE)
        await store.sweep(Retention(now=AT, events_before=AT * 2, events_keep=50))
        with pytest.raises(Slow):
            await reader.receive()
    async with await hub.read("pk:aa", reader.resume.from_) as again:
        assert again.resume.reason == "trimmed"
        assert await receive(again, 50) == list(range(PAGE * 3 - 49, PAGE * 3 + 1))


@pytest.mark.requirement("faults.resume-storm")
async def test_readers_far_behind_read_a_page_a_turn_and_who_is_near_or_live_does_not_wait(
    clock: VirtualClock,
) -> None:
    store, hub, writer = make(clock)
    await writer.write(PAGE)
    pages: list[int] = []
    turns = 0
    real = store.events

    class Count(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            nonlocal turns
            turns += 1

    async def events(stream: str, after: int, limit: int) -> list[Any]:
        pages.append(turns)
        return list(await real(stream, after, limit))

    store.events = events  # type: ignore[method-assign]
    far = [await hub.read("pk:aa", "0") for _ in range(12)]
    near = await hub.read("pk:aa", far[0].resume.head.rpartition(".")[0] + f".{PAGE - NEAR}")
    counting = Count()
    trio.lowlevel.add_instrument(counting)
    try:
        async with trio.open_nursery() as nursery:
            for each in far:
                nursery.start_soon(each.receive)
            for _ in range(2):  # all of them stand in line
                await trio.lowlevel.checkpoint()
            began = turns
            assert len(await near.receive()) == NEAR
            assert turns - began <= 5
    finally:
        trio.lowlevel.remove_instrument(counting)
        for each in (*far, near):
            each.close()
    assert len(set(pages)) >= 8
    assert max(pages.count(turn) for turn in pages) <= 3  # near's, and one whose turn began in the middle
