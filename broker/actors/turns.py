"""At most so many go on in one turn of the loop; the others wait for the next turn, in the order in which they came.

Nobody holds a place for longer than the turn: who is slow afterwards is in nobody's way.
"""

from collections import deque

import trio


class Turns:
    """Turns of the loop, with places for `most` each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._line: deque[trio.lowlevel.Task] = deque()
        self._counting = False
        """Whether the loop calls `_turn` when its next turn begins; it does while places are taken."""

    async def wait(self) -> None:
        """Take a place: at once, with no checkpoint, where the present turn has one. Cancelling leaves the line."""
        self._count()
        if self._left and not self._line:
            self._left -= 1
            return
        task = trio.lowlevel.current_task()
        self._line.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._line.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _count(self) -> None:
        if not self._counting:
            self._counting = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._turn)

    def _turn(self) -> None:
        """A turn has begun: give its places out. What was taken in the last one is forgotten."""
        self._counting = False
        self._left = self._most
        while self._line and self._left:
            self._left -= 1
            trio.lowlevel.reschedule(self._line.popleft())
        if self._left < self._most:
            self._count()
