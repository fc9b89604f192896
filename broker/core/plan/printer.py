"""The canonical text of a tree: one for each, and the tree is read back from it."""

from typing import Final, assert_never

from broker.core.plan.tree import (
    MICRO,
    Abs,
    And,
    Bound,
    Calc,
    Cancel,
    Compare,
    Cond,
    Do,
    Expr,
    Flatten,
    Money,
    Neg,
    Not,
    Or,
    Order,
    Past,
    Plan,
    StandDown,
    Window,
)

_STRENGTH: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def to_text(plan: Plan) -> str:
    """A line for each statement, each ended."""
    lines = [f"plan {plan.name} {plan.version}", f"on {plan.on}", _bound(plan.bound)]
    lines += [f"let {each.name} = {expression(each.value)}" for each in plan.let]
    lines += [f"when {condition(each.when)}: {', '.join(map(_action, each.do))}" for each in plan.rules]
    return "\n".join(lines) + "\n"


def _bound(bound: Bound) -> str:
    loss = money(bound.loss)
    return f"bound position {bound.position}, loss {loss}, orders {bound.orders}, until {bound.until}"


def money(micros: int) -> str:
    """Millionths as a decimal: 2500, -0.5."""
    whole, part = divmod(abs(micros), MICRO)
    return f"{'-' if micros < 0 else ''}{whole}" + (f".{part:06}".rstrip("0") if part else "")


def condition(cond: Cond, within: int = 0) -> str:
    """Its text; in parentheses where what is around it binds as strongly."""
    match cond:
        case Compare(sign, left, right):
            return f"{expression(left)} {sign} {expression(right)}"
        case Not(of):
            return f"not {condition(of, 2)}"
        case And(of):
            text, strength = " and ".join(condition(each, 2) for each in of), 2
        case Or(of):
            text, strength = " or ".join(condition(each, 1) for each in of), 1
        case _:
            assert_never(cond)
    return f"({text})" if strength <= within else text


def expression(expr: Expr, within: int = 0) -> str:
    """Its text; in parentheses where what is around it binds more strongly."""
    match expr:
        case int() | str():
            return str(expr)
        case Money(micros):
            return money(micros)
        case Past(of, ago):
            return f"{of}[{ago}]"
        case Window(fn, of, ticks, ago):
            return f"{fn}({of}{'' if ago == 0 else f'[{ago}]'}, {ticks})"
        case Abs(of):
            return f"abs({expression(of)})"
        case Neg(of):
            text = expression(of)
            return f"-({text})" if isinstance(of, int | Money | Neg | Calc) else f"-{text}"
        case Calc(sign, left, right):
            own = _STRENGTH[sign]
            text = f"{expression(left, own)} {sign} {expression(right, own + 1)}"
            return f"({text})" if own < within else text
        case _:
            assert_never(expr)


def _action(do: Do) -> str:
    match do:
        case Order(side, size, price, tif):
            until = {"ioc": "", "gtc": " gtc"}.get(str(tif), f" for {tif}")
            return f"{side} {expression(size)} at {expression(price)}{until}"
        case Cancel():
            return "cancel"
        case Flatten():
            return "flatten"
        case StandDown():
            return "stand_down"
        case _:
            assert_never(do)
