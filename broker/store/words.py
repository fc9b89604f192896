"""What full text search takes for a word, the same in every adapter (port.py, law 8).

1. Words are folded: compatibility forms, case and the accents of Latin, Greek and Cyrillic letters make no difference.
2. A word is a run of letters, digits and their marks. Of scripts that write no spaces between words, and of emoji,
   each sign is a word by itself.
3. What is made here holds no sign that any query language knows.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

LETTERS: Final = 64
"""A word is cut after so many signs, where it is kept as where it is looked for."""
MOST: Final = 32
"""Words of a query that count: the first ones, and the last one."""
_ASCII: Final = re.compile("[a-z0-9]+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff]")
_ALONE: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana, Han."""


def words(text: str) -> list[str]:
    """The words of a text, in its order."""
    folded = _fold(text)
    found = _ASCII.findall(folded) if folded.isascii() else _split(folded)
    return [word[:LETTERS] for word in found]


def query(text: str) -> tuple[str, ...]:
    """The words that are looked for, each once; the last one may be the beginning of a word."""
    found = words(text)
    return tuple(dict.fromkeys([*found[: MOST - 1], *found[-1:]][::-1]))[::-1]


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", spread))


def _split(text: str) -> Iterator[str]:
    word = ""
    alone = False
    for sign in text:
        category = unicodedata.category(sign)
        if category[0] == "M" and word:
            word += sign
            continue
        by_itself = category == "So" or _ALONE.match(sign) is not None
        is_part = by_itself or category[0] in "LN"
        if word and (alone or by_itself or not is_part):
            yield word
            word = ""
        if is_part:
            word += sign
            alone = by_itself
    if word:
        yield word
