"""A plan run on a tape, tick by tick (docs/reference/trial.md, Runs).

1. At a tick first the orders of before act, then the bounds are looked at, then the rules, which see that tick and
   those before it and nothing else; what they send acts from the next tick on.
2. It is a pure function of tape, plan and calls: the same on every machine, in one go or in many.
3. What is over stays over. Who stands down closes the position first, as fast as the tape's size lets it.
"""

from array import array
from typing import Final, Literal

import msgspec

from broker.core.pieces import Pieces, whole
from broker.core.plan.limits import looks
from broker.core.plan.program import Program, Send, View, compiling
from broker.core.plan.tree import Plan
from broker.core.tapes.tape import Tape
from broker.core.trials.account import (
    MAX_PNL,
    UNBOUNDED,
    Account,
    Bounds,
    Fill,
    Side,
    close,
    exposed,
    pnl,
    send,
    trade,
)

Why = Literal["rule", "loss", "money", "until", "tape"]
"""Why a run is over, or about to be: a rule stood down, the loss bound was reached, or the most profit that is told; or
it was the last tick of the plan, or of the tape."""
Outcome = Literal["RUNNING", "STAND_DOWN", "DONE"]
STANDS_DOWN: Final = ("rule", "loss", "money")
SHOWN: Final = 5_000
"""Past ticks, times looks at them, that a program is shown in one piece of work."""


class Place(msgspec.Struct, kw_only=True):
    """Where a run stands: all that it needs, with its plan and its tape, to go on."""

    tick: int = 0
    """The next one."""
    account: Account = msgspec.field(default_factory=Account)
    closing: Why | None = None
    """Why nothing but the closing of the position is done any more."""
    over: Why | None = None


class Run:
    """A run that goes on from a place, which it moves. Ticks before the place are shown to the program first."""

    def __init__(
        self,
        tape: Tape,
        plan: Plan,
        place: Place,
        curve: "array[int] | None" = None,
        program: Program | None = None,
    ) -> None:
        self.place = place
        self.curve = curve
        """Profit and loss of each tick that was run, if it is wanted."""
        self._tape = tape
        self._sized = tape.about.sized
        self._bounds = bounds_of(plan)
        self._program = program or whole(ready(plan, tape, place.tick))
        self._view = View(tick=0, bid=0, ask=0)
        self._held: dict[Side, int] = {}
        """What is exposed on a side, as far as it is known in this tick: a plan may send hundreds of orders in one."""

    @property
    def outcome(self) -> Outcome:
        """What is said of it now."""
        return outcome_of(self.place)

    def advance(self, ticks: int, most: int = UNBOUNDED) -> list[Fill]:
        """Go on for so many ticks, until it is over, or to the tick at which `most` fills are there; these fills."""
        place, tape = self.place, self._tape
        fills: list[Fill] = []
        until = min(len(tape), place.tick + ticks)
        while place.tick < until and place.over is None and len(fills) < most:
            fills += self._tick(place.tick)
            place.tick += 1
        if place.tick >= len(tape) and place.over is None:
            place.over = place.closing or "tape"
        return fills

    def _tick(self, tick: int) -> list[Fill]:
        place, account = self.place, self.place.account
        self._held.clear()
        fills = trade(account, self._tape, tick) if account.working else []
        made = pnl(account, self._tape, tick)
        if self.curve is not None:
            self.curve.append(made)
        if place.closing is not None:
            if not account.position:
                place.over = place.closing
            return fills
        if made <= -self._bounds.loss:
            self._end("loss")
        elif made >= MAX_PNL:
            self._end("money")
        elif tick >= self._bounds.until:
            self._end("until")
        else:
            self._rules(tick, made)
        return fills

    def _rules(self, tick: int, made: int) -> None:
        tape, view, account = self._tape, self._view, self.place.account
        view.tick, view.bid, view.ask = tick, tape.bids[tick], tape.asks[tick]
        if self._sized:
            view.size = tape.sizes[tick]
        view.position, view.pnl = account.position, made
        view.orders_left, view.resting = max(0, self._bounds.orders - account.sent), len(account.working)
        if account.filled_at >= 0:
            view.fill, view.fill_age = account.fill, tick - account.filled_at
        for action in self._program.step(view):
            if isinstance(action, Send):
                self.send(action.side, action.size, action.price, action.tif, tick)
            elif action.word == "cancel":
                account.working = []
                self._held.clear()
            elif action.word == "flatten":
                close(account)
                self._held.clear()
            else:
                self._end("rule")

    def send(
        self, side: Side, size: int, price: int | None, tif: Literal["ioc", "gtc"] | int, tick: int
    ) -> bool:
        """Send an order at a tick, cut to the bounds; False: a bound kept it back."""
        dies = None if tif == "gtc" else tick + 1 if tif == "ioc" else tick + tif
        account, held = self.place.account, self._held.get(side)
        if held is None:
            held = self._held[side] = exposed(account, side)
        sent = send(account, self._bounds, side, size, price, dies, held)
        if sent:
            self._held[side] = held + account.working[-1].left
        return sent

    def _end(self, why: Why) -> None:
        close(self.place.account)
        if self.place.account.position:
            self.place.closing = why
        else:
            self.place.over = why


def outcome_of(place: Place) -> Outcome:
    """What is said of a run that stands there: STAND_DOWN as soon as it is decided."""
    why = place.over or place.closing
    if why in STANDS_DOWN:
        return "STAND_DOWN"
    return "RUNNING" if place.over is None else "DONE"


def bounds_of(plan: Plan) -> Bounds:
    """A plan's bounds."""
    bound = plan.bound
    return Bounds(bound.position, bound.loss, bound.orders, bound.until)


def ready(plan: Plan, tape: Tape, tick: int) -> Pieces[Program]:
    """A plan's program that has seen of the ticks before `tick` as many as it looks back at."""
    program = yield from compiling(plan)
    at_once = max(1, SHOWN // (1 + len(looks(plan))))
    for first in range(max(0, tick - program.reach), tick, at_once):
        yield
        for past in range(first, min(tick, first + at_once)):
            size = tape.sizes[past] if tape.about.sized else None
            program.warm(View(tick=past, bid=tape.bids[past], ask=tape.asks[past], size=size))
    return program
