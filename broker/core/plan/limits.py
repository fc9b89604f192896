"""What a plan may cost, and what it costs: known before it runs (docs/reference/plan.md, Limits)."""

from collections.abc import Iterator
from typing import Final

from broker.core.plan.tree import Abs, Calc, Constant, Expr, Money, Neg, Node, Past, Plan, Window

MAX_TEXT: Final = 8_192
"""Characters of a text; bytes of a JSON text may be four times as many."""
MAX_RULES: Final = 64
MAX_LETS: Final = 32
MAX_ACTIONS: Final = 8
MAX_DEPTH: Final = 16
"""How deep a rule may be nested, as its JSON is: a plan stays within what every JSON reader here takes, also inside of
an artifact."""
MAX_BACK: Final = 4_096
"""How many ticks a rule may look back."""
MAX_COST: Final = 1_000
"""Steps of one tick."""
MAX_POSITION: Final = 10**12
MAX_ORDERS: Final = 10_000
MAX_UNTIL: Final = 1_000_000
"""A tape's longest (docs/reference/trial.md)."""

WINDOW_STEPS: Final = 20
PAST_STEPS: Final = 10
"""What keeping a look at the past costs, in steps (python -m bench.plan)."""


def cost(plan: Plan) -> int:
    """Steps of one tick, at most: one for each rule, condition, action, quantity, number and sign; and for each
    different look at the past what it takes to keep it."""
    kept = looks(plan)
    windows = sum(isinstance(each, Window) for each in kept)
    steps = sum(1 for rule in plan.rules for _ in nodes(rule))
    return steps + WINDOW_STEPS * windows + PAST_STEPS * (len(kept) - windows)


def looks(plan: Plan) -> list[Past | Window]:
    """The different looks at the past, in order."""
    found = (each for rule in plan.rules for each in nodes(rule) if isinstance(each, Past | Window))
    return list(dict.fromkeys(found))


def lets(plan: Plan) -> dict[str, int]:
    """Parameter → its value; money in millionths."""
    return {
        each.name: each.value.micros if isinstance(each.value, Money) else each.value for each in plan.let
    }


def back(look: Past | Window, values: dict[str, int]) -> int:
    """How many ticks before the present one it needs."""
    ago = valued(look.ago, values)
    return ago if isinstance(look, Past) else ago + valued(look.ticks, values) - 1


def valued(constant: Constant, values: dict[str, int]) -> int:
    """A constant's number."""
    return values[constant] if isinstance(constant, str) else constant


def reach(plan: Plan) -> int:
    """How many ticks before the present one the plan needs."""
    values = lets(plan)
    return max((back(each, values) for each in looks(plan)), default=0)


def nodes(node: object) -> Iterator[object]:
    """A node and all that it is made of: nodes, numbers and names."""
    if isinstance(node, Node):
        yield node
        if isinstance(node, Past | Window | Money):
            return
        for name in node.__struct_fields__:
            if name not in ("sign", "side", "tif"):
                yield from nodes(getattr(node, name))
    elif isinstance(node, tuple):
        for each in node:
            yield from nodes(each)
    elif isinstance(node, int | str):
        yield node


def fixed(expr: Expr, values: dict[str, int]) -> int | None:
    """Twice the value of an expression that sees nothing (see `program`: all is kept in halves); None if it does."""
    match expr:
        case int():
            return 2 * expr
        case str():
            return 2 * values[expr] if expr in values else None
        case Money(micros):
            return 2 * micros
        case Neg(of):
            value = fixed(of, values)
            return None if value is None else -value
        case Abs(of):
            value = fixed(of, values)
            return None if value is None else abs(value)
        case Calc(sign, left, right):
            one, other = fixed(left, values), fixed(right, values)
            return None if one is None or other is None else calculated(sign, one, other)
        case _:
            return None


def calculated(sign: str, left: int, right: int) -> int:
    """Two numbers in halves → one in halves; what is finer than a half is rounded down."""
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right // 2
        case "/":
            return 2 * left // right
        case _:
            return left % right
