"""A plan as a program: what its rules do at a tick (docs/reference/plan.md, What a rule means).

1. A program sees the present tick and keeps what its looks at the past need. It has no clock, no chance, no floats.
2. Every value is kept in halves, since mid is one: `mid` is bid + ask, 3 is 6. So no rule ever rounds before it acts.
3. The bounds are not its business: who runs it keeps them.

`emit` makes Python of the typed tree. No text of whoever wrote the plan gets into it: a parameter stands there as its
number, and numbers are written by Python.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from broker.core.pieces import Pieces, whole
from broker.core.plan.emit import emit
from broker.core.plan.limits import back, lets, looks, reach, valued
from broker.core.plan.tree import Past, Plan
from broker.core.plan.windows import KINDS, Delay


class View(Struct):
    """What a rule may see at a tick. Whoever runs a program may fill the same one again at each tick."""

    tick: int
    """From 0."""
    bid: int
    ask: int
    """In ticks."""
    size: int | None = None
    """Of each side, in units; None where the tape has none."""
    position: int = 0
    pnl: int = 0
    """In millionths of the quote currency."""
    orders_left: int = 0
    resting: int = 0
    """Orders that rest."""
    fill: int | None = None
    """The price of the last fill, in ticks; None before the first."""
    fill_age: int | None = None
    """How many ticks ago it was."""


class Send(Struct, frozen=True, tag="send"):
    """An order to send."""

    side: Literal["buy", "sell"]
    size: int
    price: int
    tif: Literal["ioc", "gtc"] | int
    rule: int
    """Which rule says so, from 0."""


class Command(Struct, frozen=True, tag="command"):
    """Something else to do."""

    word: Literal["cancel", "flatten", "stand_down"]
    rule: int


Action = Send | Command


class Program:
    """A plan, ready to be asked tick by tick, in order. It belongs to one run."""

    def __init__(
        self, plan: Plan, step: Callable[[View], list[Action]], warm: Callable[[View], None]
    ) -> None:
        self.plan = plan
        self.reach: Final = reach(plan)
        """How many ticks before the present one it looks at."""
        self.step = step
        """What to do at this tick, in order. Each tick is shown once, by `step` or by `warm`."""
        self.warm = warm
        """Shows a tick that is past, so that rules may look back at it: of the ticks before the first `step`, the last
        `reach` ones are enough. Only the tape's part of the view is looked at."""


def compile_plan(plan: Plan) -> Program:
    """A new program of a plan that `read` took."""
    return whole(compiling(plan))


def compiling(plan: Plan) -> Pieces[Program]:
    """The same in pieces of some 5 ms at most."""
    source = emit(plan)
    yield
    code = compile(source, "<plan>", "exec")
    yield
    values = lets(plan)
    names: dict[str, Any] = {"__builtins__": {"abs": abs}, "Send": Send, "Command": Command}
    for number, look in enumerate(looks(plan)):
        ago = valued(look.ago, values)
        if isinstance(look, Past):
            names[f"look{number}"] = Delay(ago).push
            continue
        names[f"look{number}"] = KINDS[look.fn](valued(look.ticks, values)).push
        names[f"ago{number}"] = Delay(ago).push
    assert all(back(each, values) >= 0 for each in looks(plan))
    exec(code, names)  # noqa: S102  # what `emit` made: fixed words and numbers
    step, warm = names["make"]()
    return Program(plan, step, warm)
