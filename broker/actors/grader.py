"""Grades of published trials: done again in pieces, off the loop's back, and remembered (trial.md, Grades).

1. Who asks is done one artifact at a time, and waits its turn behind others; in all so many may wait. An artifact that
   somebody else had graded meanwhile is not done again.
2. Between two pieces of some milliseconds the loop is everybody else's. What can't be cut, and is long, is done in a
   thread.
3. An artifact never changes, and neither do its grades: they are remembered by ref, the latest of them.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, TypeVar

import trio

from broker.actors.latest import Latest
from broker.actors.mill import in_turns
from broker.apart import apart
from broker.core.tapes.tape import Tape
from broker.core.trials.review import Fault, Graded, Ran, judge, judge_plans, misfit, run_again, work
from broker.core.trials.script import Artifact, Entry
from broker.wire.refusals import Refusal, refuse

KEPT: Final = 64
"""Answers that are remembered; with its thinned curves one has 100 KiB."""
WAITING: Final = 16
"""Artifacts that may wait for their turn; more are refused."""
LARGE: Final = 20_000
"""Ticks from which on that what can't be cut is done in a thread; it takes some 40 ms."""
LONG: Final = 65_536
"""Bytes of an artifact that are read on the loop, or written there; it takes some 5 ms."""
TOLD: Final = 20
"""How often progress is told of one artifact, at most."""
T = TypeVar("T")
Find = Callable[[Entry], Awaitable[Tape | Fault]]
"""The tape that has the ref of an entry, or why there is none."""
Told = Callable[[int, int], Awaitable[None]]
"""Hears how many ticks are done, of how many."""
Mine = Callable[[], AbstractAsyncContextManager[None]]
Turn = Callable[[str], AbstractAsyncContextManager[None]]
"""The turn for one piece of work, by who asks for it."""


class Grader:
    """What all who ask for grades share."""

    def __init__(self) -> None:
        self._known: Latest[str, Graded] = Latest(KEPT)
        self._one = trio.Lock()
        self._asking: set[str] = set()

    async def grade(
        self,
        who: str,
        ref: str,
        content: bytes,
        artifact: Artifact,
        find: Find,
        turn: Turn,
        *,
        told: Told | None = None,
        most: int = WAITING,
    ) -> Graded | Fault | Refusal:
        """The grades of an artifact whose form was read from `content`; a Fault where it does not hold;
        `overloaded` where `who` asks for another one already, or `most` wait. Cancelling stops the work: nothing of it
        is kept, and what is done in a thread is waited for.
        """
        if (known := self._known.get(ref)) is not None:
            return known
        if who in self._asking:
            return refuse(
                "overloaded", "another one is being graded for you; wait for it", retry_after_ms=1000
            )
        if len(self._asking) >= most:
            return refuse("overloaded", "too many wait to be graded", retry_after_ms=5000)
        self._asking.add(who)
        try:
            async with self._one:
                if (known := self._known.get(ref)) is not None:
                    return known
                found = await self._do(content, artifact, find, partial(turn, who), told)
                if isinstance(found, Graded):
                    self._known[ref] = found
                return found
        finally:
            self._asking.discard(who)

    async def _do(
        self, content: bytes, artifact: Artifact, find: Find, turn: Mine, told: Told | None
    ) -> Graded | Fault:
        if (fault := await in_turns(turn, judge_plans(artifact))) is not None:
            return fault
        tape = await find(artifact.entry)
        if isinstance(tape, Fault):
            return tape
        if (fault := misfit(artifact.entry, tape)) is not None:
            return fault
        ran = await _run(artifact, tape, turn, told)
        if isinstance(ran, Fault):
            return ran
        return await at_length(max(len(tape), length_of(content)), judge, content, artifact, ran)


async def _run(artifact: Artifact, tape: Tape, turn: Mine, told: Told | None) -> Ran | Fault:
    whole, said = work(artifact), 0

    async def heard(done: int) -> None:
        nonlocal said
        if told is not None and (done - said) * TOLD >= whole:
            said = done
            await told(min(done, whole), whole)

    return await in_turns(turn, run_again(artifact, tape), heard)


def length_of(content: bytes) -> int:
    """How many ticks take as long as reading an artifact, or writing it."""
    return LARGE * len(content) // LONG


async def at_length(ticks: int, do: Callable[..., T], *args: Any) -> T:
    """What a function gives that takes the longer the more ticks there are: of many in a thread."""
    return do(*args) if ticks < LARGE else await apart(do, *args)
