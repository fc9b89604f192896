"""The way in: a plan of its text, of its JSON text, or of JSON that was read before.

1. Whatever it gets, a reader gives a plan or a list of diagnostics, and takes a time that its size bounds.
2. A tree is a plan if its text is read back as the same tree. So there is one judge for both forms.
"""

from typing import Any

from msgspec import Struct, json

from broker.core.plan.check import check
from broker.core.plan.diagnostics import Diagnostic, Found, Span
from broker.core.plan.limits import MAX_TEXT, cost, reach
from broker.core.plan.printer import to_text
from broker.core.plan.scan import scan
from broker.core.plan.statements import read_statements
from broker.core.plan.tree import Plan, from_json, from_value, to_value


class Checked(Struct, frozen=True):
    """A plan that holds, and what it costs."""

    plan: Plan
    text: str
    """Its canonical text."""
    cost: int
    """Steps of one tick, at most."""
    reach: int
    """How many ticks before the present one it looks at."""


def read_plan(text: str) -> Checked | list[Diagnostic]:
    """A plan of its text."""
    found = Found(text)
    plan = _read(text, found)
    return found.listed() if plan is None else Checked(plan, to_text(plan), cost(plan), reach(plan))


def read_json(text: bytes) -> Checked | list[Diagnostic]:
    """A plan of its JSON text. A diagnostic of code `shape` has no place of its own; those of other codes name lines
    and columns of the tree's canonical text."""
    if len(text) > 4 * MAX_TEXT:
        return _shape(f"a plan's JSON has at most {4 * MAX_TEXT} bytes")
    try:
        plan = from_json(text)
    except ValueError as error:
        return _shape(str(error))
    return _known(plan)


def read_value(value: object) -> Checked | list[Diagnostic]:
    """A plan of JSON that was read before (nested no deeper than the wire takes); diagnostics as in `read_json`."""
    try:
        plan = from_value(value)
    except ValueError as error:
        return _shape(str(error))
    return _known(plan)


def read_any(text: str) -> Checked | list[Diagnostic]:
    """A plan of its text or its JSON text: the latter begins with a brace."""
    return read_json(text.encode(errors="replace")) if text.lstrip()[:1] == "{" else read_plan(text)


def _known(plan: Plan) -> Checked | list[Diagnostic]:
    checked = read_plan(to_text(plan))
    if isinstance(checked, Checked) and checked.plan != plan:
        return _shape(_differs(to_value(plan), to_value(checked.plan)))
    return checked


def _read(text: str, found: Found) -> Plan | None:
    if len(text) > MAX_TEXT:
        found.add("limit", Span(MAX_TEXT, MAX_TEXT), f"a plan has at most {MAX_TEXT} characters")
        return None
    statements = read_statements(text, scan(text, found), found)
    return check(text, statements, found)


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
