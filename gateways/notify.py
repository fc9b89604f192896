"""What the service manager is told: ready, stopping, alive (sd_notify(3)). Where none asks, nothing is.

The watchdog is kept by the loop itself: one that stands still says nothing, and is started anew.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
ALIVE: Final = "WATCHDOG=1"


class Notifier:
    """Speaks to the socket that the environment names; made once."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{name[1:]}" if name.startswith("@") else name
        self._every_s = _watchdog_s(environment) / 2

    def tell(self, state: str) -> None:
        """Send one state. Never waits, never raises: a manager that does not listen is no fault of ours."""
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.setblocking(False)
                channel.sendto(state.encode(), self._address)

    async def keep_alive(self) -> None:
        """Say at half the watchdog's time that the loop turns, for ever; returns at once where nobody asks."""
        while self._every_s:
            self.tell(ALIVE)
            await trio.sleep(self._every_s)


def _watchdog_s(environment: Mapping[str, str]) -> float:
    """The time that the manager gives us, seconds; 0: it does not look, or at another process."""
    given, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", str(os.getpid()))
    return int(given) / 1e6 if given.isdecimal() and process == str(os.getpid()) else 0.0
