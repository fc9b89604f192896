"""Python of a plan: fixed words and numbers, whatever its author wrote (docs/reference/plan.md, What a rule means)."""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from broker.core.plan.limits import back, fixed, lets, looks, nodes, valued
from broker.core.plan.tree import (
    Abs,
    And,
    Calc,
    Compare,
    Cond,
    Expr,
    Money,
    Neg,
    Not,
    Or,
    Order,
    Past,
    Plan,
    Rule,
    Window,
)

SEEN: Final[Mapping[str, str]] = {
    "tick": "view.tick * 2",
    "bid": "view.bid * 2",
    "ask": "view.ask * 2",
    "mid": "view.bid + view.ask",
    "spread": "(view.ask - view.bid) * 2",
    "size": "(view.size or 0) * 2",
    "position": "view.position * 2",
    "pnl": "view.pnl * 2",
    "orders_left": "view.orders_left * 2",
    "resting": "view.resting * 2",
    "fill": "(view.fill or 0) * 2",
    "fill_age": "(view.fill_age or 0) * 2",
}
"""A quantity → its value in halves."""
MAYBE: Final[Mapping[str, str]] = {"size": "size", "fill": "fill", "fill_age": "fill"}
"""What may not be there → which part of the view tells."""
_SIGNS: Final[Mapping[str, str]] = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def emit(plan: Plan) -> str:
    """The source of `make()`, which gives `step` and `warm`."""
    return "\n".join(_Emitter(plan).lines()) + "\n"


class _Emitter:
    def __init__(self, plan: Plan) -> None:
        self._plan, self._values = plan, lets(plan)
        self._looks = {look: f"past{number}" for number, look in enumerate(looks(plan))}

    def lines(self) -> Iterator[str]:
        yield "def make():"
        yield "    seen = 0"
        yield "    def warm(view):"
        yield "        nonlocal seen"
        yield from self._shown(sorted({look.of for look in self._looks}))
        yield "    def step(view):"
        yield "        nonlocal seen"
        used = {name for rule in self._plan.rules for name in quantities(rule) if name in SEEN}
        yield from self._shown(sorted(used))
        yield "        out = []"
        for number, rule in enumerate(self._plan.rules):
            yield from self._rule(number, rule)
        yield "        return out"
        yield "    return step, warm"

    def _shown(self, used: list[str]) -> Iterator[str]:
        """A tick is seen, and the looks at the past move on."""
        yield "        seen += 1"
        for name in used:
            yield f"        {name} = {SEEN[name]}"
        for number, look in enumerate(self._looks):
            value: str = look.of
            if isinstance(look, Window) and valued(look.ago, self._values):
                value = f"ago{number}({value})"
            yield f"        past{number} = look{number}({value})"

    def _rule(self, number: int, rule: Rule) -> Iterator[str]:
        """A rule that looks at what is not there does not fire."""
        needed = max((back(each, self._values) for each in _looks(rule)), default=0)
        guards = [f"seen > {needed}"] if needed else []
        there = sorted({MAYBE[name] for name in quantities(rule) if name in MAYBE})
        guards += [f"view.{name} is not None" for name in there]
        yield f"        if {' and '.join([*guards, self._cond(rule.when)])}:"
        for do in rule.do:
            if isinstance(do, Order):
                yield from self._order(number, do)
                continue
            word = do.__struct_config__.tag
            yield f"            out.append(Command({word!r}, {number}))"
            if word == "stand_down":
                yield "            return out"
                return

    def _order(self, number: int, order: Order) -> Iterator[str]:
        """The size rounds down, the price to the rule's disadvantage."""
        up = " + 1" if order.side == "buy" else ""
        yield f"            size_ = ({self._expr(order.size)}) // 2"
        yield f"            price_ = ({self._expr(order.price)}{up}) // 2"
        yield "            if size_ > 0 and price_ > 0:"
        yield f"                out.append(Send({order.side!r}, size_, price_, {order.tif!r}, {number}))"

    def _cond(self, cond: Cond) -> str:
        match cond:
            case Compare(sign, left, right):
                return f"({self._expr(left)} {_SIGNS[sign]} {self._expr(right)})"
            case Not(of):
                return f"(not {self._cond(of)})"
            case And(of):
                return "(" + " and ".join(map(self._cond, of)) + ")"
            case Or(of):
                return "(" + " or ".join(map(self._cond, of)) + ")"
            case _:
                assert_never(cond)

    def _expr(self, expr: Expr) -> str:
        value = fixed(expr, self._values)
        if value is not None:
            return f"({value})" if value < 0 else str(value)
        match expr:
            case str():
                assert expr in SEEN  # a let has a value
                return expr
            case Past() | Window():
                return self._looks[expr]
            case Neg(of):
                return f"(-{self._expr(of)})"
            case Abs(of):
                return f"abs({self._expr(of)})"
            case Calc():
                return self._calc(expr)
            case int() | Money():
                raise AssertionError("a number has a value")
            case _:
                assert_never(expr)

    def _calc(self, calc: Calc) -> str:
        """Of `*` one side is known, of `/` and `%` the right one; all as `limits.calculated` has it."""
        left, right = self._expr(calc.left), self._expr(calc.right)
        if calc.sign == "*":
            return f"({left} * {right} // 2)"
        if calc.sign == "/":
            return f"({left} * 2 // {right})"
        return f"({left} {calc.sign} {right})"


def quantities(rule: Rule) -> Iterator[str]:
    """The names that a rule looks at now or in the past."""
    for node in nodes(rule):
        if isinstance(node, str):
            yield node
        elif isinstance(node, Past | Window):
            yield node.of


def _looks(rule: Rule) -> Iterator[Past | Window]:
    return (each for each in nodes(rule) if isinstance(each, Past | Window))
