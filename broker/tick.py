"""What is done at the end of a tick: once for all that its tasks have asked for, without a task or a wake-up.

1. The end is when a turn's tasks and callbacks have run, and the loop is about to ask the kernel.
2. What is done there neither waits nor wakes a task but through the loop's own queue (`run_sync_soon`): the loop has
   settled by then for how long it sleeps.
3. What raises is logged, and costs nobody else anything; but what is `vital` ends the run, since all would wait for it
   for ever.
"""

import logging
from collections.abc import Callable
from typing import Final

import trio

log = logging.getLogger(__name__)


class TickEnd(trio.abc.Instrument):
    """What is to be done at the end of the present tick, in the order in which it was asked for. From `tick_end()`."""

    def __init__(self) -> None:
        self._due: list[tuple[Callable[[], object], bool]] = []

    def add(self, do: Callable[[], object], *, vital: bool = False) -> None:
        """Have `do()` called before the loop next waits. Called on the loop."""
        self._due.append((do, vital))

    def before_io_wait(self, timeout: float) -> None:
        """Trio calls this once a tick, when its tasks and callbacks have run."""
        while self._due:
            due, self._due = self._due, []
            for do, vital in due:
                try:
                    do()
                except Exception as fault:
                    # Trio would drop the instrument, and with it all that is asked for later.
                    log.exception("what was due at the end of a tick failed")
                    if vital:
                        trio.lowlevel.current_trio_token().run_sync_soon(_fall, fault)


def _fall(fault: Exception) -> None:
    """What is raised in a callback of the loop's own ends the run (TrioInternalError)."""
    raise fault


_tick_end: Final[trio.lowlevel.RunVar[TickEnd]] = trio.lowlevel.RunVar("tick_end")


def tick_end() -> TickEnd:
    """That of this run of the loop; made at the first asking."""
    try:
        return _tick_end.get()
    except LookupError:
        made = TickEnd()
        trio.lowlevel.add_instrument(made)
        _tick_end.set(made)
        return made
