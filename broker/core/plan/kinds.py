"""What kind of number each expression is: a price, a size, money, or a count. Kinds are not mixed.

A number has the kind of what it is compared with, added to, or ordered at; so has a `let`, which is of one kind in the
whole plan. What nothing says a kind of is a count.
"""

from typing import Final, Literal

from broker.core.plan.diagnostics import Found, closest, shown
from broker.core.plan.raw import (
    Abs,
    Calc,
    Command,
    Compare,
    Let,
    Many,
    Name,
    Neg,
    Not,
    Number,
    Order,
    Past,
    Quantity,
    Raw,
    Rule,
    Window,
)

Kind = Literal["price", "size", "money", "count"]
KINDS: Final[dict[str, Kind]] = {
    "bid": "price",
    "ask": "price",
    "mid": "price",
    "spread": "price",
    "size": "size",
    "tick": "count",
    "position": "size",
    "pnl": "money",
    "orders_left": "count",
    "resting": "count",
    "fill": "price",
    "fill_age": "count",
}
"""What a rule may see → its kind."""
WORDS: Final[dict[Kind, str]] = {
    "price": "a price (ticks)",
    "size": "a size (units)",
    "money": "money",
    "count": "a count",
}


class Slot:
    """A kind that may not be known yet, and may turn out to be another slot's."""

    def __init__(self, kind: Kind | None = None) -> None:
        self._kind, self._same = kind, self

    def _last(self) -> "Slot":
        slot = self
        while slot._same is not slot:
            slot = slot._same
        return slot

    @property
    def kind(self) -> Kind | None:
        """What is known by now."""
        return self._last()._kind

    def unify(self, other: "Slot") -> bool:
        """From now on both are one kind; False (and nothing changed) where they are two."""
        mine, theirs = self._last(), other._last()
        if mine._kind and theirs._kind and mine._kind != theirs._kind:
            return False
        if mine is not theirs:
            theirs._kind = theirs._kind or mine._kind
            mine._same = theirs
        return True


class Kinds:
    """Finds the kinds in the rules of one plan; what does not fit goes to `found`."""

    def __init__(self, text: str, lets: list[Let], found: Found) -> None:
        self._text, self._found = text, found
        self._lets = {each.name.text: Slot() for each in lets}
        self._numbers: dict[int, Slot] = {}
        """Where a number stands → its kind."""

    def of_let(self, name: str) -> Kind:
        """A parameter's kind."""
        return self._lets[name].kind or "count"

    def of_number(self, number: Number) -> Kind:
        """A number's kind."""
        return self._numbers[number.at.start].kind or "count"

    def rule(self, rule: Rule) -> None:
        """Learn from a rule."""
        self._cond(rule.when)
        for do in rule.do:
            if isinstance(do, Order):
                self._must(do.size, "size", "an order's size")
                self._must(do.price, "price", "an order's price")
            else:
                assert isinstance(do, Command)

    def _cond(self, cond: Raw) -> None:
        match cond:
            case Many():
                for each in cond.of:
                    self._cond(each)
            case Not():
                self._cond(cond.of)
            case Compare():
                self._alike(cond, cond.left, cond.right, "compared")
            case _:  # pragma: no cover
                raise AssertionError(cond)

    def _must(self, expr: Raw, kind: Kind, what: str) -> None:
        slot = self._expr(expr)
        if not slot.unify(Slot(kind)):
            self._found.add("kind", expr.at, f"{what} is {WORDS[kind]}, and this is {self._said(slot)}")

    def _alike(self, whole: Raw, left: Raw, right: Raw, done: str) -> Slot:
        one, other = self._expr(left), self._expr(right)
        if not one.unify(other):
            self._found.add(
                "kind",
                whole.at,
                f"{self._quoted(left)} is {self._said(one)}, {self._quoted(right)} is {self._said(other)}: "
                f"they can't be {done}",
            )
        return one

    def _expr(self, expr: Raw) -> Slot:
        match expr:
            case Number():
                return self._numbers.setdefault(expr.at.start, Slot())
            case Name():
                return self._named(expr)
            case Quantity():
                return Slot(KINDS[expr.text])
            case Past():
                self._constant(expr.ago)
                return Slot(KINDS[expr.of])
            case Window():
                self._constant(expr.ticks)
                if expr.ago is not None:
                    self._constant(expr.ago)
                return Slot(KINDS[expr.of])
            case Neg() | Abs():
                return self._expr(expr.of)
            case Calc():
                return self._calc(expr)
            case _:  # pragma: no cover
                raise AssertionError(expr)

    def _calc(self, calc: Calc) -> Slot:
        if calc.sign in ("+", "-"):
            return self._alike(calc, calc.left, calc.right, "added" if calc.sign == "+" else "subtracted")
        if calc.sign == "*":
            return self._product(calc)
        if not isinstance(calc.right, Number | Name):
            self._found.add("kind", calc.right.at, f"what stands after {calc.sign} is a number or a let")
            self._expr(calc.right)
            return self._expr(calc.left)
        if calc.sign == "%":
            return self._alike(calc, calc.left, calc.right, "divided with a rest")
        self._must(calc.right, "count", "what is divided by")
        return self._expr(calc.left)

    def _product(self, calc: Calc) -> Slot:
        left, right = self._expr(calc.left), self._expr(calc.right)
        if not (constant(calc.left) or constant(calc.right)):
            self._found.add("kind", calc.at, "one side of * is made of numbers and lets alone")
        count = Slot("count")
        if "count" in (left.kind, right.kind):
            return right if left.kind == "count" else left
        # `2 * lot`: the number is the count; of two numbers, or two lets, the second.
        first = not left.kind and (
            right.kind or (isinstance(calc.left, Number) > isinstance(calc.right, Number))
        )
        times = left if first else right
        if not times.unify(count):
            self._found.add("kind", calc.at, "one side of * is a count")
        return right if times is left else left

    def _constant(self, constant: Number | Name) -> None:
        self._must(constant, "count", "a number of ticks")

    def _named(self, name: Name) -> Slot:
        if name.text in self._lets:
            return self._lets[name.text]
        if self._found.full():  # what is close takes a while to find
            return Slot()
        known = [*self._lets, *KINDS]
        self._found.add("name", name.at, f"there is no {shown(name.text)}", known, closest(name.text, known))
        return Slot()

    def _quoted(self, expr: Raw) -> str:
        return shown(" ".join(self._text[expr.at.start : expr.at.end].split()))

    @staticmethod
    def _said(slot: Slot) -> str:
        return WORDS[slot.kind or "count"]


def constant(expr: Raw) -> bool:
    """Whether it is made of numbers and lets alone."""
    match expr:
        case Number() | Name():
            return True
        case Neg() | Abs():
            return constant(expr.of)
        case Calc():
            return constant(expr.left) and constant(expr.right)
        case _:
            return False
