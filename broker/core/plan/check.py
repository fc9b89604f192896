"""From statements to the tree of a plan: is it all there, does it fit together, is it within the limits?"""

from collections.abc import Sequence
from typing import Any, Final

from broker.core.pieces import Pieces
from broker.core.plan import raw as r
from broker.core.plan import tree
from broker.core.plan.diagnostics import Code, Found, Span
from broker.core.plan.kinds import Kind, Kinds
from broker.core.plan.limits import (
    MAX_ACTIONS,
    MAX_BACK,
    MAX_COST,
    MAX_DEPTH,
    MAX_LETS,
    MAX_ORDERS,
    MAX_POSITION,
    MAX_RULES,
    MAX_UNTIL,
    back,
    cost,
    fixed,
    lets,
    valued,
)
from broker.core.plan.statements import Statement, looks_back
from broker.core.plan.tree import MICRO, MOST

ORDER: Final = ("plan", "on", "bound", "let", "when")
WANTED: Final = {
    "plan": ("plan NAME VERSION", "plan unnamed 1"),
    "on": ("on INSTRUMENT", "on INSTRUMENT"),
    "bound": (
        "bound position …, loss …, orders …, until …",
        "bound position 1, loss 1, orders 1, until 1",
    ),
    "when": ("when CONDITION: ACTION", "when tick >= 0: stand_down"),
}
"""What a plan can't be without → what is expected, and a repair that risks nothing: it makes a plan, of an instrument
that no tape is of, with the least bounds, and what was meant its author has to say."""
BOUNDS: Final = {"position": MAX_POSITION, "loss": MOST, "orders": MAX_ORDERS, "until": MAX_UNTIL}
_WHOLE: Final[dict[Kind, str]] = {
    "price": "prices are whole ticks (1.0842 is 108420 where a tick is 0.00001)",
    "size": "sizes are whole units",
    "count": "a count is a whole number (half of x is x / 2)",
}


def check(text: str, statements: Sequence[Statement], found: Found) -> Pieces[tree.Plan | None]:
    """The plan, or None where `found` says why not."""
    return _Checker(text, statements, found).plan()


class _Checker:
    def __init__(self, text: str, statements: Sequence[Statement], found: Found) -> None:
        self._text, self._statements, self._found = text, statements, found
        self._lets = [each.raw for each in statements if isinstance(each.raw, r.Let)]
        self._rules = [each.raw for each in statements if isinstance(each.raw, r.Rule)]
        self._kinds = Kinds(text, self._lets, found)

    def plan(self) -> Pieces[tree.Plan | None]:
        self._structure()
        self._sizes()
        for rule in self._rules[:MAX_RULES]:
            if rule.depth <= MAX_DEPTH:
                self._kinds.rule(rule)
        yield
        bound = self._bound()
        head, on = self._only(r.Head), self._only(r.On)
        version = self._whole(head.version, "a version", 0, MOST) if head else 0
        parameters = tuple(self._let(each) for each in self._lets)
        if self._found or head is None or on is None or bound is None:
            for rule in self._rules[:MAX_RULES]:
                self._numbers(rule)
            return None
        built = [(rule, self._rule(rule)) for rule in self._rules]
        if self._found:
            return None
        yield
        plan = tree.Plan(
            head.name.text, version, on.instrument, bound, tuple(each for _, each in built), parameters
        )
        values = lets(plan)
        for raw, made in built:
            self._looks(raw, made, values)
        yield
        for raw, made in () if self._found else built:  # nothing is divided by 0 any more
            self._large(raw, made, values)
        for raw, made in () if self._found else built:
            self._orders(raw, made, bound, values)
        if not self._found and (steps := cost(plan)) > MAX_COST:
            self._found.add("limit", built[0][0].at, f"a tick takes {steps} steps, and may take {MAX_COST}")
        return None if self._found else plan

    # ── what there is ──

    def _structure(self) -> None:
        """Each statement in its place, and none that must be there left out."""
        last = 0
        for each in self._statements:
            if self._found.full():
                return
            place = ORDER.index(each.word)
            if place < last or (
                place == last and place < ORDER.index("let") and each is not self._statements[0]
            ):
                twice = any(e.word == each.word for e in self._statements[: self._statements.index(each)])
                said = "stands there twice" if twice and place < 3 else f"stands after {ORDER[last]}"
                self._found.add("syntax", each.at, f"{each.word} {said}", (" · ".join(ORDER),))
            last = max(last, place)
        there = {each.word for each in self._statements}
        gap = "\n" if "\n" in self._text or "#" in self._text else " "
        for word, (wanted, least) in WANTED.items():
            if word not in there:
                later = [e.at.start for e in self._statements if ORDER.index(e.word) > ORDER.index(word)]
                at = min(later, default=len(self._text.rstrip()))
                code: Code = "bound" if word == "bound" else "syntax"
                repair = least + gap if later else gap + least
                self._found.add(code, Span(at, at), f"{word} is missing", (wanted,), repair)

    def _sizes(self) -> None:
        if len(self._rules) > MAX_RULES:
            self._found.add("limit", self._rules[MAX_RULES].at, f"a plan has at most {MAX_RULES} rules")
        if len(self._lets) > MAX_LETS:
            self._found.add("limit", self._lets[MAX_LETS].at, f"a plan has at most {MAX_LETS} lets")
        seen: set[str] = set()
        for each in self._lets:
            if each.name.text in seen:
                self._found.add("name", each.name.at, f"there is a let {each.name.text} already")
            seen.add(each.name.text)
        for rule in self._rules:
            if rule.depth > MAX_DEPTH:
                self._found.add(
                    "limit", rule.at, f"a rule is nested at most {MAX_DEPTH} deep, and this one {rule.depth}"
                )
            if len(rule.do) > MAX_ACTIONS:
                self._found.add("limit", rule.do[MAX_ACTIONS].at, f"a rule has at most {MAX_ACTIONS} actions")

    def _only(self, kind: type[Any]) -> Any:
        return next((each.raw for each in self._statements if isinstance(each.raw, kind)), None)

    # ── bounds and numbers ──

    def _bound(self) -> tree.Bound | None:
        bound: r.Bound | None = self._only(r.Bound)
        if bound is None:
            return None
        values: dict[str, int] = {}
        for word, number, at in bound.limits:
            if word in values:
                self._found.add("bound", at, f"the bound {word} stands there twice")
            most = BOUNDS[word]
            if word == "loss":
                values[word] = self._money(number, 1)
            else:
                values[word] = self._whole(number, f"the bound {word}", 1, most)
        for word in BOUNDS:
            if word not in values:
                end = Span(bound.at.end, bound.at.end)
                self._found.add(
                    "bound", end, f"the bound {word} is missing", (f"{word} NUMBER",), f", {word} 1"
                )
        return tree.Bound(**values) if values.keys() == BOUNDS.keys() else None

    def _whole(self, number: r.Number, what: str, least: int, most: int) -> int:
        value = self._integer(number, f"{what} is a whole number")
        if not least <= value <= most:
            self._found.add("limit", number.at, f"{what} is from {least} to {most}")
        return value

    def _integer(self, number: r.Number, said: str) -> int:
        whole, _, part = number.text.partition(".")
        if part:
            even = not part.strip("0")
            self._found.add("number", number.at, said, ("a whole number",), whole if even else None)
        if abs(int(whole)) > MOST:
            self._found.add("limit", number.at, f"a number is at most {MOST}")
        return int(whole)

    def _money(self, number: r.Number, least: int = -MOST) -> int:
        whole, _, part = number.text.lstrip("-").partition(".")
        if len(part) > 6:
            self._found.add("number", number.at, "money has at most six digits after the point")
        micros = int(whole) * MICRO + int(part[:6].ljust(6, "0"))
        if micros > MOST:
            self._found.add("limit", number.at, f"money is at most {MOST // MICRO}")
        micros = -micros if number.text.startswith("-") else micros
        if micros < least:
            self._found.add("limit", number.at, "it is more than 0")
        return micros

    def _let(self, let: r.Let) -> tree.Let:
        if self._kinds.of_let(let.name.text) == "money":
            return tree.Let(let.name.text, tree.Money(self._money(let.value)))
        return tree.Let(let.name.text, self._integer(let.value, _WHOLE[self._kinds.of_let(let.name.text)]))

    def _number(self, number: r.Number) -> int | tree.Money:
        kind = self._kinds.of_number(number)
        return tree.Money(self._money(number)) if kind == "money" else self._integer(number, _WHOLE[kind])

    def _numbers(self, rule: r.Rule) -> None:
        """Look at a rule's numbers where no plan will come of it anyway: what is wrong with them is told too."""
        if rule.depth <= MAX_DEPTH:
            self._rule(rule)

    # ── the tree ──

    def _rule(self, rule: r.Rule) -> tree.Rule:
        return tree.Rule(self._cond(rule.when), tuple(self._action(each) for each in rule.do))

    def _cond(self, cond: r.Raw) -> tree.Cond:
        match cond:
            case r.Many():
                of = tuple(self._cond(each) for each in cond.of)
                return tree.And(of) if cond.word == "and" else tree.Or(of)
            case r.Not():
                return tree.Not(self._cond(cond.of))
            case r.Compare():
                return tree.Compare(cond.sign, self._expr(cond.left), self._expr(cond.right))  # type: ignore[arg-type]  # the grammar's
            case _:  # pragma: no cover
                raise AssertionError(cond)

    def _expr(self, expr: r.Raw) -> tree.Expr:
        match expr:
            case r.Number():
                return self._number(expr)
            case r.Name() | r.Quantity():
                return expr.text
            case r.Past():
                return tree.Past(expr.of, self._constant(expr.ago))  # type: ignore[arg-type]  # the grammar's
            case r.Window():
                ago = 0 if expr.ago is None else self._constant(expr.ago)
                return tree.Window(expr.fn, expr.of, self._constant(expr.ticks), ago)  # type: ignore[arg-type]  # the grammar's
            case r.Neg():
                return tree.Neg(self._expr(expr.of))
            case r.Abs():
                return tree.Abs(self._expr(expr.of))
            case r.Calc():
                return tree.Calc(expr.sign, self._expr(expr.left), self._expr(expr.right))  # type: ignore[arg-type]  # the grammar's
            case _:  # pragma: no cover
                raise AssertionError(expr)

    def _constant(self, constant: r.Number | r.Name) -> tree.Constant:
        if isinstance(constant, r.Name):
            return constant.text
        return self._integer(constant, "a number of ticks is a whole number")

    def _action(self, action: r.Raw) -> tree.Do:
        match action:
            case r.Command():
                commands: dict[str, tree.Do] = {
                    "cancel": tree.Cancel(),
                    "flatten": tree.Flatten(),
                    "stand_down": tree.StandDown(),
                }
                return commands[action.word]
            case r.Order():
                tif: Any = action.tif
                if isinstance(tif, r.Number):
                    tif = self._whole(tif, "how many ticks an order lives", 1, MAX_UNTIL)
                return tree.Order(action.side, self._expr(action.size), self._expr(action.price), tif)  # type: ignore[arg-type]  # the grammar's
            case _:  # pragma: no cover
                raise AssertionError(action)

    # ── what a plan can't keep ──

    def _looks(self, raw: r.Rule, rule: tree.Rule, values: dict[str, int]) -> None:
        """Every look at the past goes back at least a tick, and at most so many; what is divided by is above 0."""
        for place, node in pairs(raw, rule):
            match node:
                case tree.Past() | tree.Window() as look:
                    self._look(place, look, values)
                case tree.Calc("/" | "%", _, right) if (fixed(right, values) or 0) <= 0:
                    self._found.add("number", place, "what is divided by is above 0")
                case _:
                    pass

    def _look(self, place: Span, look: tree.Past | tree.Window, values: dict[str, int]) -> None:
        ago = valued(look.ago, values)
        if isinstance(look, tree.Past):
            if ago < 1:
                here = look.of if ago == 0 else None
                self._found.add("number", place, looks_back(look.of), repair=here)
        elif ago < 0 or valued(look.ticks, values) < 1:
            self._found.add("number", place, "a window has at least 1 tick, and none to come")
        if back(look, values) > MAX_BACK:
            self._found.add("limit", place, f"a rule looks back at most {MAX_BACK} ticks")

    def _large(self, raw: r.Rule, rule: tree.Rule, values: dict[str, int]) -> None:
        """What is made of numbers is no greater than one that is written may be: else it has thousands of digits."""
        for place, node in pairs(raw, rule):
            if not isinstance(node, tree.Calc) or _within(node, values):
                continue
            if _within(node.left, values) and _within(node.right, values):
                self._found.add("limit", place, f"a number is at most {MOST}, also one that is worked out")

    def _orders(self, raw: r.Rule, rule: tree.Rule, bound: tree.Bound, values: dict[str, int]) -> None:
        """An order whose size and price are known beforehand is one that can be sent."""
        for place, do in zip(raw.do, rule.do, strict=True):
            if not isinstance(do, tree.Order):
                continue
            assert isinstance(place, r.Order)
            size, price = fixed(do.size, values), fixed(do.price, values)
            if size is not None and size < 2:
                self._found.add("number", place.size.at, "an order's size is at least 1")
            elif size is not None and size // 2 > bound.position:
                said = f"an order of {size // 2} is more than the position may be ({bound.position})"
                self._found.add("bound", place.size.at, said)
            if price is not None and price < 2:
                self._found.add("number", place.price.at, "an order's price is at least 1")


def _within(expr: tree.Expr, values: dict[str, int]) -> bool:
    value = fixed(expr, values)
    return value is None or abs(value) <= 2 * MOST


def pairs(raw: object, node: object) -> list[tuple[Span, object]]:
    """(where it stands, node) for each node of a rule."""
    if isinstance(raw, tuple):
        assert isinstance(node, tuple)
        return [pair for one, other in zip(raw, node, strict=True) for pair in pairs(one, other)]
    if not isinstance(raw, r.Raw):
        return []
    own: list[tuple[Span, object]] = [(raw.at, node)]
    for name in ("when", "do", "of", "left", "right", "size", "price"):
        if isinstance(part := getattr(raw, name, None), r.Raw | tuple):
            own += pairs(part, getattr(node, name))
    return own
