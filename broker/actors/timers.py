"""What falls due: no_answer and idle of calls, a recovery key's move (wire.md, Life of a call).

Due times are an indexed column of the store, so that nothing is scanned at start and an actor that left memory
still gets its time. One task sleeps until the earliest; a commit that brings an earlier one nudges it. When the wall
clock steps, calls are told how long they still have, by the clock before the step. At the start a time that lies
further ahead than its limit was written by a wall clock that was ahead: such calls are asked, and judge by the
monotonic clock.
"""

import logging
import math

import trio

from broker.actors.actor import Crashed
from broker.actors.calls import read_conv_row
from broker.actors.house import House
from broker.clock import Clock
from broker.core.conversation import DUE, Due
from broker.store.port import Document, Store, Unavailable
from broker.wire.call import Phase
from broker.wire.refusals import Refusal

log = logging.getLogger("turret.timers")
FAR = 2**62
PAGE = 64
KINDS = {
    "conv": "conversation",
    "desk": "desk",
    "grant": "grant",
    "agent": "agent",
    "leaving": "leaving",
    "channel": "channel",
    "pair": "pair",
    "library": "library",
    "task": "task",
    "arena": "arena",
    "trial": "trial",
    "tape": "tape",
}
STEP_MS = 1000
"""Steps of the wall clock below this are left alone: they move an END by no more."""
LOOKED_AT = 10_000
"""Calls looked at after a step; more of them than this at once wait for their written time."""
RETRY_S = 1.0
"""After a refusal (the store takes no writes) the same due time is tried again this much later."""


class Timers:
    """One loop over all due times."""

    def __init__(self, store: Store, house: House, clock: Clock, *, ring_s: float, idle_s: float) -> None:
        self._store = store
        self._house = house
        self._clock = clock
        self._limits = {Phase.RINGING: round(ring_s * 1000), Phase.OPEN: round(idle_s * 1000)}
        self._ahead = math.inf
        """Wall clock less monotonic clock, milliseconds, at the last look: it changes when the wall steps."""
        self._untold: dict[str, tuple[int, float]] = {}
        """Calls that a step concerns and that do not have their new time yet: when they were due, and how far ahead the
        wall was when that was written."""
        self._next = math.inf
        self._nudged = trio.Event()

    def nudge(self, due: int) -> None:
        """Something is (about to be) due at wall millisecond `due`."""
        if due < self._next:
            self._next = due
            self._nudged.set()

    async def run(self) -> None:
        """Tell each actor when its time has come, for ever. Cancelling loses nothing: the store knows.

        Raises Unavailable where due times can't be read at the start: such a store is not served. Later that ends
        nothing, and they are looked at again.
        """
        looked = False
        while True:
            self._nudged = trio.Event()
            try:
                await self._look_ahead()
                refused = await self._fire() or bool(self._untold)
            except Unavailable:
                if not looked:
                    raise
                refused = True
            looked = True
            if refused:
                await trio.sleep(RETRY_S)
                continue
            # The wall clock may step, and a commit in doubt may land: look again at least once a minute.
            seconds = min(60.0, max(0.0, (self._next - self._clock.now_ms()) / 1000))
            with trio.move_on_after(seconds):
                await self._nudged.wait()

    async def _look_ahead(self) -> None:
        """At the start and after a step of the wall: ask the calls whose time no present clock wrote.

        One that can't be told is asked again, alone, and holds up no other; until then what its time says stands for
        nothing.
        """
        now, mono_ms = self._clock.now_ms(), self._clock.monotonic() * 1000
        ahead, before = now - mono_ms, self._ahead
        if abs(ahead - before) < STEP_MS:
            self._ahead = max(ahead, before)  # small steps back add up
        else:
            for row in await self._store.due("conv", "due", FAR, LOOKED_AT):
                limit = self._limit(row)
                # What a call of after the step has written lies within its limit by the present clock alone.
                far = row.order - before - mono_ms <= limit if ahead > before else row.order > now + limit
                if far:
                    self._untold.setdefault(row.id, (row.order, before))
            self._ahead = ahead
        for conv, (due, before) in list(self._untold.items()):
            refusals: list[bool] = []
            left_s = (due - before) / 1000 - self._clock.monotonic()
            await self._ask("conversation", conv, refusals, Due(left_s, before))
            if not refusals:
                del self._untold[conv]

    def _limit(self, row: Document) -> float:
        """How long a call may be without an envelope, milliseconds; for ever where its document is damaged: it is
        named in the log, and what asks it hears so."""
        try:
            return self._limits.get(read_conv_row(row).phase, 0)
        except Unavailable:
            return math.inf

    async def _fire(self) -> bool:
        """Ask all that is due now, and note the next due time. True: some answer was a refusal."""
        refusals: list[bool] = []
        upcoming = math.inf
        self._next = math.inf
        for kind, actor in KINDS.items():
            after = set(self._untold)
            while True:
                now = self._clock.now_ms()
                rows = await self._store.due(kind, "due", FAR, PAGE + len(after))
                # What was done is not due any more. Kept here it would make each page twice the one before.
                after &= {row.id for row in rows if row.order <= now} | self._untold.keys()
                page = [row for row in rows if row.id not in after][:PAGE]
                ready = [row for row in page if row.order <= now]
                async with trio.open_nursery() as nursery:  # side by side, so that their commits are grouped
                    for row in ready:
                        after.add(row.id)
                        if kind == "desk":  # in the order of their times: two may move to the same key
                            await self._ask(actor, row.id, refusals)
                        else:
                            nursery.start_soon(self._ask, actor, row.id, refusals)
                if not ready:
                    if page:
                        upcoming = min(upcoming, page[0].order)
                    break
        self._next = min(self._next, upcoming)
        return bool(refusals)

    async def _ask(self, kind: str, key: str, refusals: list[bool], due: Due = DUE) -> None:
        try:
            answer = await self._house.ask(kind, key, due)
        except Crashed:
            log.exception("a due time met a fault")
            refusals.append(True)
            return
        if isinstance(answer, Refusal):
            refusals.append(True)
