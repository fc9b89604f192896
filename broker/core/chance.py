"""Chance that neither side can grind: commit, then draw, then reveal (docs/reference/arena.md, Chance).

1. The commit binds seed and salt, for one agent and one number of its sessions, before the agent names its client seed.
2. A draw is HMAC-SHA256 by the seed over what the game is, the client seed and a counter; rejection makes it fair.
3. Whoever is shown seed and salt afterwards can do both again.
"""

import hashlib
import hmac
from collections.abc import MutableSequence
from typing import Any, Final

import msgspec

SECRET_BYTES: Final = 32
"""Of a seed, and of a salt."""
_COMMIT: Final = b"turret/arena/commit/1\0"
_DRAW: Final = b"turret/arena/draw/1\0"
_WORD: Final = 1 << 64


class Secret(msgspec.Struct, frozen=True):
    """What a session's chance comes of: seed and salt, 64 hex characters each."""

    seed: str
    salt: str


def commit_of(secret: Secret, agent_id: str, number: int) -> str:
    """The commit, hex: sha256 over a tag, seed, salt, the agent's id, and the number of its session in 8 bytes."""
    parts = (_COMMIT, bytes.fromhex(secret.seed), bytes.fromhex(secret.salt), agent_id.encode())
    return hashlib.sha256(b"".join(parts) + number.to_bytes(8)).hexdigest()


def domain_of(game: str, version: int) -> bytes:
    """What stands before the client seed in each draw of a game."""
    return _DRAW + f"{game}/{version}".encode() + b"\0"


class Draws:
    """Draws of one session, one after the other; the same again for the same seed, domain and client seed."""

    def __init__(self, seed: str, domain: bytes, client_seed: str) -> None:
        self._key = bytes.fromhex(seed)
        self._message = domain + client_seed.encode()
        self.count = 0
        """How many words were drawn."""

    def word(self) -> int:
        """The next 64 bits: the first eight bytes, big-endian, of the HMAC over domain, client seed and counter."""
        counter = self.count.to_bytes(8)
        self.count += 1
        return int.from_bytes(hmac.digest(self._key, self._message + counter, "sha256")[:8])

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, each as likely: a word of the incomplete last span is drawn again."""
        if not 0 < n <= _WORD:
            raise ValueError("a draw is below a positive number of at most 64 bits")
        end = _WORD - _WORD % n
        while (word := self.word()) >= end:
            pass
        return word % n

    def between(self, least: int, most: int) -> int:
        """A whole number from `least` to `most`, both included."""
        return least + self.below(most - least + 1)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle in place (Fisher and Yates, from the end): each order as likely."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
