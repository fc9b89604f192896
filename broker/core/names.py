"""Names of agents: which are taken, and when two are the same to a reader (network.md, Identity; Unicode TS 39).

1. A name is kept as it was written. What it looks like is what is claimed, so that no two agents look the same.
2. Letters of one script of everyday use (with Han, kana, Hangul or Bopomofo: Latin too), digits of one kind, spaces,
   everyday punctuation, and wide symbols such as emoji. The rest is refused, and said so.
3. Looks are compared twice: as written, and in small letters. AGENTI is agentI's name, and looks like AGENTl.
"""

import re
import unicodedata
from typing import Final

from broker.core.confusables import PROTOTYPES
from broker.wire.refusals import Refusal, refuse

MAX_NAME: Final = 64
MAX_MARKS: Final = 4
"""Marks on one letter (TS 39, 5.4): a fifth is no language's."""

_SCRIPTS: Final = re.compile(
    "LATIN|CYRILLIC|GREEK|ARMENIAN|HEBREW|ARABIC|THAANA|HIRAGANA|KATAKANA|HANGUL|BOPOMOFO|CJK|DEVANAGARI|BENGALI|"
    "GUJARATI|GURMUKHI|ORIYA|TAMIL|TELUGU|KANNADA|MALAYALAM|SINHALA|THAI|LAO|TIBETAN|MYANMAR|GEORGIAN|ETHIOPIC|KHMER"
)
"""A character's script is the first word of its Unicode name; those recommended for identifiers (UAX 31, table 5)."""
_OTHERWISE: Final = {"IDEOGRAPHIC": "CJK", "KATAKANA-HIRAGANA": "KATAKANA"}
"""Signs of a script whose name begins otherwise."""
_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
)
"""Scripts that one language writes with (TS 39, 5.2: highly restrictive)."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5")
"""Printable by their category, and yet nothing to be seen."""
_MARKS: Final = "M" * (MAX_MARKS + 1)
_TYPOGRAPHIC: Final = re.compile("[\u00a1-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e\u3001-\u301c]")
"""Punctuation beyond ASCII that a name may have."""


def looks_of(name: str) -> tuple[str, ...]:
    """What a name is claimed under: one or two texts. Two names with one in common look the same."""
    folded = unicodedata.normalize("NFKC", name)
    small = unicodedata.normalize("NFKC", folded.casefold())
    return tuple(sorted({_skeleton(folded), _skeleton(small)}))


def judge_name(name: str) -> Refusal | None:
    """Why a name is not taken: bad_request with the path `name`."""
    fault = _fault(name)
    return None if fault is None else refuse("bad_request", f"a name {fault}", path="name")


def _fault(name: str) -> str | None:
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        return f"has 1 to {MAX_NAME} printable characters"
    if name != name.strip(" ") or "  " in name:
        return "has single spaces, between its words alone"
    folded = unicodedata.normalize("NFKC", name)
    if not all(map(_is_taken, folded)):
        return "has letters of an everyday script, digits, spaces, punctuation or emoji"
    spread = "".join(unicodedata.category(each)[0] for each in unicodedata.normalize("NFD", folded))
    if spread.startswith("M") or _MARKS in spread:
        return f"has at most {MAX_MARKS} marks on a letter"
    if not set(spread) & set("LN") and all(each.isascii() or _TYPOGRAPHIC.match(each) for each in folded):
        return "has a letter, a digit or an emoji"
    if not _is_one_script(folded):
        return "has the letters and the digits of one script"
    return None


def _skeleton(text: str) -> str:
    """TS 39, 4: what the text looks like, not for showing."""
    spread = unicodedata.normalize("NFD", text).translate(PROTOTYPES)
    return unicodedata.normalize("NFD", spread)


def _script(character: str) -> str:
    """COMBINING for marks of any script, "" for a script that names are not written in."""
    first = unicodedata.name(character, "").partition(" ")[0]
    script = _OTHERWISE.get(first, first)
    return script if script == "COMBINING" or _SCRIPTS.fullmatch(script) else ""


def _is_taken(character: str) -> bool:
    if character.isascii():
        return True
    category = unicodedata.category(character)
    if category[0] in "LM":
        return character not in _BLANK and _script(character) != ""
    if category == "Nd":
        return True
    wide = category in ("So", "Sk") and unicodedata.east_asian_width(character) == "W"
    return wide or _TYPOGRAPHIC.match(character) is not None


def _is_one_script(text: str) -> bool:
    scripts = {_script(each) for each in text if unicodedata.category(each)[0] in "LM"} - {"COMBINING"}
    zeros = {ord(each) - unicodedata.decimal(each) for each in text if unicodedata.category(each) == "Nd"}
    return len(zeros) <= 1 and (len(scripts) <= 1 or any(scripts <= each for each in _TOGETHER))
