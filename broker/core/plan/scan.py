"""A text as the grammar's tokens. What another language would write is named, and read as what it means here."""

import re
from collections.abc import Iterator
from typing import Final

from lark import Token

from broker.core.pieces import Pieces
from broker.core.plan.diagnostics import Found, Span, shown
from broker.core.plan.grammar import terminals

MAX_NAME: Final = 32
MAX_DIGITS: Final = 16
ALIEN: Final = {
    "==": "=", "===": "=", ":=": "=", "<>": "!=", "!==": "!=", "≠": "!=", "=<": "<=", "≤": "<=", "=>": ">=", "≥": ">=",
    "&&": "and", "&": "and", "∧": "and", "||": "or", "|": "or", "∨": "or", "!": "not", "¬": "not",
    "−": "-", "–": "-", "×": "*", "÷": "/", ";": ",", "->": ":", "@": "at", "→": ":",
}  # fmt: skip
"""Signs of other languages → ours."""
_OWN: Final = ("<=", ">=", "!=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ":", ",")
_SIGNS: Final = "|".join(re.escape(each) for each in sorted([*ALIEN, *_OWN], key=len, reverse=True))
_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r\n]+|#[^\n]*)"
    r"|(?P<odd>[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9]++(?:_[0-9]++)++"
    r"|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE]\+?[0-9]{1,2}|[kKmM])(?![A-Za-z0-9_])"
    r"|\.[0-9]++|[0-9]++\.(?![0-9]))"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<word>stand-down|[A-Za-z_][A-Za-z0-9_]*)"
    rf"|(?P<sign>{_SIGNS})"
    r"|(?P<other>[^\x00-\x20#0-9A-Za-z_]|[\x00-\x1f])"
)
_NAMED: Final = {
    "ON": re.compile(r"""(?P<quote>["']?)(?P<it>[A-Za-z0-9][A-Za-z0-9._/-]*)(?P=quote)"""),
    "PLAN": re.compile(r"""(?P<quote>["']?)(?P<it>[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)(?P=quote)"""),
}
"""After these words what stands there is a name, also where it would be read as something else elsewhere."""
_SCALE: Final = {"k": 3, "m": 6}


PIECE: Final = 500
"""Tokens of one piece of work."""


def scan(text: str, found: Found) -> Pieces[list[Token]]:
    """The tokens, with `start_pos` and `end_pos` where they stand in the text; diagnostics go to `found`."""
    tokens: list[Token] = []
    for token in _Scanner(text, found).tokens():
        tokens.append(token)
        if len(tokens) % PIECE == 0:
            yield
    return tokens


class _Scanner:
    def __init__(self, text: str, found: Found) -> None:
        self._text, self._found, self._names = text, found, terminals()

    def tokens(self) -> Iterator[Token]:
        at, text, last = 0, self._text, ""
        while at < len(text) and not self._found.full():
            match = _TOKEN.match(text, at)
            assert match is not None  # `other` takes whatever is left
            span, kind = Span(at, match.end()), match.lastgroup
            if kind != "space" and last in _NAMED and (named := _NAMED[last].match(text, at)):
                at, last = named.end(), ""
                yield self._named(named)
                continue
            at = span.end
            if kind == "other":
                at = self._others(span)
            elif kind == "word":
                token = self._word(match.group(), span)
                last = token.type
                yield token
            elif kind == "odd":
                yield self._odd(match.group(), span)
            elif kind == "number":
                yield self._number(match.group(), span)
            elif kind == "sign":
                yield self._sign(match.group(), span)

    def _token(self, name: str, value: str, span: Span) -> Token:
        return Token(name, value, start_pos=span.start, end_pos=span.end)

    def _others(self, span: Span) -> int:
        """Signs that mean nothing, as many as stand there; gives where they end."""
        end = span.end
        while (
            end < len(self._text) and (match := _TOKEN.match(self._text, end)) and match.lastgroup == "other"
        ):
            end = match.end()
        span = Span(span.start, end)
        self._found.add(
            "syntax", span, f"{shown(self._text[span.start : end])} means nothing here", repair=" "
        )
        return end

    def _word(self, word: str, span: Span) -> Token:
        lower = word.lower().replace("-", "_")
        if word not in self._names and lower in self._names:
            self._found.add("syntax", span, f"{shown(word)} is written {lower}", (lower,), lower)
            word = lower
        if word in self._names:
            return self._token(self._names[word], word, span)
        if len(word) > MAX_NAME:
            self._found.add("limit", span, f"a name has at most {MAX_NAME} characters")
        return self._token("NAME", word, span)

    def _named(self, match: re.Match[str]) -> Token:
        """The name of a plan, or the instrument that it is for."""
        span, word = Span(match.start(), match.end()), match["it"]
        if match.re is _NAMED["PLAN"]:
            if (plain := word.replace("-", "_")) != match.group():
                said = f"a name is letters, digits and _: {shown(match.group())}"
                self._found.add("syntax", span, said, (plain,), plain)
            return self._word(plain, span)
        if word != match.group():
            self._found.add("syntax", span, "an instrument stands there without quotes", (word,), word)
        if len(word) > MAX_NAME:
            self._found.add("limit", span, f"an instrument has at most {MAX_NAME} characters")
        return self._token("INSTRUMENT", word, span)

    def _number(self, text: str, span: Span) -> Token:
        whole, _, part = text.partition(".")
        if len(whole) > MAX_DIGITS or len(part) > MAX_DIGITS:
            self._found.add("limit", span, "a number is at most 1000000000000000")
            text = "0"
        return self._token("NUMBER", text, span)

    def _odd(self, text: str, span: Span) -> Token:
        """1,000 · 1_000 · 1e6 · 5k · .5 · 5. as the number that is meant."""
        digits = text.replace(",", "").replace("_", "").lower().replace("+", "")
        shift = _SCALE.get(digits[-1], 0)
        digits, _, power = digits.rstrip("km").partition("e")
        shift += int(power or 0)
        whole, _, part = digits.partition(".")
        part = part.ljust(shift, "0")
        plain = ((whole + part[:shift]).lstrip("0") or "0") + (
            "." + part[shift:] if part[shift:].strip("0") else ""
        )
        if len(plain) > 2 * MAX_DIGITS:
            return self._number(plain, span)
        self._found.add("number", span, f"{shown(text)} is no number here: digits alone", (plain,), plain)
        return self._number(plain, span)

    def _sign(self, sign: str, span: Span) -> Token:
        if sign in ALIEN:
            meant = ALIEN[sign]
            spaced = meant if not meant.isalpha() else f" {meant} "
            self._found.add("syntax", span, f"{sign!r} is written {meant!r}", (meant,), spaced)
            sign = meant
        return self._token(self._names[sign], sign, span)
