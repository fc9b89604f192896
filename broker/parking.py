"""A place where one task waits until it is woken: what is under an actor, a reader, and a writer.

A trio.Event would cost more, and be made anew for each wait.
"""

from typing import Any

import trio


class Parked:
    """A place for one task. `task` is who waits there, None where nobody does."""

    __slots__ = ("task",)

    def __init__(self) -> None:
        self.task: trio.lowlevel.Task | None = None

    async def park(self) -> None:
        """Wait for `wake`. Cancelling ends the wait, and loses nothing."""
        self.task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._leave)

    def wake(self) -> None:
        """Have who waits go on; does nothing where nobody does. No checkpoint."""
        if self.task is not None:
            trio.lowlevel.reschedule(self.task)
            self.task = None

    def _leave(self, _: Any) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED
