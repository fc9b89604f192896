"""Signatures are verified inline, with a budget a tick, so that sockets are served in between.

1. At most `per_tick` verifications between two turns of the loop to its sockets (measured: 16 keep the loop's
   lag at p99 3 ms); a thread hop costs as much as one to two verifications, so there is none.
2. Beyond the budget callers wait in the order in which they came. The first of them waits for the next tick
   and works through the line for all: they need no turn each.
3. The count begins anew only when it was used up, one tick later: no tick needs to be watched.
"""

from collections.abc import Callable

import msgspec
import outcome
import trio

from broker.wire import keys

Check = Callable[[str, bytes, str], bool]


class VerifierStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment: how many wait, and how many ever had to."""

    waiting: int
    delayed: int


class Verifier:
    """One for a loop. `check` is broker.wire.keys.verify, or a test's."""

    def __init__(self, per_tick: int, check: Check = keys.verify) -> None:
        self._per_tick = per_tick
        self._check = check
        self._left = per_tick
        self._led = False  # someone waits for the next tick; then _left is 0 and others stand in line
        self._line: dict[trio.lowlevel.Task, tuple[str, bytes, str]] = {}
        self._delayed = 0

    async def verify(self, pk: str, message: bytes, sig: str) -> bool:
        """Whether `sig` is the signature by `pk` over `message`.

        No checkpoint while the budget lasts, so that a caller with one signature pays for nothing else; one
        or more beyond it. Cancelling leaves the line.
        """
        if self._left > 0:
            self._left -= 1
            return self._check(pk, message, sig)
        self._delayed += 1
        if self._led:
            answer = await self._stand_in_line(pk, message, sig)
            if answer is not None:
                return answer
        else:
            self._led = True
            await trio.lowlevel.cancel_shielded_checkpoint()  # one tick: a shield with a bound
        self._left = self._per_tick - 1
        try:
            return self._check(pk, message, sig)
        finally:
            self._work_through_line()

    def statistics(self) -> VerifierStatistics:
        """A frozen moment."""
        return VerifierStatistics(waiting=len(self._line), delayed=self._delayed)

    async def _stand_in_line(self, pk: str, message: bytes, sig: str) -> bool | None:
        """The answer, or None: a new tick has begun and this one is the first in line."""
        task = trio.lowlevel.current_task()
        self._line[task] = (pk, message, sig)

        def abort(_: object) -> trio.lowlevel.Abort:
            del self._line[task]
            return trio.lowlevel.Abort.SUCCEEDED

        answer: bool | None = await trio.lowlevel.wait_task_rescheduled(abort)
        return answer

    def _work_through_line(self) -> None:
        """Verify for those in line while the tick's budget lasts; the next one goes on in the next tick."""
        while self._line:
            task = next(iter(self._line))
            asked = self._line.pop(task)
            if self._left == 0:
                trio.lowlevel.reschedule(task)  # with None: it is first, and its tick is the next
                return
            self._left -= 1
            trio.lowlevel.reschedule(task, outcome.capture(self._check, *asked))
        self._led = False
