"""The grammar of plans, as Lark takes it (docs/reference/plan.md, Grammar: printed from this).

1. It is LALR(1): a token decides. Each statement begins with a word that begins nothing else.
2. White space parts words and means nothing else; `#` begins a comment to the end of the line.
3. A rule's name here is the name of the function in `raw` that builds its node.
"""

import functools
from typing import Any, Final

from lark import Lark

from broker.core.plan.raw import Builder

GRAMMAR: Final = r"""
plan: head on bound let* rule+

head: "plan" NAME NUMBER
on: "on" INSTRUMENT
bound: "bound" limit ("," limit)*
limit: limited NUMBER
!limited: "position" | "loss" | "orders" | "until"
let: "let" NAME "=" value
value: [MINUS] NUMBER
rule: "when" cond ":" action ("," action)*

cond: both ("or" both)*
both: test ("and" test)*
test: "not" test -> negated
    | "(" cond ")" -> same
    | sum compare sum -> comparison
!compare: "=" | "!=" | "<" | "<=" | ">" | ">="

sum: product ((PLUS | MINUS) product)*
product: unary ((STAR | SLASH | PERCENT) unary)*
unary: MINUS unary -> negative
    | atom -> same
atom: NUMBER -> number
    | NAME -> name
    | quantity -> same
    | series "[" constant RSQB -> past
    | windowed "(" series ["[" constant "]"] "," constant RPAR -> window
    | ABS "(" sum RPAR -> absolute
    | "(" sum ")" -> parenthesis
!windowed: "avg" | "min" | "max"
!series: "bid" | "ask" | "mid" | "spread" | "size"
quantity: series -> same
    | other -> same
!other: "tick" | "position" | "pnl" | "orders_left" | "resting" | "fill" | "fill_age"
constant: NUMBER -> number
    | NAME -> name

action: side sum "at" sum [tif] -> order
    | command -> same
!side: "buy" | "sell"
!tif: "ioc" | "gtc" | "for" NUMBER
!command: "cancel" | "flatten" | "stand_down"

NAME: /[A-Za-z_][A-Za-z0-9_]*/
INSTRUMENT: /[A-Za-z0-9][A-Za-z0-9._\/-]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
ABS: "abs"
RPAR: ")"
RSQB: "]"
PLUS: "+"
MINUS: "-"
STAR: "*"
SLASH: "/"
PERCENT: "%"
COMMENT: /#[^\n]*/

%ignore /[ \t\r\n]+/
%ignore COMMENT
"""

STATEMENTS: Final = {"plan": "head", "on": "on", "bound": "bound", "let": "let", "when": "rule"}
"""What a statement begins with → its rule."""


@functools.cache
def parser() -> Lark:
    """Lark's tables, made when the first plan is read (a few tens of milliseconds)."""
    return Lark(
        GRAMMAR,
        parser="lalr",
        start=[*STATEMENTS.values(), "plan"],
        transformer=Builder(),
        maybe_placeholders=True,
    )


@functools.cache
def terminals() -> dict[str, str]:
    """Fixed text → the name of its terminal: keywords and signs."""
    named: dict[str, str] = {}
    for each in parser().terminals:
        pattern: Any = each.pattern
        if pattern.type == "str":
            named[pattern.value] = each.name
    return named
