"""The pipe of the simulation: in order whatever the delay, bounded, cut, silent."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.pipes import ROOM, Pipe, PipeListener


async def test_what_is_delayed_comes_later_and_in_order(autojump_clock: Any) -> None:
    pipe = Pipe()
    pipe.delay(3.0)
    await pipe.near.send_all(b"a")
    pipe.delay(0.0)
    await pipe.near.send_all(b"b")
    began = trio.current_time()
    assert [await pipe.far.receive_some(), await pipe.far.receive_some()] == [b"a", b"b"]
    assert trio.current_time() - began == pytest.approx(3.0)


async def test_who_does_not_read_holds_up_who_sends(autojump_clock: Any) -> None:
    pipe = Pipe()
    await pipe.near.send_all(b"x" * ROOM)
    with trio.move_on_after(60) as bound:
        await pipe.near.send_all(b"y")
    assert bound.cancelled_caught
    assert len(await pipe.far.receive_some(10)) == 10
    await pipe.near.send_all(b"y")


async def test_a_cut_breaks_both_ends_at_once_and_a_silence_neither(autojump_clock: Any) -> None:
    pipe, silent = Pipe(), Pipe()
    silent.silence()
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            with pytest.raises(trio.BrokenResourceError):
                await pipe.far.receive_some()

        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        pipe.cut()
    with pytest.raises(trio.BrokenResourceError):
        await pipe.near.send_all(b"x")
    await silent.near.send_all(b"x" * ROOM * 2)
    with trio.move_on_after(60) as bound:
        await silent.far.receive_some()
    assert bound.cancelled_caught


async def test_an_end_that_closes_is_the_other_ones_end_of_file() -> None:
    listener = PipeListener()
    pipe = listener.dial()
    far = await listener.accept()
    await far.send_all(b"bye")
    await far.aclose()
    assert [await pipe.near.receive_some(), await pipe.near.receive_some()] == [b"bye", b""]
    with pytest.raises(trio.BrokenResourceError):
        await pipe.near.send_all(b"x")
    await listener.aclose()
