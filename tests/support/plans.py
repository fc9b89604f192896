"""Plans for tests: a strategy that makes every kind of tree, and the slow way to run one, with fractions."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

from hypothesis import strategies as st

from broker.core.plan import tree
from broker.core.plan.kinds import KINDS
from broker.core.plan.limits import lets, valued
from broker.core.plan.program import Action, Command, Send, View

HEAD = "plan fade 1\non EURUSD\nbound position 3000000, loss 2500, orders 40, until 3600\n"
FADE = (
    HEAD
    + "when spread >= 2 and position = 0: buy 1000000 at mid - 1\n"
    + "when pnl <= -1500: stand_down\n"
    + "when tick >= 3500: flatten\n"
)
LETS = {"price": "edge", "size": "lot", "money": "stop", "count": "wait"}
"""A parameter of each kind."""
SERIES = ("bid", "ask", "mid", "spread", "size")


class Maker:
    """Makes a plan by choices. Strategies within strategies would say the same, a hundred times slower."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def literal(self, kind: str) -> Any:
        return tree.Money(self.number(-(10**10), 10**10)) if kind == "money" else self.number(-1_000, 1_000)

    def expression(self, kind: str, depth: int, anchored: bool = False) -> Any:
        """An expression of a kind; an anchored one has something in it that says its kind."""
        forms = ["quantity", "look"] if anchored else ["quantity", "look", "literal", "let"]
        form = self.one(forms + ["sum", "product", "neg", "abs", "quotient", "rest"][: 6 * depth])
        match form:
            case "literal":
                return self.literal(kind)
            case "let":
                return LETS[kind]
            case "look" if kind in ("price", "size"):
                return self.look(kind)
            case "quantity" | "look":
                return self.one([name for name, of in KINDS.items() if of == kind])
        lower = self.expression(kind, depth - 1, anchored)
        match form:
            case "sum":
                return tree.Calc(self.one("+-"), lower, self.expression(kind, depth - 1))
            case "product":
                return tree.Calc("*", lower, self.number(-9, 9))
            case "quotient":
                return tree.Calc("/", lower, self.one([1, 2, 3, 7, "wait"]))
            case "rest":
                return tree.Calc("%", lower, tree.Money(1_500_000) if kind == "money" else self.number(1, 9))
        return (tree.Neg if form == "neg" else tree.Abs)(lower)

    def look(self, kind: str) -> Any:
        of = self.one([each for each in SERIES if KINDS[each] == kind])
        if self.one([True, False]):
            return tree.Past(of, self.one([1, 2, 5, "wait"]))
        return tree.Window(
            self.one(["avg", "min", "max"]), of, self.one([1, 2, 3, 7, "wait"]), self.number(0, 3)
        )

    def comparison(self) -> tree.Compare:
        kind = self.one(["price", "size", "money", "count"])
        sign = self.one(["=", "!=", "<", "<=", ">", ">="])
        return tree.Compare(sign, self.expression(kind, 1, anchored=True), self.expression(kind, 2))

    def condition(self, depth: int = 2) -> Any:
        form = self.one(["compare", "compare", "not", "and", "or"]) if depth else "compare"
        if form == "compare":
            return self.comparison()
        if form == "not":
            return tree.Not(self.condition(depth - 1))
        of = tuple(self.condition(depth - 1) for _ in range(self.number(2, 3)))
        return tree.And(of) if form == "and" else tree.Or(of)

    def action(self) -> Any:
        form = self.one([tree.Cancel, tree.Flatten, tree.StandDown, tree.Order, tree.Order, tree.Order])
        if form is not tree.Order:
            return form()
        size = self.number(1, 3_000_000) if self.one([True, False]) else self.expression("size", 1, True)
        price = self.number(1, 2_000) if self.one([True, False]) else self.expression("price", 2, True)
        return tree.Order(self.one(["buy", "sell"]), size, price, self.one(["ioc", "gtc", 1, 50]))

    def rule(self) -> tree.Rule:
        return tree.Rule(self.condition(), tuple(self.action() for _ in range(self.number(1, 3))))

    def plan(self, most_rules: int) -> tree.Plan:
        rules = [self.rule() for _ in range(self.number(1, most_rules))]
        # Each parameter is used once where its kind is plain.
        rules += [
            tree.Rule(tree.Compare("<", quantity, LETS[kind]), (tree.Cancel(),))
            for kind, quantity in (
                ("price", "spread"),
                ("size", "position"),
                ("money", "pnl"),
                ("count", "tick"),
            )
        ]
        values = {kind: self.literal(kind) for kind in ("price", "size", "money")}
        values["count"] = self.number(1, 6)
        bound = tree.Bound(
            self.number(3_000_000, 10**12), self.number(1, 10**15), self.number(1, 10_000), 3_600
        )
        return tree.Plan(
            self.one(["fade", "Plan_2", "_", "bidder", "x" * 32]),
            self.number(0, 10**15),
            self.one(["EURUSD", "BTC-USD", "ES.Z6", "EUR/USD", "on", "7x"]),
            bound,
            tuple(rules),
            tuple(tree.Let(LETS[kind], value) for kind, value in values.items()),
        )


@st.composite
def plans(draw: st.DrawFn, most_rules: int = 4) -> tree.Plan:
    """A plan that is one, with every part of the language."""
    return Maker(draw).plan(most_rules)


@st.composite
def tapes(draw: st.DrawFn, most: int = 30) -> list[View]:
    """Ticks, and what the run shows beside them."""
    views = []
    sized, fill = draw(st.booleans()), None
    small = st.integers(-20, 20)
    for tick in range(draw(st.integers(1, most))):
        bid = draw(st.integers(90, 110))
        if draw(st.integers(0, 4)) == 0:
            fill = draw(st.integers(90, 110))
        views.append(
            View(
                tick, bid, bid + draw(st.integers(0, 3)), draw(st.integers(0, 9)) if sized else None, draw(small),
                draw(small) * 10**6, draw(st.integers(0, 9)), draw(st.integers(0, 3)), fill,
                None if fill is None else draw(st.integers(0, 5)),
            )
        )  # fmt: skip
    return views


class Missing(Exception):
    """Something that a rule looks at is not there."""


class Slow:
    """The slow way: every value is looked up in the ticks so far, all arithmetic is of fractions."""

    def __init__(self, plan: tree.Plan) -> None:
        self.plan, self.lets, self.views, self.steps = plan, lets(plan), list[View](), 0
        self.money = {each.name for each in plan.let if isinstance(each.value, tree.Money)}

    def step(self, view: View) -> list[Action]:
        self.views.append(view)
        self.steps, out = 0, list[Action]()
        for number, rule in enumerate(self.plan.rules):
            self.steps += 1
            try:
                # A rule that looks at what is not there does not fire, wherever in it that stands.
                self.visit(rule)
                holds = self.cond(rule.when)
            except Missing:
                continue
            if not holds:
                continue
            for do in rule.do:
                self.steps += 1
                if isinstance(do, tree.Order):
                    out += self.order(do, number)
                else:
                    word: Any = do.__struct_config__.tag
                    out.append(Command(word, number))
                    if word == "stand_down":
                        return out
        return out

    def order(self, order: tree.Order, number: int) -> list[Action]:
        size, price = floor(self.expr(order.size)), self.expr(order.price)
        rounded = ceil(price) if order.side == "buy" else floor(price)
        return [Send(order.side, size, rounded, order.tif, number)] if size > 0 and rounded > 0 else []

    def visit(self, node: Any) -> None:
        if isinstance(node, str | tree.Past | tree.Window):
            before = self.steps
            self.expr(node)
            self.steps = before
        elif isinstance(node, tree.Node):
            for name in node.__struct_fields__:
                if name not in ("sign", "side", "tif"):
                    self.visit(getattr(node, name))
        elif isinstance(node, tuple):
            for each in node:
                self.visit(each)

    def cond(self, cond: tree.Cond) -> bool:
        self.steps += 1
        match cond:
            case tree.Not(of):
                return not self.cond(of)
            case tree.And(of):
                return min([self.cond(each) for each in of])
            case tree.Or(of):
                return max([self.cond(each) for each in of])
            case tree.Compare(sign, left, right):
                one, other = self.expr(left), self.expr(right)
                return {
                    "=": one == other, "!=": one != other, "<": one < other, "<=": one <= other, ">": one > other,
                    ">=": one >= other,
                }[sign]  # fmt: skip
        raise AssertionError(cond)

    def expr(self, expr: Any) -> Fraction:
        self.steps += 1
        match expr:
            case int():
                return Fraction(expr)
            case str():
                return Fraction(self.lets[expr]) if expr in self.lets else self.seen(expr, self.views[-1])
            case tree.Money(micros):
                return Fraction(micros)
            case tree.Neg(of):
                return -self.expr(of)
            case tree.Abs(of):
                return abs(self.expr(of))
            case tree.Past(of, ago):
                return self.seen(of, self.ticks(valued(ago, self.lets), 1)[0])
            case tree.Window(fn, of, ticks, ago):
                values = [
                    self.seen(of, each)
                    for each in self.ticks(valued(ago, self.lets), valued(ticks, self.lets))
                ]
                mean = halves(sum(values, Fraction(0)) / len(values))
                return {"avg": mean, "min": min(values), "max": max(values)}[fn]
            case tree.Calc(sign, left, right):
                one, other = self.expr(left), self.expr(right)
                match sign:
                    case "+":
                        return one + other
                    case "-":
                        return one - other
                    case "*":
                        return halves(one * other)
                    case "/":
                        return halves(one / other)
                    case "%":
                        return one % other
        raise AssertionError(expr)

    def ticks(self, ago: int, ticks: int) -> Sequence[View]:
        """So many views, the last of them so many before the present one."""
        end = len(self.views) - ago
        if end < ticks:
            raise Missing
        return self.views[end - ticks : end]

    def seen(self, name: str, view: View) -> Fraction:
        match name:
            case "mid":
                return Fraction(view.bid + view.ask, 2)
            case "spread":
                return Fraction(view.ask - view.bid)
        value = getattr(view, name)
        if value is None:
            raise Missing
        return Fraction(value)


def halves(value: Fraction) -> Fraction:
    """Rounded down to a half."""
    return Fraction(floor(value * 2), 2)
