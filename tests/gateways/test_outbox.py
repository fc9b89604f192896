"""The queue of one connection: order, bounds, and what an end leaves of it."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.config import Streams
from gateways.outbox import OVERHEAD, TAKE_BYTES, Outbox, open_outbox
from gateways.render import CLOSE, Close


async def test_frames_come_out_in_the_order_in_which_they_were_put() -> None:
    outbox = Outbox(100)
    for each in (b"a", b"b", b"c"):
        outbox.put(each)
    assert outbox.size == 3 * (1 + OVERHEAD)
    assert outbox.take() == [b"a", b"b", b"c"]
    assert (outbox.size, outbox.take()) == (0, [])


async def test_text_gets_the_carriers_frame_and_control_bytes_do_not() -> None:
    outbox = Outbox(100, lambda payload: b"<" + payload + b">")
    outbox.put(b"text")
    outbox.put_raw(b"ping")
    assert outbox.take() == [b"<text>", b"ping"]


async def test_a_writer_waits_until_something_is_put() -> None:
    outbox = Outbox(100)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.wait_work)
            await wait_all_tasks_blocked()
            outbox.put(b"a")
        await outbox.wait_work()


async def test_much_is_taken_in_pieces_of_whole_frames() -> None:
    outbox = Outbox(10**9)
    frames = [b"%04d" % n * 1000 for n in range(50)]
    for each in frames:
        outbox.put(each)
    taken = [outbox.take() for _ in range(7)]
    assert [frame for piece in taken for frame in piece] == frames
    assert all(sum(map(len, piece)) <= TAKE_BYTES + 4000 for piece in taken)
    assert outbox.size == 0


async def test_a_frame_larger_than_a_piece_is_taken_whole() -> None:
    outbox = Outbox(10**9)
    outbox.put(b"x" * TAKE_BYTES * 3)
    outbox.put(b"y")
    assert [len(each) for each in outbox.take()] == [TAKE_BYTES * 3]
    assert outbox.take() == [b"y"]


async def test_who_can_wait_waits_until_there_is_room() -> None:
    outbox = Outbox(100)
    await outbox.wait_room()
    outbox.put(b"x" * 101)
    assert outbox.full
    done = trio.Event()

    async def waiter() -> None:
        await outbox.wait_room()
        done.set()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter)
            await wait_all_tasks_blocked()
            assert not done.is_set()
            outbox.take()


@pytest.mark.requirement("ws.back-pressure")
async def test_of_many_who_wait_for_room_each_finds_room_when_its_turn_comes() -> None:
    outbox = Outbox(100)
    outbox.put(b"x" * 500)
    most = 0

    async def waiter() -> None:
        nonlocal most
        await outbox.wait_room()
        outbox.put(b"y" * 500)
        most = max(most, outbox.size)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(waiter)
            taken: list[bytes] = []
            while len(taken) < 21:
                await wait_all_tasks_blocked()
                taken += outbox.take()
    assert most <= 100 + 2 * (500 + OVERHEAD)
    assert outbox.closing is None


@pytest.mark.requirement("ws.slow-reader", "ws.whole-frames")
async def test_an_end_at_once_drops_what_waits_and_what_comes_late() -> None:
    outbox = Outbox(100)
    outbox.put(b"x" * 100)
    outbox.end(CLOSE["slow"], at_once=True)
    assert outbox.ended.is_set()
    assert not outbox.full
    outbox.put(b"late")
    assert (outbox.take(), outbox.size) == ([], 0)


@pytest.mark.requirement("ws.whole-frames")
async def test_an_ordinary_end_lets_what_waits_leave_first_and_takes_no_more_text() -> None:
    outbox = Outbox(100)
    outbox.put(b"a")
    outbox.end(Close(1012, "x"))
    outbox.put(b"late")
    outbox.put_raw(b"close frame")
    outbox.end(Close(4008, "y"), at_once=True)
    assert outbox.closing == Close(1012, "x")
    assert outbox.take() == [b"a", b"close frame"]


async def test_an_end_wakes_the_writer_and_all_who_wait_for_room() -> None:
    outbox = Outbox(1)
    outbox.put(b"xxx")
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.wait_room)
            nursery.start_soon(outbox.wait_room)
            await wait_all_tasks_blocked()
            outbox.end(CLOSE["slow"], at_once=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.wait_work)


async def test_the_bounds_follow_the_settings() -> None:
    outbox = open_outbox(Streams(queue_bytes=4000))
    outbox.put(b"x" * (1000 - OVERHEAD))
    assert not outbox.full
    outbox.put(b"x")
    assert outbox.full
