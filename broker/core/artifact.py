"""Artifacts: what is over, as canonical JSON under the hash of its bytes (docs/reference/arena.md, Artifacts)."""

import hashlib
from typing import Final

PREFIX: Final = "kestrel://artifact/"
KIND: Final = "artifact"
"""What an artifact is stored as: document `ref` of this kind, its bytes being the document."""

MAX_BYTES: Final = 4 * 1024 * 1024
"""The largest artifact that is given out; the longest session of a game that is played here has far less."""


def ref_of(content: bytes) -> str:
    """The name of an artifact: sha256 of its bytes, hex."""
    return hashlib.sha256(content).hexdigest()


def address(ref: str) -> str:
    """Its address as a resource."""
    return PREFIX + ref
