"""Grading off the loop's back: in turn, in pieces, remembered."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from broker.actors import grader as module
from broker.actors.grader import KEPT, WAITING, Grader, at_length, length_of
from broker.core.tapes.tape import Tape
from broker.core.trials.review import Fault, Graded, read_trial, review
from broker.core.trials.script import Advance, Artifact, Entry, Start
from broker.wire.refusals import Refusal
from tests.support.trials import changed, market, plan, trial

TAPE, ENTRY = market(ticks=200)
CONTENT = trial(TAPE, ENTRY)
QUIET = plan("plan p 1 on EURCHF bound position 9, loss 2000, orders 9, until 99999 when tick < 0: flatten")


def read(content: bytes = CONTENT) -> Artifact:
    artifact = read_trial(content)
    assert isinstance(artifact, Artifact)
    return artifact


async def find(entry: Entry) -> Tape | Fault:
    return TAPE if entry.ref == ENTRY.ref else Fault("tape", "gone")


@asynccontextmanager
async def at_once(who: str) -> AsyncIterator[None]:
    yield


class Finds:
    """Finds the tape when it is let, and counts how often it was asked."""

    def __init__(self) -> None:
        self.count = 0
        self.let = trio.Event()

    async def __call__(self, entry: Entry) -> Tape | Fault:
        self.count += 1
        await self.let.wait()
        return await find(entry)


async def grade(grader: Grader, who: str = "ann", ref: str = "a", **more: Any) -> Any:
    content = more.pop("content", CONTENT)
    turn, finds = more.pop("turn", at_once), more.pop("find", find)
    with trio.fail_after(60):
        return await grader.grade(who, ref, content, read(content), finds, turn, **more)


@pytest.mark.requirement("trial.grade-turns")
async def test_what_was_graded_is_not_done_again(autojump_clock: trio.testing.MockClock) -> None:
    grader, finds = Grader(), Finds()
    finds.let.set()
    one = await grade(grader, find=finds)
    assert one == review(CONTENT, read(), TAPE)
    assert await grade(grader, "bob", find=finds) is one
    assert finds.count == 1
    for n in range(KEPT):
        await grade(grader, ref=f"other {n}")
    await grade(grader, find=finds)
    assert finds.count == 2  # the latest of them are remembered


@pytest.mark.requirement("trial.grade-turns")
async def test_one_is_done_at_a_time_and_who_waited_for_the_same_has_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    grader, finds, found = Grader(), Finds(), list[Any]()

    async def ask(who: str, ref: str = "a") -> None:
        found.append(await grade(grader, who, ref, find=finds))

    async with trio.open_nursery() as nursery:
        for who in ("ann", "bob", "cat"):
            nursery.start_soon(ask, who)
        nursery.start_soon(ask, "dan", "another")
        await trio.testing.wait_all_tasks_blocked()
        assert finds.count == 1
        refused = await grade(grader, "ann", "third")
        assert (refused.code, refused.retryable) == ("overloaded", True)
        finds.let.set()
    assert [type(each) for each in found] == [Graded] * 4
    assert finds.count == 2
    assert isinstance(await grade(grader, "ann", "third"), Graded)


@pytest.mark.requirement("trial.grade-turns")
async def test_so_many_may_wait_and_guests_leave_places_to_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    grader, finds = Grader(), Finds()
    async with trio.open_nursery() as nursery:

        async def ask(who: str) -> None:
            await grade(grader, who, who, find=finds)

        for n in range(WAITING // 2):
            nursery.start_soon(ask, f"guest {n}")
        await trio.testing.wait_all_tasks_blocked()
        assert (await grade(grader, "guest", most=WAITING // 2)).code == "overloaded"
        for n in range(WAITING // 2):
            nursery.start_soon(ask, f"agent {n}")
        await trio.testing.wait_all_tasks_blocked()
        assert (await grade(grader, "agent")).code == "overloaded"
        nursery.cancel_scope.cancel()
    assert isinstance(await grade(grader, "agent"), Graded)  # who left has no place any more


@pytest.mark.requirement("trial.grade-turns", "trial.grade-slices")
async def test_others_have_the_loop_between_two_pieces_and_progress_is_told(
    autojump_clock: trio.testing.MockClock,
) -> None:
    turns, told = list[str](), list[tuple[int, int]]()

    @asynccontextmanager
    async def turn(who: str) -> AsyncIterator[None]:
        turns.append(who)
        yield

    async def tell(done: int, whole: int) -> None:
        told.append((done, whole))

    long, entry = market(ticks=12_000)
    content = trial(long, entry, Start(QUIET), Advance(12_000))

    async def find_long(_: Entry) -> Tape | Fault:
        return long

    found = await grade(Grader(), content=content, find=find_long, turn=turn, told=tell)
    assert isinstance(found, Graded)
    assert len(turns) > 20
    assert set(turns) == {"ann"}
    assert 8 < len(told) <= module.TOLD
    assert told == sorted(told)
    assert 20_000 < told[-1][0] <= told[-1][1] == 24_000


@pytest.mark.requirement("trial.grade-turns")
async def test_who_leaves_stops_the_work(autojump_clock: trio.testing.MockClock) -> None:
    turns = 0

    @asynccontextmanager
    async def turn(_: str) -> AsyncIterator[None]:
        nonlocal turns
        turns += 1
        yield
        await trio.sleep(1)

    with trio.move_on_after(0.5) as scope:
        await grade(Grader(), turn=turn)
    assert scope.cancelled_caught
    assert turns == 1


@pytest.mark.requirement("trial.grade-replay", "trial.grade-tape")
async def test_what_does_not_hold_is_a_fault_and_not_remembered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    grader = Grader()
    for content, what in (
        (changed(CONTENT, "fills", 0, "size", to=5), "fills"),
        (changed(CONTENT, "calls", to=[]), "call"),
        (changed(CONTENT, "entry", "ref", to="0" * 64), "tape"),
        (changed(CONTENT, "entry", "about", "fee", to=77), "tape"),
    ):
        for _ in range(2):
            fault = await grade(grader, content=content)
            assert isinstance(fault, Fault)
            assert fault.what == what

    assert not isinstance(await grade(grader), Fault | Refusal)


async def test_what_takes_long_is_done_in_a_thread() -> None:
    assert await at_length(module.LARGE - 1, threading.get_ident) == threading.get_ident()
    assert await at_length(module.LARGE, threading.get_ident) != threading.get_ident()
    assert length_of(CONTENT) < module.LARGE, "read and written on the loop"
    assert length_of(bytes(module.LONG)) == module.LARGE, (
        "of an artifact that has many plans also on a short tape"
    )
