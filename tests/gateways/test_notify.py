"""What a service manager hears, over a real socket of its own."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from gateways.notify import ALIVE, READY, STOPPING, Notifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        yield listening


def heard(manager: socket.socket) -> list[str]:
    found = []
    try:
        while True:
            found.append(manager.recv(100).decode())
    except BlockingIOError:
        return found


@pytest.mark.requirement("observe.service")
def test_a_manager_hears_that_we_are_ready_and_that_we_stop(manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    notifier.tell(READY)
    notifier.tell(STOPPING)
    assert heard(manager) == ["READY=1", "STOPPING=1"]


@pytest.mark.requirement("observe.service")
def test_an_abstract_socket_is_found_by_its_name() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        name = f"turret-test-{os.getpid()}"
        listening.bind(f"\0{name}")
        listening.setblocking(False)
        Notifier({"NOTIFY_SOCKET": f"@{name}"}).tell(READY)
        assert heard(listening) == ["READY=1"]


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_where_nobody_listens_nothing_goes_wrong(environment: dict[str, str]) -> None:
    Notifier(environment).tell(READY)


@pytest.mark.requirement("observe.service")
async def test_the_watchdog_hears_twice_in_its_time_that_the_loop_turns(
    manager: socket.socket, autojump_clock: Any
) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "30000000"})
    with trio.move_on_after(61):
        await notifier.keep_alive()
    assert heard(manager) == [ALIVE] * 5


@pytest.mark.parametrize("more", [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"}])
async def test_a_watchdog_that_does_not_look_at_us_hears_nothing(
    manager: socket.socket, more: dict[str, str]
) -> None:
    await Notifier({"NOTIFY_SOCKET": manager.getsockname(), **more}).keep_alive()
    assert heard(manager) == []
