"""Passwords that are guessed first: common words, runs of keys or letters, repetitions, and what the owner is called.

A guesser tries these whole, in capitals, with signs for letters, and with digits and signs around them; so does this. A
text that few such pieces make up is guessable. It is no measure of a password's strength: what passes here may still be
weak, what doesn't is among the first that are tried.
"""

import re
from collections.abc import Iterable
from typing import Final

PIECES: Final = 3
"""A text of so many pieces, or fewer, is guessable."""
LONG: Final = 64
"""Of a longer text it is looked alone whether it repeats one piece: it costs no more, however long it is."""
RUN: Final = 3
"""Characters that follow one another on a keyboard, or in an alphabet, and are one piece."""
_ROWS: Final = (
    "abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm",
    "azertyuiop", "qsdfghjklm", "wxcvbn", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0", "qazwsxedcrfvtgbyhnujmikolp", "zaqxswcdevfrbgtnhymjukilop", "zaq12wsxcde34rfv",
    "!@#$%^&*()", "qweasdzxc",
)  # fmt: skip
_RUNS: Final = (*_ROWS, *(row[::-1] for row in _ROWS))
_COMMON: Final = """
password passwort passwd pass word secret login logon admin administrator root user guest test tester demo default
welcome hello letmein changeme please access master dragon monkey shadow sunshine princess football baseball
basketball soccer hockey superman batman spiderman pokemon starwars michael jordan jennifer jessica daniel andrew
joshua matthew charlie thomas robert george william ashley michelle nicole anthony alexander trustno trustnoone
whatever freedom nothing computer internet server network google facebook twitter youtube apple samsung microsoft
windows linux ubuntu summer winter spring autumn january february march april monday tuesday friday sunday love
iloveyou loveyou lovely forever family mother father sister brother baby angel flower butterfly chocolate cookie
cheese pepper ginger banana orange purple yellow silver golden diamond mustang ferrari porsche corvette harley
killer hunter ranger soldier ninja samurai matrix merlin wizard phoenix tiger eagle falcon panther jaguar
liverpool arsenal chelsea barcelona madrid london paris berlin newyork america england germany france qwerty qwertz
azerty asdf zxcv abc abcd correct horse battery staple correcthorsebatterystaple unbelievable turret dealer agent
owner desk wire broker market trade trader my the is you me i am
"""
_WORDS: Final = frozenset(_COMMON.split())
_SIGNS: Final = str.maketrans("013457@$!", "oleastasi")
_ELSE: Final = re.compile(r"[ -@\[-`{-~]{1,4}")
"""Digits and signs that somebody puts around a word."""
_PARTS: Final = re.compile(r"[^\W\d_]{3,}")


def is_guessable(password: str, email: str = "") -> bool:
    """Whether a password is among those that are tried first. `email`: the owner's, whose parts are no secret."""
    text = password.casefold()
    if len(text) > LONG:
        return text in (text + text)[1:-1]
    spelled = (text, text.translate(_SIGNS), text.replace("1", "i").translate(_SIGNS))
    local = email.casefold().partition("@")[0]
    own = (email.casefold(), local, re.sub(r"[\W\d_]", "", local))
    words = _WORDS.union(_PARTS.findall(email.casefold()), own)
    best = [0, *[PIECES + 1] * len(text)]
    for start in range(len(text)):
        if best[start] < PIECES:
            for end in _ends(text, spelled, start, words):
                best[end] = min(best[end], best[start] + 1)
    return best[-1] <= PIECES


def _ends(text: str, spelled: Iterable[str], start: int, words: frozenset[str]) -> set[int]:
    """Where a piece that begins at `start` may end."""
    ends = {
        end
        for form in spelled
        for end in range(start + 1, min(len(text), start + 32) + 1)
        if form[start:end] in words
    }
    for row in _RUNS:
        end = start + RUN
        while end <= len(text) and text[start:end] in row:
            ends.add(end)
            end += 1
    repeated = re.compile(r"(.{1,12}?)\1+").match(text, start)
    if repeated is not None:
        ends.update(range(start + 2 * len(repeated[1]), repeated.end() + 1, len(repeated[1])))
    around = _ELSE.match(text, start)
    if around is not None:
        ends.update(range(start + 1, around.end() + 1))
    return ends
