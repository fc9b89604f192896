"""JSON texts that no fast reader took: is it JSON at all, and if so, what in it is forbidden?

The law is wire.md, Canonical form.

1. No recursion: any nesting is walked with a list, so that hostile depth costs what its bytes cost.
2. A text that is not JSON (RFC 8259) has a fault without a path; one that is, but breaks the wire's profile,
   has the path of the first forbidden thing. Grammar is judged to the end before anything is forbidden.
3. This is the slow judge. `canonical` calls it only where its fast readers refuse or cannot tell.
"""

import json
import re
from typing import Final

import msgspec

from broker.wire.ids import MAX_SAFE

MAX_DEPTH: Final = 32
"""The deepest nesting of objects and arrays, counting the outermost as 1."""

# Possessive throughout: nothing is tried twice, so that no text costs more than its length.
_WS: Final = r"[ \t\n\r]*+"
_STRING: Final = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_VALUE: Final = re.compile(
    rf"{_WS}(?:(?:({_STRING})|({_NUMBER})|true|false|null){_WS}([,\]}}]?)|(\{{)|(\[(?:{_WS}\[)*+))"
)
"""A value's beginning: string, number, the mark after a scalar, an object's or arrays' opening.

A run of `[` is one match, so that a text of nothing else is walked at once.
"""
_MARK_GROUP: Final = 3
_OBJECT_GROUP: Final = 4
_NAME: Final = re.compile(rf"{_WS}({_STRING}){_WS}:")
_MARK: Final = re.compile(rf"{_WS}([,\]}}])")
_END: Final = re.compile(rf"{_WS}\Z")
_SKIPPED: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, or what is left of one that never ends."""
_ROUND: Final = bytes.maketrans(b"[]{}", b"()()")
_OTHERS: Final = bytes(each for each in range(256) if each not in b"[]{}")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

MAX_SHOWN: Final = 200
"""Characters of a hostile text that an answer repeats: a name may be as long as its frame."""


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


def shown(text: str) -> str:
    """A text from outside, fit for an answer or a terminal: cut, and without controls or lone surrogates."""
    return "".join([each if each.isprintable() else "?" for each in text[:MAX_SHOWN]])


def join(at: str, path: str) -> str:
    """The path below `at`: "body" and "legs[0]" give "body.legs[0]"."""
    return at + path if not at or not path or path[0] == "[" else f"{at}.{path}"


def too_deep(data: bytes, most: int = MAX_DEPTH) -> bool:
    """Whether brackets outside strings nest deeper than `most` (or never close). Never recurses."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    text = _SKIPPED.sub(b"", data).translate(_ROUND, _OTHERS)
    for _ in range(most):
        if not text:
            return False
        text = text.replace(b"()", b"")
    return bool(text)


def bad_number(token: str) -> bool:
    """Whether a number's token is beyond ±(2^53−1), judged on the double that RFC 8785 would print."""
    if "." in token or "e" in token or "E" in token:
        return not -MAX_SAFE <= float(token) <= MAX_SAFE
    # The length first: Python refuses to read integers of more than 4,300 digits.
    return len(token) > 17 or not -MAX_SAFE <= int(token) <= MAX_SAFE


def examine(text: str, *, most: int = MAX_DEPTH) -> Fault | None:
    """The fault of a whole JSON text, or None: duplicates, numbers, surrogates and depth, at every level."""
    return _Walk(text, most).run()


def split(text: str) -> list[Slice] | Fault:
    """The members of a root object, in order; their values are judged for grammar alone.

    Faults with a path: a root that is no object, a name used twice at this level, one with a lone surrogate.
    """
    walk = _Walk(text, most=0, root_only=True)
    return walk.run() or walk.slices


class _Level:
    """One open object or array: the names it has had, and where in it the walk stands."""

    __slots__ = ("index", "name", "names", "start")

    def __init__(self, *, is_object: bool) -> None:
        self.names: set[str] | None = set() if is_object else None
        self.name = ""
        self.index = 0
        self.start = 0


# Where nothing more is named, a level need only say how it closes.
_SOME_OBJECT: Final = _Level(is_object=True)
_SOME_ARRAY: Final = _Level(is_object=False)


class _Walk:
    """One pass over a text. `most` 0: depth is not limited."""

    def __init__(self, text: str, most: int, *, root_only: bool = False) -> None:
        self.text = text
        self.most = most
        self.root_only = root_only
        self.pos = 0
        self.stack: list[_Level] = []
        self.fault: Fault | None = None
        self.naming = True
        """Whether a fault could still be found where the walk stands."""
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
            self.naming = False

    def path(self) -> str:
        parts: list[str] = []
        size = 0
        for level in self.stack:
            part = level.name if level.names is not None else f"[{level.index}]"
            parts.append(f".{part}" if level.names is not None and parts else part)
            size += len(part)
            if size > MAX_SHOWN:
                break
        return shown("".join(parts))

    def value(self) -> bool:
        """Take a value's beginning and, where it is complete, all that closes after it. False: not JSON."""
        match = _VALUE.match(self.text, self.pos)
        if match is None:
            return False
        self.pos = match.end()
        if self.root_only and len(self.stack) == 1:
            self.stack[0].start = match.start()
        group = match.lastindex
        if group != _MARK_GROUP:
            return self.open_object() if group == _OBJECT_GROUP else self.open_arrays(match[5].count("["))
        string, number, mark = match.group(1, 2, 3)
        if self.naming and not self.root_only:
            if number is not None and bad_number(number):
                self.forbid("a number beyond ±(2^53−1); write amounts as strings")
            elif string is not None and "\\" in string and _SURROGATE.search(json.loads(string)):
                self.forbid("a lone surrogate")
        return self.close(mark)

    def open_object(self) -> bool:
        self.push(is_object=True)
        match = _MARK.match(self.text, self.pos)
        if match is None:
            return self.take_name()
        self.pos = match.end()
        return self.shut(match[1]) and self.close("")

    def open_arrays(self, count: int) -> bool:
        while count and self.naming and not self.root_only:
            self.push(is_object=False)
            count -= 1
        self.stack.extend([_SOME_ARRAY] * count)
        match = _MARK.match(self.text, self.pos)
        if match is None:
            return True
        self.pos = match.end()
        return self.shut(match[1]) and self.close("")

    def push(self, *, is_object: bool) -> None:
        if self.naming and len(self.stack) == self.most and self.most:
            self.forbid(f"nested deeper than {self.most}")
        if self.naming and not (self.root_only and self.stack):
            self.stack.append(_Level(is_object=is_object))
        else:
            self.stack.append(_SOME_OBJECT if is_object else _SOME_ARRAY)

    def take_name(self) -> bool:
        match = _NAME.match(self.text, self.pos)
        if match is None:
            return False
        self.pos = match.end()
        level = self.stack[-1]
        if not self.naming or level is _SOME_OBJECT or level.names is None:
            return True
        quoted = match[1]
        level.name = json.loads(quoted) if "\\" in quoted else quoted[1:-1]
        if _SURROGATE.search(level.name):
            self.forbid("a lone surrogate in a name")
        elif level.name in level.names:
            self.forbid("a name used twice")
        level.names.add(level.name)
        return True

    def shut(self, mark: str) -> bool:
        """Close the innermost level: False where the mark is a comma or of the other kind."""
        return mark == ("}" if self.stack.pop().names is not None else "]")

    def close(self, mark: str) -> bool:
        """After a complete value, `mark` ("" where not yet read) standing behind it: go to the next value."""
        while self.stack:
            level = self.stack[-1]
            end = self.pos - len(mark)
            if not mark:
                match = _MARK.match(self.text, self.pos)
                if match is None:
                    return False
                mark = match[1]
                self.pos = match.end()
            if self.root_only and len(self.stack) == 1:
                self.slices.append(Slice(level.name, level.start, end))
            if mark == ",":
                level.index += 1
                return self.take_name() if level.names is not None else True
            if not self.shut(mark):
                return False
            mark = ""
        return not mark
