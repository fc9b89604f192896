"""Signatures are verified inline, with a budget a tick, so that sockets are served in between.

1. At most `per_tick` verifications between two turns of the loop to its sockets (measured: 16 keep the loop's
   lag at p99 3 ms); a thread hop costs as much as one to two verifications, so there is none.
2. Beyond the budget signatures stand in one line. One task a tick works through it for all: they need no turn each.
3. The count begins anew only when it was used up, one tick later: no tick needs to be watched.
"""

import logging
from collections import deque
from collections.abc import Callable

import msgspec
import trio

from broker.wire import keys

log = logging.getLogger("turret.verifier")

Check = Callable[[str, bytes, str], bool]
Then = Callable[[bool], None]


class VerifierStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment: how many wait, and how many ever had to."""

    waiting: int
    delayed: int


class _Waiting:
    """A signature in line. Without `then` nobody wants to know any more."""

    __slots__ = ("message", "pk", "sig", "then")

    def __init__(self, pk: str, message: bytes, sig: str, then: Then) -> None:
        self.pk = pk
        self.message = message
        self.sig = sig
        self.then: Then | None = then


class Verifier:
    """One for a loop. `check` is broker.wire.keys.verify, or a test's."""

    def __init__(self, per_tick: int, check: Check = keys.verify) -> None:
        self._per_tick = per_tick
        self._check = check
        self._left = per_tick
        self._line: deque[_Waiting] = deque()
        self._working = False  # a task works through the line; then _left is that tick's
        self._delayed = 0

    def submit(self, pk: str, message: bytes, sig: str, then: Callable[[bool], None]) -> None:
        """Have `then` called on the loop with whether `sig` is the signature by `pk` over `message`.

        No checkpoint. Within the budget `then` is called before this returns; beyond it in a later tick, by a
        task of the verifier's. The answers come in the order in which the signatures were submitted. `then`
        must not raise: what it raises is logged and goes no further.
        """
        self._submit(pk, message, sig, then)

    async def verify(self, pk: str, message: bytes, sig: str) -> bool:
        """Whether `sig` is the signature by `pk` over `message`.

        No checkpoint while the budget lasts, so that a caller with one signature pays for nothing else; one or
        more beyond it. Cancelling leaves the line.
        """
        answers: list[bool] = []
        waiting = self._submit(pk, message, sig, answers.append)
        if waiting is None:
            return answers[0]
        task = trio.lowlevel.current_task()

        def answer(good: bool) -> None:
            answers.append(good)
            trio.lowlevel.reschedule(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            waiting.then = None
            return trio.lowlevel.Abort.SUCCEEDED

        waiting.then = answer
        await trio.lowlevel.wait_task_rescheduled(abort)
        return answers[0]

    def statistics(self) -> VerifierStatistics:
        """A frozen moment."""
        waiting = sum(each.then is not None for each in self._line)
        return VerifierStatistics(waiting=waiting, delayed=self._delayed)

    def _submit(self, pk: str, message: bytes, sig: str, then: Then) -> _Waiting | None:
        """None: it was answered. Else where it waits."""
        if self._left > 0 and not self._line:
            self._left -= 1
            self._answer(pk, message, sig, then)
            return None
        self._delayed += 1
        waiting = _Waiting(pk, message, sig, then)
        self._line.append(waiting)
        if not self._working:
            self._working = True
            trio.lowlevel.spawn_system_task(self._work_through_line)
        return waiting

    async def _work_through_line(self) -> None:
        """Verify for those in line, a budget a tick, until there is no line. It begins a tick after its spawning."""
        while True:
            self._left = self._per_tick
            while self._line and self._left > 0:
                waiting = self._line.popleft()
                if waiting.then is not None:
                    self._left -= 1
                    self._answer(waiting.pk, waiting.message, waiting.sig, waiting.then)
            if not self._line:
                break
            await trio.lowlevel.cancel_shielded_checkpoint()  # one tick: a shield with a bound
        self._working = False

    def _answer(self, pk: str, message: bytes, sig: str, then: Then) -> None:
        """Verify and tell. A fault in verifying is no: a signature that could not be judged is not good."""
        try:
            good = self._check(pk, message, sig)
        except Exception:
            log.exception("a signature could not be judged; it counts as bad")
            good = False
        try:
            then(good)
        except Exception:
            log.exception("what follows a signature failed; the others go on")
