"""Follow statements whose signature was found good: who polls again and again pays for one verification.

What was read and verified stays true of the same bytes, and the keys that it may name (`wire`) change at a start alone.
What else may change is looked at each time (proof.py): its time, its desk, and whether its client guesses too much.
"""

import hashlib
from typing import Final

from broker.actors.latest import Latest
from broker.wire.statement import Statement

MOST: Final = 4096
"""Statements remembered, about 1.5 KiB each; then the one that was asked for longest ago is forgotten."""
_Key = tuple[str, bytes]


class Follows:
    """See the module. One for a broker."""

    def __init__(self, most: int = MOST) -> None:
        self._found: Latest[_Key, Statement] = Latest(most)

    def __len__(self) -> int:
        return len(self._found)

    def find(self, text: bytes, sig: str) -> Statement | None:
        """The statement that exactly this text and this sig are, if it is remembered; its time may be over."""
        key = _key(text, sig)
        statement = self._found.get(key)
        if statement is not None:
            self._found[key] = statement  # asked for now: others make room first
        return statement

    def remember(self, text: bytes, sig: str, statement: Statement) -> None:
        """`statement` was read from `text`, and `sig` is its key's signature."""
        self._found[_key(text, sig)] = statement


def _key(text: bytes, sig: str) -> _Key:
    """By digest, so that a text with much white space is not kept."""
    return sig, hashlib.sha256(text).digest()
