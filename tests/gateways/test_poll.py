"""Sockets read where they become readable: each in its turn, none after it was removed, a fault costs one alone."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateways.poll import FAIR, Poller, poller

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux's")


@contextmanager
def pairs(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    made = [socket.socketpair() for _ in range(count)]
    for near, far in made:
        near.setblocking(False)
        far.setblocking(False)
    try:
        yield made
    finally:
        for near, far in made:
            near.close()
            far.close()


def watching() -> Poller:
    made = poller()
    assert made is not None
    return made


async def settle() -> None:
    """The kernel has told, and all has been called."""
    for _ in range(5):
        await wait_all_tasks_blocked()


async def test_what_comes_is_read_and_what_is_removed_is_not() -> None:
    with pairs(1) as ((near, far),):
        got: list[bytes] = []

        def ready() -> int:
            got.append(near.recv(100))
            if not got[-1]:
                watching().remove(near.fileno())
            return 1

        watching().add(near.fileno(), ready)
        far.send(b"a")
        with trio.fail_after(5):
            while got != [b"a"]:
                await settle()
        watching().remove(near.fileno())
        watching().remove(near.fileno())
        far.send(b"b")
        await settle()
        assert got == [b"a"]
        watching().add(near.fileno(), ready)
        far.close()
        with trio.fail_after(5):
            while got[1:] != [b"b", b""]:
                await settle()


async def test_a_flood_leaves_every_other_socket_its_turn() -> None:
    with pairs(3) as made:
        order: list[int] = []
        for index, (near, far) in enumerate(made):

            def ready(index: int = index) -> int:
                order.append(index)
                return FAIR  # as much as a turn has

            watching().add(near.fileno(), ready)
            far.send(b"x")
        turns = 0
        with trio.fail_after(5):
            while len(order) < 30:
                turns += 1
                await trio.lowlevel.checkpoint()
        for near, _ in made:
            watching().remove(near.fileno())
        for start in range(0, 30, 3):
            assert sorted(order[start : start + 3]) == [0, 1, 2]
        assert turns >= 10


async def test_one_that_fails_is_called_no_more_and_the_others_go_on(caplog: Any) -> None:
    with pairs(2) as ((bad, far_bad), (good, far_good)):
        got: list[bytes] = []
        calls: list[int] = []

        def fail() -> int:
            calls.append(1)
            raise ZeroDivisionError

        def ready() -> int:
            got.append(good.recv(100))
            return 1

        watching().add(bad.fileno(), fail)
        watching().add(good.fileno(), ready)
        far_bad.send(b"x")
        far_good.send(b"y")
        with trio.fail_after(5):
            while got != [b"y"]:
                await settle()
        await settle()
        assert len(calls) == 1
        watching().remove(good.fileno())
    assert "could not be read" in caplog.text


async def test_there_is_one_for_a_run() -> None:
    await trio.lowlevel.checkpoint()
    assert poller() is poller()


async def test_one_that_was_closed_before_it_was_removed_harms_no_other() -> None:
    with pairs(1) as ((near, far),):
        got: list[bytes] = []
        lost, there = socket.socketpair()
        number = lost.fileno()
        watching().add(number, lambda: 1)
        lost.close()
        there.close()
        watching().remove(number)
        again = socket.fromfd(near.fileno(), near.family, near.type)  # the number is another's now
        try:

            def ready() -> int:
                got.append(again.recv(100))
                return 1

            watching().add(again.fileno(), ready)
            far.send(b"a")
            with trio.fail_after(5):
                while got != [b"a"]:
                    await settle()
            watching().remove(again.fileno())
        finally:
            again.close()


async def test_who_is_removed_by_another_in_the_same_turn_is_not_called_and_its_number_may_come_again() -> (
    None
):
    with pairs(3) as made:
        called: list[int] = []

        def make(index: int) -> Any:
            def ready() -> int:
                called.append(index)
                made[index][0].recv(100)
                for other in range(3):
                    if other != index:
                        watching().remove(made[other][0].fileno())
                return 1

            return ready

        for index, (near, far) in enumerate(made):
            watching().add(near.fileno(), make(index))
            far.send(b"x")
        await settle()
        assert len(called) == 1
        for index, (near, _) in enumerate(made):
            if index != called[0]:
                watching().add(near.fileno(), make(index))
        await settle()
        assert len(called) == 2
        for near, _ in made:
            watching().remove(near.fileno())


async def test_since_is_when_the_kernel_told_and_the_longest_wait_comes_first(mock_clock: MockClock) -> None:
    with pairs(3) as made:
        order: list[tuple[int, float]] = []
        began = trio.current_time()

        def make(index: int) -> Any:
            def ready() -> int:
                order.append((index, watching().since - began))
                made[index][0].recv(1)
                mock_clock.jump(1.0)  # it took a second
                return FAIR

            return ready

        for index, (near, far) in enumerate(made):
            watching().add(near.fileno(), make(index))
            far.send(b"xx" if index == 0 else b"x")
        await settle()
        for near, _ in made:
            watching().remove(near.fileno())
        assert [since for _, since in order[:3]] == [0.0, 0.0, 0.0]
        assert sorted(index for index, _ in order[:3]) == [0, 1, 2]
        assert order[3][0] == 0, "what is left on a socket has its turn after all others"
        assert order[3][1] > 0.0
