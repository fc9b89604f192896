"""The tree of a plan, and its JSON form (docs/reference/plan.md, JSON).

1. Text and JSON say the same tree: what one can say the other can, and nothing is lost between them.
2. All numbers are integers: prices in ticks, sizes in units, money in millionths of the quote currency.
3. A tree says no more than its shape. Whether it is a plan (kinds, bounds, limits) is for `read` to say.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from broker.wire import canonical
from broker.wire.grammar import MAX_DEPTH
from broker.wire.refusals import Refusal

MICRO: Final = 1_000_000
MOST: Final = 10**15
"""The greatest number that a plan may write, also in millionths: JSON keeps it whole everywhere."""
WORD: Final = "[A-Za-z_][A-Za-z0-9_]{0,31}"
INSTRUMENT: Final = "[A-Za-z0-9][A-Za-z0-9._/-]{0,31}"

Whole = Annotated[int, Meta(ge=-MOST, le=MOST)]
Word = Annotated[str, Meta(pattern=f"^{WORD}$")]
Constant = Whole | Word
"""A number, or the name of a `let`."""
Windowed = Literal["avg", "min", "max"]
Series = Literal["bid", "ask", "mid", "spread", "size"]
"""What has a past that a plan may look at: the tape's own."""


class Node(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What every part of a tree is: frozen, and strict in JSON."""


class Op(Node, frozen=True, tag_field="op"):
    """What stands where others may: `op` says what it is."""


class Money(Op, frozen=True, tag="money"):
    """A number of the quote currency."""

    micros: Whole


class Past(Op, frozen=True, tag="past"):
    """`mid[5]`: what it was so many ticks ago."""

    of: Series
    ago: Constant


class Window(Op, frozen=True, tag="window"):
    """`avg(mid, 20)`, `max(mid[1], 20)`: over so many ticks, the last of them `ago` ticks back."""

    fn: Windowed
    of: Series
    ticks: Constant
    ago: Constant = 0


class Calc(Op, frozen=True, tag="calc"):
    """Two numbers make one. `/` rounds down."""

    sign: Literal["+", "-", "*", "/", "%"]
    left: "Expr"
    right: "Expr"


class Neg(Op, frozen=True, tag="neg"):
    """The other sign."""

    of: "Expr"


class Abs(Op, frozen=True, tag="abs"):
    """Without its sign."""

    of: "Expr"


Expr = Whole | Word | Money | Past | Window | Calc | Neg | Abs
"""A JSON number is a count, ticks or units, as where it stands says; a string is a quantity or a `let`."""


class Compare(Op, frozen=True, tag="compare"):
    """True or not."""

    sign: Literal["=", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr


class And(Op, frozen=True, tag="and"):
    """True if all are."""

    of: Annotated[tuple["Cond", ...], Meta(min_length=2)]


class Or(Op, frozen=True, tag="or"):
    """True if one is."""

    of: Annotated[tuple["Cond", ...], Meta(min_length=2)]


class Not(Op, frozen=True, tag="not"):
    """True if it is not."""

    of: "Cond"


Cond = Compare | And | Or | Not


class Order(Op, frozen=True, tag="order"):
    """Buy or sell so much at so much. `tif`: `ioc` lives one tick, `gtc` until it is filled or cancelled, a number of
    ticks that long."""

    side: Literal["buy", "sell"]
    size: Expr
    price: Expr
    tif: Literal["ioc", "gtc"] | Whole = "ioc"


class Cancel(Op, frozen=True, tag="cancel"):
    """Take back all orders that rest."""


class Flatten(Op, frozen=True, tag="flatten"):
    """Take back all orders that rest, and close the position."""


class StandDown(Op, frozen=True, tag="stand_down"):
    """Flatten, and let the plan be over."""


Do = Order | Cancel | Flatten | StandDown


class Rule(Node, frozen=True):
    """While `when` holds, at each tick, all of `do`."""

    when: Cond
    do: Annotated[tuple[Do, ...], Meta(min_length=1)]


class Let(Node, frozen=True):
    """A parameter."""

    name: Word
    value: Whole | Money


class Bound(Node, frozen=True):
    """What the runtime keeps, whatever the rules say."""

    position: Whole
    """The most that is held, long or short, in units."""
    loss: Whole
    """The most that may be lost, in millionths of the quote currency."""
    orders: Whole
    """The most orders that are sent."""
    until: Whole
    """The last tick."""


class Plan(Node, frozen=True):
    """A whole plan."""

    name: Word
    version: Whole
    on: Annotated[str, Meta(pattern=f"^{INSTRUMENT}$")]
    bound: Bound
    rules: Annotated[tuple[Rule, ...], Meta(min_length=1)]
    let: tuple[Let, ...] = ()


def from_json(text: bytes) -> Plan:
    """The tree that a JSON text says. Raises ValueError for what is no strict JSON (RFC 8785's, as everywhere) or has
    not the shape of a tree; msgspec's message says where."""
    value = canonical.read(text, code="bad_request")
    if isinstance(value, Refusal):
        raise ValueError(value.message)
    return from_value(value)


def from_value(value: object) -> Plan:
    """The tree of JSON that was read before. Raises as `from_json`."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [part for each in level if isinstance(each, dict | list) for part in _parts(each)]
        if not level:
            return msgspec.convert(value, Plan)
    raise ValueError(f"it is nested deeper than {MAX_DEPTH}")


def _parts(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


def to_json(plan: Plan) -> bytes:
    """Its JSON text, without spaces."""
    return msgspec.json.encode(plan)


def to_value(plan: Plan) -> dict[str, Any]:
    """Its JSON, as Python has it."""
    value: dict[str, Any] = msgspec.json.decode(to_json(plan))
    return value


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the JSON form."""
    return msgspec.json.schema(Plan)
