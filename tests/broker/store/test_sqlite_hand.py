"""The thread beside the loop: order, the way back, and the loan of the interpreter."""

import threading
from types import SimpleNamespace

import pytest
import trio

from broker.store import sqlite_hand
from broker.store.sqlite_hand import Hand


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The naps that the loop takes, and a clock that goes on by a tenth of a second at each reading."""
    taken: list[float] = []
    readings = iter(number / 10 for number in range(1, 1000))
    fake = SimpleNamespace(sleep=taken.append, perf_counter=lambda: next(readings))
    monkeypatch.setattr(sqlite_hand, "time", fake)
    return taken


async def test_jobs_are_done_in_order_and_answered_on_the_loop() -> None:
    hand = Hand("test")
    answers: list[tuple[int, bool]] = []
    loop = threading.get_ident()
    done = trio.Event()

    def then(value: int) -> None:
        answers.append((value, threading.get_ident() == loop))
        if len(answers) == 3:
            done.set()

    for number in range(3):
        hand.give(lambda number=number: number if threading.get_ident() != loop else -1, then)  # type: ignore[misc]  # mypy can't infer it
    with trio.fail_after(5):
        await done.wait()
    hand.stop()
    assert answers == [(0, True), (1, True), (2, True)]


async def test_a_stopped_hand_ends_its_thread() -> None:
    hand = Hand("the last job")
    done = trio.Event()
    hand.give(lambda: None, lambda _: done.set())
    hand.stop()
    with trio.fail_after(5):
        await done.wait()
    for thread in threading.enumerate():
        if thread.name == "the last job":
            thread.join(5)
            assert not thread.is_alive()


def test_an_answer_for_a_loop_that_is_gone_is_let_fall() -> None:
    hand = Hand("test")
    go = threading.Event()
    ended = threading.Event()

    async def main() -> None:
        hand.give(lambda: go.wait(5), lambda _: None)

    trio.run(main)
    go.set()

    async def next_run() -> None:
        done = trio.Event()
        hand.give(ended.set, lambda _: done.set())
        with trio.fail_after(5):
            await done.wait()

    trio.run(next_run)
    assert ended.is_set()
    trio.run(stop, hand)


async def stop(hand: Hand) -> None:
    """In a run that the hand never worked for."""
    hand.stop()


async def test_a_busy_loop_lends_the_interpreter_to_a_thread_that_works(naps: list[float]) -> None:
    hand = Hand("test")
    go = threading.Event()
    done = trio.Event()
    hand.give(lambda: go.wait(5), lambda _: done.set())
    before = len(naps)
    hand.before_io_wait(0)
    assert naps[before:] == [sqlite_hand.LEND_S]
    hand.before_io_wait(0.5)
    assert len(naps) == before + 1, "a loop that waits holds nobody up"
    go.set()
    with trio.fail_after(5):
        await done.wait()
    lent = len(naps)
    hand.before_io_wait(0)
    assert len(naps) == lent, "nobody has anything to do"
    hand.stop()


async def test_loans_have_a_time_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    fake = SimpleNamespace(sleep=naps.append, perf_counter=lambda: 7.0)
    monkeypatch.setattr(sqlite_hand, "time", fake)
    hand = Hand("test")
    go = threading.Event()
    done = trio.Event()
    hand.give(lambda: go.wait(5), lambda _: done.set())
    for _ in range(5):
        hand.before_io_wait(0)
    assert len(naps) == 1
    go.set()
    with trio.fail_after(5):
        await done.wait()
    hand.stop()


async def test_a_hand_that_is_in_no_hurry_is_lent_nothing(naps: list[float]) -> None:
    hand = Hand("test", hurry=False)
    go = threading.Event()
    done = trio.Event()
    hand.give(lambda: go.wait(5), lambda _: done.set())
    for _ in range(5):
        await trio.lowlevel.checkpoint()
    go.set()
    with trio.fail_after(5):
        await done.wait()
    assert naps == []
    hand.stop()
