"""What falls due: no_answer and idle of calls, a recovery key's move (wire.md, Life of a call).

Due times are an indexed column of the store, so that nothing is scanned at start and an actor that left memory
still gets its time. One task sleeps until the earliest; a commit that brings an earlier one nudges it. A time that
lies further ahead than its limit was written by a wall clock that was ahead: such calls are asked, and judge by the
monotonic clock how long they still have.
"""

import logging
import math

import msgspec
import trio

from broker.actors.actor import Crashed
from broker.actors.calls import ConvRow
from broker.actors.house import House
from broker.clock import Clock
from broker.core.conversation import Due
from broker.store.port import Store
from broker.wire.call import Phase
from broker.wire.refusals import Refusal

log = logging.getLogger("turret.timers")
FAR = 2**62
PAGE = 64
KINDS = {"conv": "conversation", "desk": "desk"}
STEP_MS = 1000
"""Steps back of the wall clock below this are left alone: they delay an END by no more."""
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
        """Wall clock less monotonic clock, milliseconds, at the last look: it falls when the wall is set back."""
        self._next = math.inf
        self._nudged = trio.Event()

    def nudge(self, due: int) -> None:
        """Something is (about to be) due at wall millisecond `due`."""
        if due < self._next:
            self._next = due
            self._nudged.set()

    async def run(self) -> None:
        """Tell each actor when its time has come, for ever. Cancelling loses nothing: the store knows."""
        while True:
            self._nudged = trio.Event()
            refused = await self._look_ahead() or await self._fire()
            if refused:
                await trio.sleep(RETRY_S)
                continue
            # The wall clock may step, and a commit in doubt may land: look again at least once a minute.
            seconds = min(60.0, max(0.0, (self._next - self._clock.now_ms()) / 1000))
            with trio.move_on_after(seconds):
                await self._nudged.wait()

    async def _look_ahead(self) -> bool:
        """At the start and after a step back of the wall: ask the calls whose time no present clock wrote."""
        now = self._clock.now_ms()
        ahead, before = now - self._clock.monotonic() * 1000, self._ahead
        if ahead > before - STEP_MS:
            self._ahead = max(ahead, before)  # small steps back add up
            return False
        refusals: list[bool] = []
        for row in await self._store.due("conv", "due", FAR, LOOKED_AT):
            phase = msgspec.json.decode(row.doc, type=ConvRow).phase
            if row.order > now + self._limits.get(phase, 0):
                await self._ask("conversation", row.id, refusals)
        if not refusals:
            self._ahead = ahead
        return bool(refusals)

    async def _fire(self) -> bool:
        """Ask all that is due now, and note the next due time. True: some answer was a refusal."""
        refusals: list[bool] = []
        upcoming = math.inf
        self._next = math.inf
        for kind, actor in KINDS.items():
            after: set[str] = set()
            while True:
                now = self._clock.now_ms()
                page = [row for row in await self._store.due(kind, "due", FAR, PAGE) if row.id not in after]
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

    async def _ask(self, kind: str, key: str, refusals: list[bool]) -> None:
        try:
            answer = await self._house.ask(kind, key, Due())
        except Crashed:
            log.exception("a due time met a fault")
            refusals.append(True)
            return
        if isinstance(answer, Refusal):
            refusals.append(True)
