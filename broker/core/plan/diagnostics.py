"""What is wrong with a plan: where, what was expected, and the repair where one is obvious.

1. A diagnostic is a value. No text makes the reader raise.
2. A repair replaces the `length` characters at its place by `repair`; nothing else in the text need be known for it.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

Code = Literal["syntax", "name", "number", "kind", "bound", "limit", "shape"]
"""syntax: not the grammar · name: nothing of this name, or twice · number: not written as numbers are · kind: prices,
sizes, money and counts mixed up · bound: one that is missing, or can't be kept · limit: too large · shape: no tree."""

MAX_SHOWN: Final = 32
"""Diagnostics of one text; the first ones tell."""
CLOSE: Final = 0.6
"""How alike (difflib's ratio) a word must be to be what was meant."""


SLIP: Final = 2
"""How many letters more or less a slip makes: `rsi` is not `resting`, for all its letters."""


class Span(NamedTuple):
    """A place in a text: from one character to before another."""

    start: int
    end: int


class Diagnostic(Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong. Lines and columns count from 1, columns in characters."""

    code: Code
    line: int
    column: int
    length: int
    """Characters that it is about; 0 where something is missing."""
    message: str
    expected: tuple[str, ...] = ()
    repair: str | None = None
    """What to put in place of those characters."""

    def __str__(self) -> str:
        parts = [f"{self.line}:{self.column}: {self.message}"]
        if self.expected and self.expected != (self.repair,):
            parts.append("expected " + listed([_quoted(each) for each in self.expected]))
        if self.repair is not None:
            parts.append(f"write {self.repair.strip()!r}" if self.repair.strip() else "leave it out")
        return "; ".join(parts)


class Found:
    """Collects the diagnostics of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._all: dict[tuple[int, str], Diagnostic] = {}

    def add(
        self,
        code: Code,
        at: Span,
        message: str,
        expected: Iterable[str] = (),
        repair: str | None = None,
    ) -> None:
        """One more, unless the same was said of the same place."""
        if self.full():
            return
        line = self._text.count("\n", 0, at.start) + 1
        column = at.start - (self._text.rfind("\n", 0, at.start) + 1) + 1
        entry = Diagnostic(code, line, column, at.end - at.start, message, tuple(expected), repair)
        self._all.setdefault((at.start, message), entry)

    def __bool__(self) -> bool:
        return bool(self._all)

    def full(self) -> bool:
        """Whether more would not be shown."""
        return len(self._all) >= MAX_SHOWN

    def listed(self) -> list[Diagnostic]:
        """By place."""
        return sorted(self._all.values(), key=lambda each: (each.line, each.column))


def listed(words: Sequence[str]) -> str:
    """a, b or c."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _quoted(expected: str) -> str:
    """A sign, or a word that would be read as one of the sentence, stands in quotes."""
    return repr(expected) if expected in ("and", "or") or not any(map(str.isalpha, expected)) else expected


def shown(text: str) -> str:
    """What stands there, short enough for a message."""
    return repr(text if len(text) <= 40 else text[:37] + "…")


MEANT: Final = {
    "average": "avg", "sma": "avg", "mean": "avg", "ma": "avg", "ema": "avg", "wma": "avg",
    "highest": "max", "high": "max", "lowest": "min", "low": "min",
    "price": "mid", "last": "mid", "close": "mid flatten", "entry": "fill", "entry_price": "fill",
    "qty": "size", "volume": "size", "inventory": "position", "pos": "position", "all": "position", "profit": "pnl",
    "time": "tick", "t": "tick", "now": "tick", "offer": "ask",
    "halt": "stand_down", "stop": "stand_down", "exit": "flatten", "close_all": "flatten",
    "long": "buy", "short": "sell",
    "if": "when", "def": "let", "var": "let", "set": "let", "const": "let", "symbol": "on",
    "bounds": "bound", "limit": "bound", "limits": "bound",
    "max_position": "position", "max_loss": "loss", "max_orders": "orders", "end": "until",
    "fok": "ioc", "day": "gtc",
}  # fmt: skip
"""Other languages' words → ours; of several the one that can stand there."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was meant, or None."""
    known, word = list(known), word[:64].lower()
    for meant in MEANT.get(word, "").split():
        if meant in known:
            return meant
    if word.replace("-", "_") in known:
        return word.replace("-", "_")
    near = difflib.get_close_matches(word, known, 3, CLOSE)
    return next((each for each in near if each.startswith(word) or abs(len(each) - len(word)) <= SLIP), None)


def apply(text: str, found: Iterable[Diagnostic]) -> str:
    """The text with every repair made; of several at one place the first comes first."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    placed = sorted(found, key=lambda one: (one.line, one.column))
    for each in reversed(placed):
        if each.repair is not None:
            at = starts[each.line - 1] + each.column - 1
            text = text[:at] + each.repair + text[at + each.length :]
    return text
