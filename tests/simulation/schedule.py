"""One run of Trio that is the same each time: virtual time, and chance from the seed.

Trio runs the tasks of one tick in a random order. As hypothesis-trio does, we give its source of chance the seed and
have it sort a tick's tasks by age first; both are names of Trio's own that it keeps for this purpose. What is left is
the order in which sets are walked, which goes by addresses: nothing of ours depends on that, and a test compares the
traces of two processes.
"""

import gc
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio
import trio._core._run as loop
import trio.testing

T = TypeVar("T")


class Steps(trio.abc.Instrument):
    """Counts the steps of tasks, and does what is planned for one of them."""

    def __init__(self) -> None:
        self.count = 0
        self._planned: list[tuple[int, Callable[[], None]]] = []

    def after(self, steps: int, strike: Callable[[], None]) -> None:
        """Call `strike` between two steps of tasks, that many steps from now. It may raise nothing."""
        self._planned.append((self.count + steps, strike))

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Trio calls this whenever a task has come to an await."""
        self.count += 1
        if self._planned:
            due = [strike for at, strike in self._planned if at <= self.count]
            self._planned = [each for each in self._planned if each[0] > self.count]
            for strike in due:
                strike()


def run_alike(seed: int, main: Callable[[Steps], Awaitable[T]]) -> T:
    """Run `main` under virtual time, with this seed's order of tasks."""
    state, sorted_before = loop._r.getstate(), loop._ALLOW_DETERMINISTIC_SCHEDULING
    collected = gc.isenabled()
    gc.disable()  # it would end abandoned generators at its own moments
    loop._r.seed(seed)
    loop._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # a constant to all but this
    steps = Steps()
    try:
        return trio.run(
            main,
            steps,
            clock=trio.testing.MockClock(autojump_threshold=0),
            instruments=[steps],
            strict_exception_groups=True,
        )
    finally:
        loop._ALLOW_DETERMINISTIC_SCHEDULING = sorted_before  # type: ignore[misc]
        loop._r.setstate(state)
        if collected:
            gc.enable()
