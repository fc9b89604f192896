"""Signatures are verified inline, with a budget a tick, so that sockets are served in between; or by helpers too.

1. At most `per_tick` verifications between two turns of the loop to its sockets (measured: 64 keep the loop's
   lag at p99 5 ms); a thread hop costs as much as one to two verifications, so there is none.
2. Beyond the budget signatures stand in one line. One task a tick works through it for all: they need no turn each.
3. The count begins anew only when it was used up, one tick later: no tick needs to be watched.
4. Helper processes come first, as long as they have little to do; what they can't take soon is verified inline. So
   neither side waits for the other, however much of its core a helper gets.
5. Whoever verifies, the answers for one key are told in the order of its signatures.
"""

import logging
from collections import deque
from collections.abc import Callable

import msgspec
import trio

from broker.actors.batches import Waiting
from broker.actors.helpers import Helpers, Start, process
from broker.wire import keys

log = logging.getLogger("turret.verifier")

ALONE_S = 0.0005
"""A signature that comes after such a silence is verified inline: a way to a helper and back takes longer."""

Check = Callable[[str, bytes, str], bool]
Then = Callable[[bool], None]


class VerifierStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment: how many wait in line, how many ever had to, who verified, and which helpers there are."""

    waiting: int
    delayed: int
    inline: int
    helped: int
    """Given to a helper; those of a helper that failed count as inline too."""
    helpers: int
    """Helpers that take work now."""
    helpers_failed: int
    """Helpers that had to be replaced."""


class Verifier:
    """One for a loop. `check` is broker.wire.keys.verify, or a test's; `start` starts a helper process."""

    def __init__(
        self, per_tick: int, check: Check = keys.verify, *, helpers: int = 0, start: Start = process
    ) -> None:
        self._per_tick = per_tick
        self._check = check
        self._left = per_tick
        self._line: deque[Waiting] = deque()
        self._working = False  # a task comes in the next tick, or is at it
        self._helpers = (
            Helpers(helpers, self._settle, self._take_back, self._share, start) if helpers else None
        )
        self._last: dict[str, Waiting] = {}  # with helpers: the latest of each key that has any
        self._came = float("-inf")
        self._delayed = self._inline = self._helped = 0

    async def run(self) -> None:
        """Keep the helpers alive, for ever; without any it returns. Cancelling has the loop verify what they owe."""
        if self._helpers is not None:
            await self._helpers.run()

    def submit(self, pk: str, message: bytes, sig: str, then: Callable[[bool], None]) -> None:
        """Have `then` called on the loop with whether `sig` is the signature by `pk` over `message`.

        No checkpoint. Within the budget `then` is called before this returns, as long as nothing waits; else
        later, by a task of the verifier's. Without helpers all answers come in the order of the submissions; with
        helpers those for one key do. `then` must not raise: what it raises is logged and goes no further.
        """
        if (
            self._left > 0 and not self._line and self._helpers is None
        ):  # the usual way, with no call to spare
            self._left -= 1
            self._inline += 1
            try:
                then(self._check(pk, message, sig))
            except Exception:
                log.exception("a signature, or what follows it, failed; the others go on")
        else:
            self._submit(pk, message, sig, then)

    async def verify(self, pk: str, message: bytes, sig: str) -> bool:
        """Whether `sig` is the signature by `pk` over `message`.

        No checkpoint where `submit` answers at once, so that a caller with one signature pays for nothing else;
        one or more elsewhere. Cancelling leaves the line.
        """
        answers: list[bool] = []
        waiting = self._submit(pk, message, sig, answers.append)
        if waiting is None or answers:
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

    def late_s(self) -> float:
        """For how long the first of the line waits, seconds; 0.0: nothing does."""
        return trio.current_time() - self._line[0].came if self._line else 0.0

    def statistics(self) -> VerifierStatistics:
        """A frozen moment."""
        return VerifierStatistics(
            waiting=sum(each.then is not None for each in self._line),
            delayed=self._delayed,
            inline=self._inline,
            helped=self._helped,
            helpers=self._helpers.ready if self._helpers is not None else 0,
            helpers_failed=self._helpers.failed if self._helpers is not None else 0,
        )

    def _submit(self, pk: str, message: bytes, sig: str, then: Then) -> Waiting | None:
        """None: it was answered. Else what may wait, and may have been answered."""
        if self._left > 0 and not self._line and (self._helpers is None or self._is_alone()):
            self._left -= 1
            self._inline += 1
            self._tell(then, self._judge(pk, message, sig))
            return None
        waiting = Waiting(pk, message, sig, then)
        if self._helpers is not None:
            before = self._last.get(pk)
            if before is not None:
                before.next = waiting
                waiting.first = False
            self._last[pk] = waiting
        self._line.append(waiting)
        if self._helpers is not None:
            self._share()
        if self._line:
            self._delayed += 1
        self._come()
        return waiting

    def _is_alone(self) -> bool:
        """Whether nothing is with the helpers, and nothing came for a while."""
        if self._last:
            return False
        before, self._came = self._came, trio.current_time()
        return self._came - before >= ALONE_S

    def _share(self) -> None:
        """Give the line to helpers while they have room, and verify inline what is left of the budget."""
        line, helpers = self._line, self._helpers
        while line:
            waiting = line[0]
            if waiting.then is None:
                line.popleft()
                self._settle(waiting, False)
            elif helpers is not None and helpers.take(waiting):
                line.popleft()
                self._helped += 1
            elif self._left > 0:
                line.popleft()
                self._left -= 1
                self._inline += 1
                self._settle(waiting, self._judge(waiting.pk, waiting.message, waiting.sig))
            else:
                return

    def _settle(self, waiting: Waiting, good: bool) -> None:
        """It is answered: tell, when all earlier ones of its key were told, and then those that follow it."""
        waiting.answer = good
        if not waiting.first:
            return
        while True:
            self._tell(waiting.then, waiting.answer)
            following = waiting.next
            if following is None:
                self._last.pop(waiting.pk, None)
                return
            following.first = True
            if following.answer is None:
                return
            waiting = following

    def _take_back(self, owed: list[Waiting]) -> None:
        """A helper failed: what it owed goes to the front of the line, where it was."""
        self._line.extendleft(reversed(owed))
        self._share()
        self._come()

    def _come(self) -> None:
        """Have a task come in the next tick, unless there is nothing to do."""
        if not self._working and (self._line or (self._helpers is not None and self._helpers.filling)):
            self._working = True
            trio.lowlevel.spawn_system_task(self._work_through_line, bool(self._line))

    async def _work_through_line(self, used_up: bool) -> None:
        """A budget a tick, until there is no line. It begins a tick after its spawning.

        `used_up`: the budget was, a tick ago. A new one beside what others used in this tick would be too much.
        """
        while True:
            if used_up:
                self._left = self._per_tick
            self._share()
            if self._helpers is not None:
                self._helpers.flush()
            if not self._line:
                break
            used_up = True
            await trio.lowlevel.cancel_shielded_checkpoint()  # one tick: a shield with a bound
        self._working = False

    def _judge(self, pk: str, message: bytes, sig: str) -> bool:
        """Verify inline. A fault is a no: a signature that could not be judged is not good."""
        try:
            return self._check(pk, message, sig)
        except Exception:
            log.exception("a signature could not be judged; it counts as bad")
            return False

    def _tell(self, then: Then | None, good: bool) -> None:
        if then is None:
            return
        try:
            then(good)
        except Exception:
            log.exception("what follows a signature failed; the others go on")
