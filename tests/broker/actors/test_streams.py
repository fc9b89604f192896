from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.streams import SCAN, Delivery, Ended, Hub, Polled, Reader
from broker.clock import SystemClock, VirtualClock
from broker.config import Streams
from broker.store.memory import MemoryStore
from broker.store.port import Retention, Store
from broker.wire.events import Cursor, stream_tag
from broker.wire.refusals import Refusal, refuse
from tests.support.streams import AT, SteppedStore, Writer

MOVED = refuse("desk_moved", "this desk has moved")
EPOCH = "e0e0e0e0e0e0e0e0"


def make(clock: VirtualClock, **settings: int) -> tuple[SteppedStore, Hub, Writer]:
    store = SteppedStore()
    return store, Hub(store, Streams(**settings), clock), Writer(store)


def at(position: int, stream: str = "pk:aa", epoch: str = EPOCH) -> str:
    return Cursor(stream_tag(stream), epoch, position).text()


async def receive(reader: Reader, count: int) -> list[int]:
    got: list[Delivery] = []
    with trio.fail_after(5):
        while len(got) < count:
            got += await reader.receive()
    return [each.position for each in got]


def positions(polled: Polled | Refusal) -> list[int]:
    assert isinstance(polled, Polled)
    return [each.position for each in polled.deliveries]


@pytest.mark.requirement("streams.from-now")
@pytest.mark.parametrize("stored", [0, 4])
async def test_without_a_cursor_reading_begins_now(clock: VirtualClock, stored: int) -> None:
    store, hub, writer = make(clock)
    await writer.write(stored)
    async with await hub.read("pk:aa", None) as reader:
        assert (reader.resume.recovered, reader.resume.reason) == (True, None)
        assert reader.resume.from_ == reader.resume.head == at(stored)
        await writer.write(2)
        assert await receive(reader, 2) == [stored + 1, stored + 2]
    assert store.reads == 0


@pytest.mark.requirement("streams.from-oldest")
async def test_zero_begins_with_the_oldest_kept(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(10)
    await store.sweep(Retention(now=AT, events_before=AT * 2, events_keep=4))
    async with await hub.read("pk:aa", "0") as reader:
        assert reader.resume.recovered
        assert reader.resume.from_ == at(6)
        assert await receive(reader, 4) == [7, 8, 9, 10]


@pytest.mark.requirement("streams.cursor-is-the-last-one")
@pytest.mark.parametrize("position", [0, 5, 9, 10])
async def test_a_cursor_is_the_last_one_that_the_client_has(clock: VirtualClock, position: int) -> None:
    _, hub, writer = make(clock)
    await writer.write(10)
    async with await hub.read("pk:aa", at(position)) as reader:
        assert reader.resume.recovered
        assert (reader.resume.from_, reader.resume.head) == (at(position), at(10))
        await writer.write(1)
        assert await receive(reader, 11 - position) == list(range(position + 1, 12))


@pytest.mark.requirement("streams.cursor-is-the-last-one")
async def test_the_cursor_of_a_delivery_resumes_behind_it(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(3)
    async with await hub.read("pk:aa", "0") as reader:
        first, *rest = await reader.receive()
    async with await hub.read("pk:aa", first.cursor) as reader:
        assert await reader.receive() == rest


@pytest.mark.requirement("streams.trimmed")
async def test_a_cursor_before_the_oldest_kept_goes_on_with_it_and_says_so(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(10)
    await store.sweep(Retention(now=AT, events_before=AT * 2, events_keep=4))
    async with await hub.read("pk:aa", at(5)) as reader:
        assert (reader.resume.recovered, reader.resume.reason) == (False, "trimmed")
        assert reader.resume.from_ == at(6)
        assert await receive(reader, 4) == [7, 8, 9, 10]
    async with await hub.read("pk:aa", at(6)) as reader:
        assert reader.resume.recovered


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        pytest.param(
            at(2, epoch="f" * 16), "epoch_changed", marks=pytest.mark.requirement("streams.epoch-changed")
        ),
        pytest.param(
            at(2, stream="pk:bb"), "unknown", marks=pytest.mark.requirement("streams.unknown-cursor")
        ),
        pytest.param("garbage", "unknown", marks=pytest.mark.requirement("streams.unknown-cursor")),
        pytest.param("", "unknown", marks=pytest.mark.requirement("streams.unknown-cursor")),
        pytest.param(at(-1), "unknown", marks=pytest.mark.requirement("streams.unknown-cursor")),
        pytest.param("1", "unknown", marks=pytest.mark.requirement("streams.unknown-cursor")),
        pytest.param(at(4), "future", marks=pytest.mark.requirement("streams.future-cursor")),
    ],
)
async def test_a_cursor_that_cannot_be_gone_on_from_says_why_and_goes_on_from_now(
    clock: VirtualClock, after: str, reason: str
) -> None:
    _, hub, writer = make(clock)
    await writer.write(3)
    async with await hub.read("pk:aa", after) as reader:
        assert (reader.resume.recovered, reader.resume.reason) == (False, reason)
        assert reader.resume.from_ == reader.resume.head == at(3)
        await writer.write(1)
        assert await receive(reader, 1) == [4]


@pytest.mark.requirement("streams.same-order-for-all")
async def test_a_thousand_readers_get_the_same_events_in_the_same_order(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(20)
    got: list[list[Delivery]] = []

    async def read(after: str | None, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        mine: list[Delivery] = []
        got.append(mine)
        async with await hub.read("pk:aa", after) as reader:
            task_status.started()
            while not mine or mine[-1].position < 70:
                mine += await reader.receive()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for index in range(1000):
                await nursery.start(read, at(index % 20) if index % 2 else None)
            await writer.write(50)
    for mine in got:
        assert [each.position for each in mine] == list(range(mine[0].position, 71))
    shared = {id(mine[-1].params) for mine in got}
    assert len(shared) == 1, "the text of a live event is made once"
    assert hub.statistics().readers == 0


async def test_readers_of_other_streams_hear_nothing(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    async with await hub.read("pk:bb", None) as reader:
        await writer.write(3)
        assert reader.pending == (0, 0)
        await Writer(store, "pk:bb", log="conv:2").write(1)
        assert await receive(reader, 1) == [1]


@pytest.mark.requirement("streams.old-key-keeps-its-stream")
async def test_ending_a_code_leaves_the_followers_of_the_key_itself(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    async with (
        await hub.read("pk:aa", None, code="EURO") as by_code,
        await hub.read("pk:aa", None) as by_key,
    ):
        await writer.tell("desk_moved", b'{"code":"EURO"}')
        assert hub.end("pk:aa", MOVED, code="EURO") == 1
        await writer.write(1)
        assert await receive(by_code, 1) == [1]
        with pytest.raises(Ended):
            await by_code.receive()
        assert await receive(by_key, 2) == [1, 2]


async def test_ending_a_stream_or_all_of_them(clock: VirtualClock) -> None:
    _, hub, _ = make(clock)
    async with await hub.read("pk:aa", None) as a, await hub.read("pk:bb", None) as b:
        assert hub.end("pk:cc", MOVED) == 0
        assert hub.end("pk:aa", MOVED) == 1
        with pytest.raises(Ended):
            await a.receive()
        assert hub.end(None, MOVED) == 2
        with pytest.raises(Ended):
            await b.receive()


async def test_a_reader_ended_while_it_opens_gives_what_was_there(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(2)

    async def end() -> None:
        store.after_read = None
        assert hub.end("pk:aa", MOVED) == 1
        await writer.write(1)

    store.after_read = end
    async with await hub.read("pk:aa", "0") as reader:
        assert await receive(reader, 2) == [1, 2]
        with pytest.raises(Ended):
            await reader.receive()


async def test_what_is_held_is_held_while_the_reader_is_open(clock: VirtualClock) -> None:
    held: list[bool] = []

    @contextmanager
    def hold() -> Iterator[None]:
        held.append(True)
        yield
        held.append(False)

    _, hub, _ = make(clock)
    async with await hub.read("pk:aa", None, held=hold()) as reader:
        assert held == [True]
    reader.close()
    assert held == [True, False]


async def test_a_cancelled_read_leaves_nothing_behind(clock: VirtualClock) -> None:
    _, hub, _ = make(clock)
    with trio.CancelScope() as scope:
        scope.cancel()
        await hub.read("pk:aa", None)
    assert scope.cancelled_caught
    assert hub.statistics().streams == 0


async def test_statistics_count_what_waits(clock: VirtualClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(2)
    async with await hub.read("pk:aa", "0"), await hub.read("pk:aa", None) as live:
        await writer.write(3)
        seen = hub.statistics()
        assert (seen.streams, seen.readers, seen.catching_up, seen.pending) == (1, 2, 1, 3)
        assert seen.pending_bytes == live.pending[1] > 0
    assert hub.statistics().streams == 0


@pytest.mark.requirement("observe.resumes")
async def test_readers_are_counted_by_kind_and_by_what_they_lost_and_polls_are_not(
    clock: VirtualClock,
) -> None:
    _, hub, writer = make(clock)
    await writer.write(2)
    for stream, after in (("pk:aa", "0"), ("pk:aa", "1.2.3"), ("agent:x", None), ("channel:x", None)):
        async with await hub.read(stream, after):
            kind = {"pk": "desk"}.get(stream.partition(":")[0], stream.partition(":")[0])
            assert hub.statistics().by_kind == {"desk": 0, "agent": 0, "channel": 0, kind: 1}
    await hub.poll("pk:aa", "0", 1, 0)
    assert hub.statistics().resumed == {("true", ""): 3, ("false", "unknown"): 1}


@pytest.mark.requirement("tools.poll-at-once")
async def test_a_poll_answers_at_once_with_what_waits(clock: VirtualClock, autojump_clock: MockClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(7)
    polled = await hub.poll("pk:aa", at(1), 4, 25)
    assert positions(polled) == [2, 3, 4, 5]
    assert isinstance(polled, Polled)
    resume, _, cursor = polled
    assert (resume.from_, cursor) == (at(1), at(5))
    again = await hub.poll("pk:aa", cursor, 100, 25)
    assert positions(again) == [6, 7]
    assert trio.current_time() == 0


@pytest.mark.requirement("tools.poll-waits")
async def test_a_poll_waits_for_the_first_and_no_longer(
    clock: VirtualClock, autojump_clock: MockClock
) -> None:
    _, hub, writer = make(clock)

    async def write_later() -> None:
        await trio.sleep(3)
        await writer.write(2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_later)
        polled = await hub.poll("pk:aa", None, 10, 25)
    assert positions(polled)[0] == 1
    assert trio.current_time() == 3
    empty = await hub.poll("pk:aa", at(2), 10, 25)
    assert positions(empty) == []
    assert isinstance(empty, Polled)
    assert empty.cursor == at(2)
    assert trio.current_time() == 28
    assert positions(await hub.poll("pk:aa", at(2), 10, 0)) == []
    assert trio.current_time() == 28


@pytest.mark.requirement("tools.poll-rings-alone")
async def test_a_poll_for_rings_passes_over_the_rest_with_its_cursor(
    clock: VirtualClock, autojump_clock: MockClock
) -> None:
    _, hub, writer = make(clock)
    await writer.write(200)
    await writer.write(1, kind="ring")
    await writer.write(1, kind="ring", own=True)
    await writer.write(3)
    polled = await hub.poll("pk:aa", "0", 10, 0, kinds=("ring",), own=False)
    assert positions(polled) == [201]
    assert isinstance(polled, Polled)
    assert polled.cursor == at(205)

    async def write_later() -> None:
        await trio.sleep(1)
        await writer.write(1)
        await trio.sleep(1)
        await writer.write(1, kind="ring")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_later)
        polled = await hub.poll("pk:aa", polled.cursor, 10, 25, kinds=("ring",), own=False)
    assert positions(polled) == [207]
    assert trio.current_time() == 2


async def test_a_filtered_poll_looks_at_a_bounded_number_of_events(
    clock: VirtualClock, autojump_clock: MockClock
) -> None:
    _, hub, writer = make(clock)
    await writer.write(SCAN + 300)
    polled = await hub.poll("pk:aa", "0", 10, 25, kinds=("ring",))
    assert positions(polled) == []
    assert isinstance(polled, Polled)
    assert SCAN <= int(polled.cursor.rpartition(".")[2]) < SCAN + 128
    assert trio.current_time() == 0


async def test_a_poll_of_an_unknown_cursor_says_so(clock: VirtualClock, autojump_clock: MockClock) -> None:
    _, hub, writer = make(clock)
    await writer.write(3)
    polled = await hub.poll("pk:aa", "garbage", 10, 1)
    assert isinstance(polled, Polled)
    assert (polled.resume.recovered, polled.resume.reason, polled.cursor) == (False, "unknown", at(3))


async def test_a_waiting_poll_whose_desk_moves_is_refused(clock: VirtualClock) -> None:
    _, hub, _ = make(clock)
    answers = []
    async with trio.open_nursery() as nursery:

        async def poll() -> None:
            answers.append(await hub.poll("pk:aa", None, 10, 25, code="EURO"))

        nursery.start_soon(poll)
        await wait_all_tasks_blocked()
        hub.end("pk:aa", MOVED, code="EURO")
    assert answers == [MOVED]
    assert hub.statistics().readers == 0


async def test_a_poll_that_retention_overtakes_begins_again_and_says_so(clock: VirtualClock) -> None:
    store, hub, writer = make(clock)
    await writer.write(300)

    async def sweep() -> None:
        await store.sweep(Retention(now=AT, events_before=AT * 2, events_keep=20))

    store.after_read = sweep
    polled = await hub.poll("pk:aa", "0", 200, 0, kinds=("ring",))
    assert isinstance(polled, Polled)
    assert polled.resume.reason == "trimmed"
    assert polled.cursor == at(300)


async def test_a_store_has_one_hub(clock: VirtualClock) -> None:
    store = MemoryStore()
    Hub(store, Streams(), clock)
    with pytest.raises(RuntimeError):
        Hub(store, Streams(), clock)


async def test_readers_miss_nothing_on_the_store_that_is_asked_for(store: Store) -> None:
    hub = Hub(store, Streams(), SystemClock())
    writers = [Writer(store, log=f"conv:{index}") for index in range(4)]

    async def read(after: str | None) -> None:
        async with await hub.read("pk:aa", after) as reader:
            first = int(reader.resume.from_.rpartition(".")[2]) + 1
            assert await receive(reader, 201 - first) == list(range(first, 201))

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            for writer in writers:
                nursery.start_soon(writer.write, 50)
            for _ in range(5):
                nursery.start_soon(read, "0")
                nursery.start_soon(read, None)
                await trio.sleep(0.005)
