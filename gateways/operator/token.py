"""The operators' token: one line of text that nobody guesses, of which only a digest is kept.

1. It comes from a file, else from the environment, and never from a command line, which every program here can read.
2. It has at least 128 bits, judged by its length and by the letters that it is made of.
3. It is compared in constant time, also of its length, and no message holds it.

Source: RFC 6750 2.1 (the characters of a bearer token); network.md, Reports, audit, operators.
"""

import hashlib
import hmac
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateways.configure import OPERATOR

LEAST_BITS: Final = 128
LONGEST: Final = 1024
"""Characters; a head has room for more."""
LEAST_LETTERS: Final = 8
"""Different characters: a good token that has fewer comes once in tens of millions."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_ALPHABETS: Final = (
    (re.compile(r"[0-9]+"), 10),
    (re.compile(r"[0-9a-f]+|[0-9A-F]+"), 16),
    (re.compile(r"[0-9a-z]+|[0-9A-Z]+"), 36),
    (re.compile(r".*"), 64),
)
"""What a token may be made of, and how many letters each has; the first that fits counts."""


class WeakToken(ValueError):
    """A token that can't serve; the message is one line for a person, without the token."""


class OperatorToken:
    """See the module. Raises WeakToken for a text that can't serve; blanks around it do not count."""

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not _TOKEN.fullmatch(text) or len(text) > LONGEST:
            raise WeakToken(
                f"expected one line of at most {LONGEST} letters, digits and -._~+/ (turret operator-token makes one)"
            )
        if bits_of(text) < LEAST_BITS or len(set(text)) < LEAST_LETTERS:
            raise WeakToken(
                f"the token is too easy to guess: it needs {LEAST_BITS} bits of chance, such as 22 random characters "
                "(turret operator-token makes one)"
            )
        self._digest = _digest(text)

    def matches(self, text: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(_digest(text), self._digest)


def find_token(file: str | None, environment: Mapping[str, str]) -> OperatorToken | None:
    """The token in this file; else that of TURRET_OPERATOR_TOKEN; None where neither is named. Raises WeakToken, which
    names where the token came from, and OSError."""
    if file is not None:
        with Path(file).open("rb") as opened:
            source, text = file, opened.read(LONGEST + 2).decode("ascii", "replace")
    elif (given := environment.get(OPERATOR)) is not None:
        source, text = OPERATOR, given
    else:
        return None
    try:
        return OperatorToken(text)
    except WeakToken as weak:
        raise WeakToken(f"{source}: {weak}") from None


def bits_of(text: str) -> float:
    """How many bits a random text of this length and these letters has."""
    letters = next(size for form, size in _ALPHABETS if form.fullmatch(text.rstrip("=")))
    return len(text.rstrip("=")) * math.log2(letters)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
