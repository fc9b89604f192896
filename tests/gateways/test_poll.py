"""Sockets read where they become readable: each in its turn, none after it was removed, a fault costs one alone."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

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
