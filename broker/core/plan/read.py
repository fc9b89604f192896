"""The way in: a plan of its text, of its JSON text, or of JSON that was read before.

1. Whatever it gets, a reader gives a plan or a list of diagnostics, and takes a time that its size bounds.
2. A tree is a plan if its text is read back as the same tree. So there is one judge for both forms.
"""

from typing import Any, Final

from msgspec import Struct, json

from broker.core.pieces import Pieces, whole
from broker.core.plan.check import check
from broker.core.plan.diagnostics import Diagnostic, Found, Span
from broker.core.plan.limits import MAX_TEXT, cost, reach
from broker.core.plan.printer import to_text
from broker.core.plan.scan import scan
from broker.core.plan.statements import read_statements
from broker.core.plan.tree import Plan, from_json, from_value, to_value

MAX_TREE: Final = 8 * MAX_TEXT
"""Bytes of a tree as JSON, more than any plan has: a larger one is not printed to find out."""


class Checked(Struct, frozen=True):
    """A plan that holds, and what it costs."""

    plan: Plan
    text: str
    """Its canonical text."""
    cost: int
    """Steps of one tick, at most."""
    reach: int
    """How many ticks before the present one it looks at."""


Reading = Pieces[Checked | list[Diagnostic]]


def read_plan(text: str) -> Checked | list[Diagnostic]:
    """A plan of its text."""
    return whole(_reading_text(text))


def read_json(text: bytes) -> Checked | list[Diagnostic]:
    """A plan of its JSON text. A diagnostic of code `shape` has no place of its own; those of other codes name lines
    and columns of the tree's canonical text."""
    return whole(_reading_json(text))


def read_value(value: object) -> Checked | list[Diagnostic]:
    """A plan of JSON that was read before (nested no deeper than the wire takes); diagnostics as in `read_json`."""
    return whole(_reading_value(value))


def read_any(text: str) -> Checked | list[Diagnostic]:
    """A plan of its text or its JSON text: the latter begins with a brace."""
    return whole(reading(text))


def reading(given: object) -> Reading:
    """As `read_any` reads a text, and `read_value` all else, in pieces of some 5 ms at most."""
    if not isinstance(given, str):
        return _reading_value(given)
    if given.lstrip()[:1] != "{":
        return _reading_text(given)
    return _reading_json(given.encode(errors="replace"))


def _reading_text(text: str) -> Reading:
    found = Found(text)
    if len(text) > MAX_TEXT:
        found.add("limit", Span(MAX_TEXT, MAX_TEXT), f"a plan has at most {MAX_TEXT} characters")
        return found.listed()
    tokens = yield from scan(text, found)
    yield
    statements = yield from read_statements(text, tokens, found)
    yield
    plan = yield from check(text, statements, found)
    if plan is None:
        return found.listed()
    yield
    return Checked(plan, to_text(plan), cost(plan), reach(plan))


def _reading_json(text: bytes) -> Reading:
    if len(text) > 4 * MAX_TEXT:
        return _shape(f"a plan's JSON has at most {4 * MAX_TEXT} bytes")
    try:
        plan = from_json(text)
    except ValueError as error:
        return _shape(str(error))
    return (yield from _known(plan))


def _reading_value(value: object) -> Reading:
    try:
        plan = from_value(value)
    except ValueError as error:
        return _shape(str(error))
    if len(json.encode(plan)) > MAX_TREE:
        return _shape(f"a plan's tree has at most {MAX_TREE} bytes of JSON")
    return (yield from _known(plan))


def _known(plan: Plan) -> Reading:
    checked = yield from _reading_text(to_text(plan))
    if isinstance(checked, Checked) and checked.plan != plan:
        return _shape(_differs(to_value(plan), to_value(checked.plan)))
    return checked


def _shape(message: str) -> list[Diagnostic]:
    return [Diagnostic("shape", 1, 1, 0, message)]


def _differs(given: Any, meant: Any, path: str = "$") -> str:
    """The first place where a tree is not the one that its text says."""
    if type(given) is type(meant) and isinstance(given, dict | list):
        names = sorted({*given, *meant}) if isinstance(given, dict) else range(max(len(given), len(meant)))
        for name in names:
            one, other = _member(given, name), _member(meant, name)
            if one != other:
                return _differs(one, other, f"{path}.{name}" if isinstance(name, str) else f"{path}[{name}]")
    return f"as text this is another tree: at `{path}` it says {json.encode(meant).decode()}"


def _member(value: Any, name: Any) -> Any:
    if isinstance(value, dict):
        return value.get(name)
    return value[name] if name < len(value) else None
