"""JSON texts that no fast reader took: is it JSON at all, and if so, what in it is forbidden (wire.md, Canonical form)?

1. No recursion: any nesting is walked with a list, so that hostile depth costs what its bytes cost.
2. A text that is not JSON (RFC 8259) has a fault without a path; one that is, but breaks the wire's profile,
   has the path of the first forbidden thing. Grammar is judged to the end before anything is called forbidden.
3. This is the slow judge. `canonical` calls it only where its fast readers refuse or cannot tell.
"""

import json
import re
from typing import Final

import msgspec

from broker.wire.ids import MAX_SAFE

MAX_DEPTH: Final = 32
"""The deepest nesting of objects and arrays, counting the outermost as 1."""

_STRING: Final = r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
_VALUE: Final = re.compile(
    r"[ \t\n\r]*(?:(?P<string>" + _STRING + r")"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<literal>true|false|null)|(?P<object>\{)|(?P<array>\[(?:[ \t\n\r]*\[)*))"
)
"""A value's beginning. A run of `[` is one match, so that a text of nothing else is walked at once."""
_NAME: Final = re.compile(r"[ \t\n\r]*(" + _STRING + r")[ \t\n\r]*:")
_MARK: Final = re.compile(r"[ \t\n\r]*([,\]}])")
_END: Final = re.compile(r"[ \t\n\r]*\Z")
_BRACKET: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_MAX_PATH: Final = 200
"""Characters of a path that are told; a hostile name may be as long as the frame."""


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a text. `path` None: it is not JSON. Else the place, "" for the root."""

    message: str
    path: str | None = None


class Slice(msgspec.Struct, frozen=True):
    """A member of the root object: its name and where its value stands in the text."""

    name: str
    start: int
    end: int


_NOT_JSON: Final = Fault("this is not JSON")


def join(at: str, path: str) -> str:
    """The path below `at`: "body" and "legs[0]" give "body.legs[0]"."""
    return at + path if not at or not path or path[0] == "[" else f"{at}.{path}"


def too_deep(data: bytes, most: int = MAX_DEPTH) -> bool:
    """Whether brackets outside strings nest deeper than `most`. Never recurses; stops at the first too deep."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    depth = 0
    for match in _BRACKET.finditer(data):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > most:
                return True
        elif token in (b"]", b"}"):
            depth -= 1
    return False


def bad_number(token: str) -> bool:
    """Whether a number's token is beyond ±(2^53−1), judged on the double that RFC 8785 would print."""
    if "." in token or "e" in token or "E" in token:
        return not -MAX_SAFE <= float(token) <= MAX_SAFE
    # The length first: Python refuses to read integers of more than 4,300 digits.
    return len(token) > 17 or not -MAX_SAFE <= int(token) <= MAX_SAFE


def examine(text: str, *, most: int = MAX_DEPTH) -> Fault | None:
    """The fault of a whole JSON text, or None. Duplicates, numbers, surrogates and depth are looked at everywhere."""
    return _Walk(text, most).run()


def split(text: str) -> list[Slice] | Fault:
    """The members of a root object, in order; their values are judged for grammar alone.

    A root that is no object, a name used twice at this level and a name with a lone surrogate are faults with a path.
    """
    walk = _Walk(text, most=0, root_only=True)
    fault = walk.run()
    if fault is not None:
        return fault
    return walk.slices


class _Level:
    """One open object or array: the names it has had, and where in it the walk stands."""

    __slots__ = ("index", "name", "names", "start")

    def __init__(self, is_object: bool) -> None:
        self.names: set[str] | None = set() if is_object else None
        self.name = ""
        self.index = 0
        self.start = 0


class _Walk:
    """One pass over a text. `most` 0: depth is not limited."""

    def __init__(self, text: str, most: int, *, root_only: bool = False) -> None:
        self.text = text
        self.most = most
        self.root_only = root_only
        self.pos = 0
        self.stack: list[_Level] = []
        self.fault: Fault | None = None
        self.slices: list[Slice] = []

    def run(self) -> Fault | None:
        if self.root_only and not self.text.lstrip(" \t\n\r").startswith("{"):
            self.forbid("an object is expected here")
        while self.value():
            if not self.stack:
                return self.fault if _END.match(self.text, self.pos) else _NOT_JSON
        return _NOT_JSON

    def forbid(self, message: str) -> None:
        if self.fault is None:
            self.fault = Fault(message, self.path())

    def path(self) -> str:
        parts: list[str] = []
        size = 0
        for level in self.stack:
            part = level.name if level.names is not None else f"[{level.index}]"
            parts.append(f".{part}" if level.names is not None and parts else part)
            size += len(part)
            if size > _MAX_PATH:
                break
        # A name may hold lone surrogates, which no answer can carry.
        return "".join(parts)[:_MAX_PATH].encode("utf-8", "replace").decode()

    def value(self) -> bool:
        """Take one value's beginning and, where it is complete, all that closes after it. False: not JSON."""
        match = _VALUE.match(self.text, self.pos)
        if match is None:
            return False
        self.pos = match.end()
        kind = match.lastgroup
        if self.stack and len(self.stack) == 1:
            self.stack[0].start = match.start(kind or 0)
        if kind == "object":
            return self.open_object()
        if kind == "array":
            return self.open_arrays(match.group(kind).count("["))
        if not self.root_only and self.fault is None:
            token = match.group(kind or 0)
            if kind == "number" and bad_number(token):
                self.forbid("a number beyond ±(2^53−1); write amounts as strings")
            elif kind == "string" and "\\" in token and _SURROGATE.search(json.loads(token)):
                self.forbid("a lone surrogate")
        return self.close()

    def open_object(self) -> bool:
        self.push(_Level(is_object=True))
        match = _MARK.match(self.text, self.pos)
        if match is not None:
            return self.shut(match) and self.close()
        return self.take_name()

    def open_arrays(self, count: int) -> bool:
        if self.fault is not None or self.root_only:
            # Nothing more is named: the levels need no counting, only their number.
            self.stack.extend([_Level(is_object=False) for _ in range(count)])
        else:
            for _ in range(count):
                self.push(_Level(is_object=False))
        match = _MARK.match(self.text, self.pos)
        if match is not None:
            return self.shut(match) and self.close()
        return True

    def push(self, level: _Level) -> None:
        if len(self.stack) == self.most and self.most:
            self.forbid(f"nested deeper than {self.most}")
        self.stack.append(level)

    def take_name(self) -> bool:
        match = _NAME.match(self.text, self.pos)
        if match is None:
            return False
        self.pos = match.end()
        if self.fault is not None or (self.root_only and len(self.stack) > 1):
            return True
        level = self.stack[-1]
        names = level.names
        level.name = json.loads(match.group(1))
        if _SURROGATE.search(level.name):
            self.forbid("a lone surrogate in a name")
        elif names is not None and level.name in names:
            self.forbid("a name used twice")
        elif names is not None:
            names.add(level.name)
        return True

    def shut(self, match: re.Match[str]) -> bool:
        """Close the innermost level by the mark found: False where it is a comma or of the other kind."""
        if match.group(1) != ("}" if self.stack[-1].names is not None else "]"):
            return False
        self.pos = match.end()
        self.stack.pop()
        return True

    def close(self) -> bool:
        """After a complete value: close what closes here, up to the next value or the end."""
        while self.stack:
            level = self.stack[-1]
            if self.root_only and len(self.stack) == 1:
                self.slices.append(Slice(level.name, level.start, self.pos))
            match = _MARK.match(self.text, self.pos)
            if match is None:
                return False
            if match.group(1) == ",":
                self.pos = match.end()
                level.index += 1
                return self.take_name() if level.names is not None else True
            if not self.shut(match):
                return False
        return True
