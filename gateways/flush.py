"""What a tick's work has put into outboxes leaves at the tick's end, with no task and one send a connection.

1. The socket is asked once; what it does not take at once is left to the connection's writer, which can wait.
2. A writer that is at work is left alone: it takes what waits, in order.
3. Nothing here waits, raises, or wakes a task but through the loop's own queue.
"""

import os
from collections.abc import Callable

import trio

from broker.tick import tick_end
from gateways.outbox import Outbox


class Direct:
    """The way from an outbox to a non-blocking socket without a task.

    `rest` is what the socket did not take: the writer sends it first. `broken` is called when the far end is gone.
    """

    def __init__(self, fd: int, outbox: Outbox, broken: Callable[[], None]) -> None:
        self.rest = b""
        self._fd = fd
        self._outbox = outbox
        self._broken = broken
        self._at_end = tick_end().add
        self._token = trio.lowlevel.current_trio_token()
        self._due = False
        outbox.notify = self._notify

    def close(self) -> None:
        """The socket is about to be closed: nothing is sent here any more."""
        self._fd = -1

    def _notify(self) -> None:
        """Something was put while the writer sleeps."""
        if not self._due:
            self._due = True
            self._at_end(self._send)

    def _send(self) -> None:
        self._due = False
        outbox = self._outbox
        while outbox.sleeping and not self.rest and self._fd >= 0 and (frames := outbox.take()):
            data = frames[0] if len(frames) == 1 else b"".join(frames)
            try:
                sent = os.write(self._fd, data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._token.run_sync_soon(self._broken)
                return
            if sent < len(data):
                self.rest = data[sent:]
                self._token.run_sync_soon(outbox.wake)
                return
