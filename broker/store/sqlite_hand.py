"""The one thread beside the loop: it waits for the disk while the loop goes on.

1. One job at a time, and its answer comes back to the loop in one callback.
2. A job neither touches the loop nor raises.
3. A busy loop lends it the interpreter: see `Hand.before_io_wait`.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

import trio

LEND_EVERY_S: Final = 0.0003
"""Seconds between two loans to a thread that has a job."""
LEND_S: Final = 0.00005
"""Seconds of a loan: long enough for a waiting thread to wake up, at most a sixth of a busy loop's time."""

_Job = tuple[trio.lowlevel.TrioToken, Callable[[], Any], Callable[[Any], object]]


class Hand(trio.abc.Instrument):
    """A daemon thread that does jobs in the order in which they are given.

    `hurry` False: nobody waits for what it does, and the loop lends it nothing.
    """

    def __init__(self, name: str, *, hurry: bool = True) -> None:
        self._hurry = hurry
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._busy = False
        self._lent = 0.0
        self._run: trio.lowlevel.TrioToken | None = None
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def give(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Have `job()` done on the thread and then `then(what it returned)` on the loop. Called on the loop."""
        token = trio.lowlevel.current_trio_token()
        if self._hurry and self._run is not token:
            trio.lowlevel.add_instrument(self)
            self._run = token
        self._busy = True
        self._jobs.put((token, job, then))

    def stop(self) -> None:
        """End the thread after the jobs given so far. Called on the loop."""
        if self._run is trio.lowlevel.current_trio_token():
            trio.lowlevel.remove_instrument(self)
        self._run = None
        self._jobs.put(None)

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            token, job, then = given
            result = job()
            with contextlib.suppress(trio.RunFinishedError):  # nobody is left to be told
                token.run_sync_soon(self._back, then, result)

    def _back(self, then: Callable[[Any], object], result: Any) -> None:
        self._busy = False
        then(result)

    def before_io_wait(self, timeout: float) -> None:
        """Trio calls this once a tick. With work left to do (timeout 0) let the thread have the interpreter.

        CPython asks a running thread to give way only when another has waited 5 ms without being woken; a loop
        that lets go for a moment at each system call wakes the waiter each time, takes the lock back before it
        is there, and so may keep it waiting for seconds (measured: p99 of a commit up to 3 s without, 35 ms with).
        """
        if self._busy and timeout <= 0:
            now = time.perf_counter()
            if now - self._lent > LEND_EVERY_S:
                time.sleep(LEND_S)
                self._lent = time.perf_counter()
