"""An advance in slices, each of about the same time, so that nobody waits long for the loop (decision 0040).

1. What a tick takes is known without a clock: what its plan costs, and what the orders that rest cost.
2. Where it is cut changes nothing: a slice ends between two ticks, and a limit of fills is looked at after each tick.
"""

from typing import Final

from broker.core.trials.account import Fill
from broker.core.trials.script import Trial

STEPS: Final = 50_000
"""Of one slice: some 2 ms (decision 0040)."""
TICK: Final = 40
"""What a tick costs whatever its plan does, in steps of a plan's cost."""
RESTING: Final = 8
"""What an order that rests costs a tick."""
AT_ONCE: Final = 8
"""Ticks between two looks at what they cost: a plan may send hundreds of orders in one, and they may rest."""


def advance_slice(
    trial: Trial, ticks: int, most: int, cost: int, steps: int = STEPS
) -> tuple[int, int, list[Fill]]:
    """Go on for at most `ticks`, for `steps`, or to the tick at which `most` fills are there. Ticks that were run, the
    steps that they took, and what was filled. `cost`: the plan's. At least one tick is run, if one is left."""
    place = trial.place
    began, spent = place.tick, 0
    fills: list[Fill] = []
    while place.over is None and spent < steps and len(fills) < most and (ran := place.tick - began) < ticks:
        tick = TICK + cost + RESTING * len(place.account.working)
        count = min(ticks - ran, AT_ONCE, max(1, (steps - spent) // tick))
        fills += trial.advance(count, most - len(fills))
        spent += tick * count
    return place.tick - began, spent, fills
