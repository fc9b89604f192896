"""What the grammar finds, with its place: what a text says before anybody asked whether it makes sense.

`Builder` has a function for each rule of the grammar; Lark calls it as soon as the rule is complete, so there is no
tree in between. `depth` counts how deep the JSON form will be nested.
"""

from typing import Any, Final

from lark import Token, Transformer, v_args
from msgspec import Struct
from msgspec.structs import replace

from broker.core.plan.diagnostics import Span


class Raw(Struct, frozen=True, kw_only=True):
    """A piece of text that means something."""

    at: Span
    depth: int = 0


class Number(Raw, frozen=True):
    text: str
    parted: bool = False
    """Whether it stands in parentheses: `-(5)` is a sign before a number, `-5` is a number."""


class Name(Raw, frozen=True):
    """A `let`, or nothing."""

    text: str


class Quantity(Raw, frozen=True):
    text: str


class Past(Raw, frozen=True):
    of: str
    ago: Number | Name


class Window(Raw, frozen=True):
    fn: str
    of: str
    ago: Number | Name | None
    ticks: Number | Name


class Calc(Raw, frozen=True):
    sign: str
    left: Raw
    right: Raw


class Neg(Raw, frozen=True):
    of: Raw


class Abs(Raw, frozen=True):
    of: Raw


class Compare(Raw, frozen=True):
    sign: str
    left: Raw
    right: Raw


class Many(Raw, frozen=True):
    """`and`, `or`."""

    word: str
    of: tuple[Raw, ...]


class Not(Raw, frozen=True):
    of: Raw


class Order(Raw, frozen=True):
    side: str
    size: Raw
    price: Raw
    tif: "str | Number"


class Command(Raw, frozen=True):
    word: str


class Head(Raw, frozen=True):
    name: Name
    version: Number


class On(Raw, frozen=True):
    instrument: str


class Bound(Raw, frozen=True):
    limits: tuple[tuple[str, Number, Span], ...]


class Let(Raw, frozen=True):
    name: Name
    value: Number


class Rule(Raw, frozen=True):
    when: Raw
    do: tuple[Raw, ...]


LISTS: Final = 2
"""How much deeper a list of nodes is nested than its parent: the list, and the node in it."""


def _span(token: Token) -> Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def _over(*parts: Raw) -> Any:
    """Place and depth of what has these parts."""
    return {
        "at": Span(min(each.at.start for each in parts), max(each.at.end for each in parts)),
        "depth": 1 + max(each.depth for each in parts),
    }


def _number(token: Token) -> Number:
    return Number(text=str(token), at=_span(token))


def _name(token: Token) -> Name:
    return Name(text=str(token), at=_span(token))


@v_args(inline=True)
class Builder(Transformer[Token, Any]):
    """The functions that Lark calls, by the names of the rules."""

    def head(self, name: Token, version: Token) -> Head:
        return Head(name=_name(name), version=_number(version), at=_span(name))

    def on(self, instrument: Token) -> On:
        return On(instrument=str(instrument), at=_span(instrument))

    def limited(self, word: Token) -> Token:
        return word

    def limit(self, word: Token, number: Token) -> tuple[str, Number, Span]:
        return str(word), _number(number), _span(word)

    def bound(self, *limits: tuple[str, Number, Span]) -> Bound:
        return Bound(limits=limits, at=Span(limits[0][2].start, limits[-1][1].at.end))

    def value(self, minus: Token | None, number: Token) -> Number:
        return _number(number) if minus is None else self._negated(minus, _number(number))

    def let(self, name: Token, value: Number) -> Let:
        return Let(name=_name(name), value=value, at=Span(_span(name).start, value.at.end))

    def rule(self, when: Raw, *do: Raw) -> Rule:
        return Rule(when=when, do=do, **_over(when, *do))

    def cond(self, *of: Raw) -> Raw:
        return self._many("or", of)

    def both(self, *of: Raw) -> Raw:
        return self._many("and", of)

    def _many(self, word: str, of: tuple[Raw, ...]) -> Raw:
        if len(of) == 1:
            return of[0]
        over = _over(*of)
        return Many(word=word, of=of, at=over["at"], depth=over["depth"] - 1 + LISTS)

    def same(self, only: Any) -> Any:
        return only

    def negated(self, of: Raw) -> Not:
        return Not(of=of, **_over(of))

    def compare(self, sign: Token) -> Token:
        return sign

    def comparison(self, left: Raw, sign: Token, right: Raw) -> Compare:
        return Compare(sign=str(sign), left=left, right=right, **_over(left, right))

    def sum(self, first: Raw, *rest: Any) -> Raw:
        return self._chain(first, rest)

    product = sum

    def _chain(self, left: Raw, rest: tuple[Any, ...]) -> Raw:
        for sign, right in zip(rest[::2], rest[1::2], strict=True):
            left = Calc(sign=str(sign), left=left, right=right, **_over(left, right))
        return left

    def negative(self, minus: Token, of: Raw) -> Raw:
        if isinstance(of, Number) and not of.parted and not of.text.startswith("-"):
            return self._negated(minus, of)
        return Neg(of=of, **_over(of))

    def _negated(self, minus: Token, of: Number) -> Number:
        return Number(text="-" + of.text, at=Span(_span(minus).start, of.at.end))

    def number(self, token: Token) -> Number:
        return _number(token)

    def name(self, token: Token) -> Name:
        return _name(token)

    def series(self, word: Token) -> Quantity:
        return Quantity(text=str(word), at=_span(word))

    other = series

    def windowed(self, word: Token) -> Token:
        return word

    def past(self, of: Quantity, ago: Number | Name, end: Token) -> Past:
        return Past(of=of.text, ago=ago, at=Span(of.at.start, _span(end).end), depth=1)

    def window(
        self, fn: Token, of: Quantity, ago: Number | Name | None, ticks: Number | Name, end: Token
    ) -> Window:
        at = Span(_span(fn).start, _span(end).end)
        return Window(fn=str(fn), of=of.text, ago=ago, ticks=ticks, at=at, depth=1)

    def absolute(self, word: Token, of: Raw, end: Token) -> Abs:
        return Abs(of=of, at=Span(_span(word).start, _span(end).end), depth=1 + of.depth)

    def parenthesis(self, of: Raw) -> Raw:
        return replace(of, parted=True) if isinstance(of, Number) else of

    def side(self, word: Token) -> Token:
        return word

    def tif(self, *tokens: Token) -> "str | Number":
        return str(tokens[0]) if len(tokens) == 1 else _number(tokens[1])

    def order(self, side: Token, size: Raw, price: Raw, tif: "str | Number | None") -> Order:
        return Order(side=str(side), size=size, price=price, tif=tif or "ioc", **_over(size, price))

    def command(self, word: Token) -> Command:
        return Command(word=str(word), at=_span(word))
