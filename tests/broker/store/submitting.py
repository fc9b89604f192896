"""The law of `submit`, part of the conformance tests: who does not wait is told on the loop, in order."""

from functools import partial

import pytest
import trio

from broker.store.port import Conflict, Deliver, Drop, Event, Store, Unavailable, Unit
from tests.broker.store.units import row


class Submitting:
    """What submit promises (law 6)."""

    @pytest.mark.requirement("store.submit")
    async def test_what_is_submitted_is_answered_on_the_loop_in_order_when_it_is_durable(
        self, store: Store
    ) -> None:
        told: list[Event] = []
        store.watch(told.extend)
        answers: list[tuple[int, str, int]] = []
        done = trio.Event()

        def then(number: int, error: BaseException | None) -> None:
            what = error.what if isinstance(error, Conflict) else type(error).__name__
            answers.append((number, what, len(told)))
            if len(answers) == 6:
                done.set()

        units = [
            row("conv:a", 0, "pk:a"),
            row("conv:a", 0, "pk:a"),
            row("conv:a", 1, "pk:a", "pk:b"),
            Unit(deliver=(Deliver("pk:a", "env"),)),
            Unit(drop=Drop("conv:b")),
            row("conv:b", 0),
        ]
        for number, unit in enumerate(units):
            store.submit(unit, partial(then, number))
        assert answers == [], "never before submit has returned"
        with trio.fail_after(5):
            await done.wait()
        outcomes = ["NoneType", "append", "NoneType", "ValueError", "NoneType", "drop"]
        assert [answer[:2] for answer in answers] == list(enumerate(outcomes))
        assert all(heard >= least for (_, _, heard), least in zip(answers, (1, 1, 3, 3, 3, 3), strict=True))
        assert [entry.n for entry in await store.entries("conv:a")] == [0, 1]

    @pytest.mark.requirement("store.submit")
    async def test_what_was_submitted_before_closing_is_written_and_after_it_is_refused(
        self, store: Store
    ) -> None:
        answers: list[BaseException | None] = []
        store.submit(row("conv:a", 0, "pk:a"), answers.append)
        await store.aclose()
        store.submit(row("conv:a", 1, "pk:a"), answers.append)
        assert answers == [None]
        with trio.fail_after(5):
            while len(answers) < 2:
                await trio.lowlevel.checkpoint()
        assert isinstance(answers[1], Unavailable)
