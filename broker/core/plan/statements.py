"""From tokens to statements: each is parsed by itself, so that what is wrong in one hides nothing of another.

What is wrong is mended where one token would do (put in, taken out, or another in its place), which is the repair that
the diagnostic offers; the statement is parsed once more, as repaired. Else it is given up.
"""

import re
from collections.abc import Iterable
from copy import copy
from typing import Any, Final

from lark import Token
from lark.exceptions import UnexpectedToken

from broker.core.pieces import Pieces
from broker.core.plan.diagnostics import Found, Span, closest, shown
from broker.core.plan.grammar import STATEMENTS, parser, terminals
from broker.core.plan.raw import Raw

State = Any
"""Lark's InteractiveParser: its methods have no types."""

END: Final = "$END"
PUT_IN: Final = ((":", ":"), ("at", " at"), (")", ")"), (",", ","), ("=", " ="))
"""What is put in where it is missing, and as what it is written."""
SIGNS: Final = {"then": ":", "do": ":", "mod": "%", "is": "="}
"""Words of other languages → signs of ours, where such a word can't stand."""
AMOUNTS: Final = ("position", "pnl", "resting", "orders_left")
"""What is nothing at 0: alone in a condition it is meant to be something."""
PIECE: Final = 150
"""Tokens of one piece of work."""
MEND: Final = 40
"""Tokens that are fed in the time that looking for one repair takes."""
MENDS: Final = 6
"""How often one statement is parsed; after that it is anybody's guess what was meant."""
SERIES: Final = ("bid", "ask", "mid", "spread", "size")
FUNCTIONS: Final = ("avg", "min", "max", "abs")
QUANTITIES: Final = (*SERIES, "tick", "position", "pnl", "orders_left", "resting", "fill", "fill_age")
BARE: Final = "a condition compares two numbers"
CONSTANT: Final = {"NAME", "NUMBER"}
"""What may come where a look at the past says how far."""
COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_GROUPS: Final = (
    ((*QUANTITIES, *FUNCTIONS, "(", "-"), ("a number", "a quantity")),
    (SERIES, ("bid, ask, mid, spread or size",)),
    (COMPARISONS, ("a comparison",)),
    (("+", "-", "*", "/", "%"), ("an operator",)),
    (("+", "-"), ("an operator",)),
)
_NAMED: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "INSTRUMENT": "an instrument",
    END: "the end of the statement",
}


class Statement:
    """A statement: the word that it begins with, and what it says (None where that could not be told)."""

    def __init__(self, word: str, at: Span, raw: Raw | None) -> None:
        self.word, self.at, self.raw = word, at, raw


def read_statements(text: str, tokens: Iterable[Token], found: Found) -> Pieces[list[Statement]]:
    """The statements of a text, in order."""
    return _Reader(text, tokens, found).read()


class _Reader:
    def __init__(self, text: str, tokens: Iterable[Token], found: Found) -> None:
        self._text, self._tokens, self._found, self._at = text, list(tokens), found, 0
        self._spent = 0
        """Tokens, or what takes as long, of this piece."""

    def read(self) -> Pieces[list[Statement]]:
        statements = []
        while self._at < len(self._tokens) and not self._found.full():
            token = self._tokens[self._at]
            first = token if str(token) in STATEMENTS and token.type != "NAME" else self._first(token)
            if first is None:
                self._skip()
                continue
            self._at += 1
            raw = yield from self._parse(first)
            statements.append(Statement(str(first), _span(token), raw))
        return statements

    def _first(self, token: Token) -> Token | None:
        """The word that was meant to begin a statement."""
        meant = closest(str(token), STATEMENTS) if token.type == "NAME" else None
        self._found.add(
            "syntax", _span(token), f"{shown(str(token))} begins no statement", tuple(STATEMENTS), meant
        )
        if meant == "on" and self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].type == "NAME":
            self._tokens[self._at + 1].type = "INSTRUMENT"
        return None if meant is None else _as(token, meant)

    def _skip(self) -> None:
        """To the next word that begins a statement."""
        self._at += 1
        while self._at < len(self._tokens) and self._tokens[self._at].type not in _begins():
            self._at += 1

    def _parse(self, first: Token) -> Pieces[Raw | None]:
        """The rest of a statement; on return the next one begins, or the text is over."""
        start = self._at
        for _ in range(MENDS):
            self._at, last, token = start, first, first
            state: State = parser().parse_interactive("", start=STATEMENTS[str(first)])
            state.feed_token(first)
            try:
                while token.type != END:
                    last, token = token, self._called(self._next(token))
                    value = state.feed_token(token)
                    self._at += token.type != END
                    if self._spend(1):
                        yield
            except UnexpectedToken:
                if self._spend(MEND):
                    yield
                if self._begins_line(token) and END in state.accepts():
                    value = state.feed_eof()
                elif self._mended(state, token, last):
                    continue  # once more, with the tokens as they are now
                else:
                    break
            assert isinstance(value, Raw)
            return value
        yield from self._give_up()
        return None

    def _spend(self, more: int) -> bool:
        """Count so many tokens more; True where the piece is full, and another one begins."""
        self._spent += more
        if self._spent < PIECE:
            return False
        self._spent = 0
        return True

    def _next(self, last: Token) -> Token:
        if self._at < len(self._tokens) and (token := self._tokens[self._at]).type not in _begins():
            return token
        assert last.end_pos is not None
        return Token(END, "", start_pos=last.end_pos, end_pos=last.end_pos)

    def _called(self, token: Token) -> Token:
        """A name before `(` or `[` is meant to be a function, or one of what has a past."""
        follows = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else None
        if token.type != "NAME" or follows is None or follows.type not in ("LPAR", "LSQB"):
            return token
        known, what = (FUNCTIONS, "function") if follows.type == "LPAR" else (SERIES, "quantity with a past")
        meant = closest(str(token), known)
        self._found.add("name", _span(token), f"{shown(str(token))} is no {what}", known, meant)
        self._tokens[self._at] = _as(token, meant or known[0])
        return self._tokens[self._at]

    def _give_up(self) -> Pieces[None]:
        """To where the next one may begin: looking whether a word is meant to takes longer than feeding it."""
        while self._at < len(self._tokens) and self._tokens[self._at].type not in _begins():
            token = self._tokens[self._at]
            if self._begins_line(token):
                return
            self._at += 1
            if self._spend(1):
                yield

    def _begins_line(self, token: Token) -> bool:
        """Whether it stands first in its line and may be meant to begin a statement."""
        start = token.start_pos or 0
        if token.type != "NAME" or start == 0 or self._at == 0:
            return False
        line = self._text.rfind("\n", 0, start) + 1
        return not self._text[line:start].strip() and closest(str(token), STATEMENTS) is not None

    def _mended(self, state: State, token: Token, last: Token) -> bool:
        """Tells what is wrong with a token. True where one token more, less or another is the repair: it is made."""
        accepted, names, at = state.accepts(), terminals(), self._at
        message, expected = self._message(token, last, accepted), readable(accepted)
        words = [text for text, name in names.items() if name in accepted and text[0].isalpha()]
        meant = closest(str(token), words) if str(token)[:1].isalpha() else None
        if (sign := SIGNS.get(str(token), "")) and names[sign] in accepted:
            meant = sign
        if meant is not None:
            self._found.add("syntax", _span(token), message, expected, meant)
            self._tokens[at] = _as(token, meant)
            return True
        for text, written in PUT_IN:
            if names[text] in accepted and token.type in _after(state, names[text]):
                end = last.end_pos or 0
                said = f"{text!r} is missing before {_shown(token)}"
                self._found.add("syntax", Span(end, end), said, (text,), written)
                self._tokens.insert(at, Token(names[text], text, start_pos=end, end_pos=end))
                return True
        if last.type == "COMMA" and (token.type == END or str(token) in ":,"):
            self._found.add("syntax", _span(last), "a comma too many", expected, "")
            del self._tokens[at - 1]
            return True
        odd = ("-",) if accepted == CONSTANT else (",", ":", ")", "=")
        if str(token) in odd and self._follows() in accepted:
            self._found.add("syntax", _span(token), message, expected, " ")
            del self._tokens[at]
            return True
        if token.type == "NAME" and "NUMBER" in accepted and re.fullmatch("[vV][0-9]{1,9}", token):
            self._found.add("syntax", _span(token), message, expected, str(token)[1:])
            self._tokens[at] = Token(
                "NUMBER", str(token)[1:], start_pos=token.start_pos, end_pos=token.end_pos
            )
            return True
        if message == BARE and self._amount(at):
            end = last.end_pos or 0
            self._found.add("syntax", Span(end, end), message, expected, " != 0")
            self._tokens[at:at] = [
                Token(name, text, start_pos=end, end_pos=end)
                for name, text in ((names["!="], "!="), ("NUMBER", "0"))
            ]
            return True
        repair = " 1" if last.type == "NAME" and token.type == END and accepted == {"NUMBER"} else None
        self._found.add("syntax", _span(token), message, expected, repair)
        return False

    def _amount(self, at: int) -> bool:
        """Whether the token before is an amount that stands alone where a condition begins."""
        before, last = (str(each) for each in self._tokens[at - 2 : at])
        return last in AMOUNTS and before in ("when", "and", "or", "not", "(")

    def _follows(self) -> str:
        """The type of the token after this one."""
        after = self._tokens[self._at + 1].type if self._at + 1 < len(self._tokens) else END
        return END if after in _begins() else after

    def _message(self, token: Token, last: Token, accepted: set[str]) -> str:
        names = terminals()
        if str(token) in COMPARISONS and {"AND", "COLON"} <= accepted:
            return "comparisons are not chained: a < b and b < c"
        if token.type in ("COLON", "AND", "OR", "RPAR") and names["<"] in accepted:
            return BARE
        if token.type == "LSQB":
            return f"only {', '.join(SERIES)} have a past that can be looked at"
        if accepted == CONSTANT:
            if str(last) == "[":
                return looks_back(str(self._tokens[self._at - 2]))
            return "how many ticks a window has is a number or a let: max(mid, 20)"
        if accepted == {"MINUS", "NUMBER"}:
            return "a let is a number"
        if token.type == END:
            return "the statement ends too soon"
        return f"{_shown(token)} is not what comes here"


def looks_back(series: str) -> str:
    """What there is to say of `mid[-1]`, `mid[0]` and `mid[tick - 1]`."""
    return f"looks go back, by a number or a let: {series}[1] is what {series} was a tick ago"


def _begins() -> frozenset[str]:
    return frozenset(terminals()[word] for word in STATEMENTS)


def _after(state: State, name: str) -> set[str]:
    """What may come after one more token. The state stays as it is: a fork without callbacks is asked, because these
    work on lists that forks share."""
    fork = state.copy(deepcopy_values=False)
    fork.parser_state.parse_conf = copy(fork.parser_state.parse_conf)
    fork.parser_state.parse_conf.callbacks = {}
    fork.feed_token(Token(name, ""))
    accepted: set[str] = fork.accepts()
    return accepted


def _span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _as(token: Token, word: str) -> Token:
    return Token(terminals()[word], word, start_pos=token.start_pos, end_pos=token.end_pos)


def _shown(token: Token) -> str:
    return "the end of the statement" if token.type == END else shown(str(token))


def readable(accepted: set[str]) -> tuple[str, ...]:
    """What may come, for a person: groups by their names, the rest by their texts."""
    texts = {text for text, name in terminals().items() if name in accepted}
    words: list[str] = []
    for members, named in _GROUPS:
        if texts >= set(members):
            texts -= set(members)
            words += named
    words += [_NAMED[name] for name in _NAMED if name in accepted]
    order = list(terminals())
    return tuple(dict.fromkeys([*sorted(texts, key=order.index), *words]))
