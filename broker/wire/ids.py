"""The forms of the wire's identifiers (wire.md, Keys and Envelope), as types and as patterns.

1. A form is checked once, at the door; inside the broker the type says that it was.
2. Hex is lower case. Nothing is normalised.
"""

import re
from typing import Annotated, Final, NewType

from msgspec import Meta

Pk = NewType("Pk", str)
"""An Ed25519 public key: 64 lowercase hex characters."""
Sig = NewType("Sig", str)
"""An Ed25519 signature: 128 lowercase hex characters."""
ConvId = NewType("ConvId", str)
"""A conversation's id: 16 lowercase hex characters, chosen at random by the caller."""
DeskCode = NewType("DeskCode", str)
"""A desk's code: four capital letters."""

PK: Final = re.compile(r"[0-9a-f]{64}")
SIG: Final = re.compile(r"[0-9a-f]{128}")
CONV: Final = re.compile(r"[0-9a-f]{16}")
CODE: Final = re.compile(r"[A-Z]{4}")
TYPE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,31}")
NONCE: Final = re.compile(r"[0-9a-f]{32}")
MAX_SAFE: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps (RFC 7493)."""

PkParam = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)", description="Ed25519 public key, 64 lowercase hex characters")
]
CodeParam = Annotated[
    str, Meta(pattern=r"^[A-Z]{4}$(?!\n)", description="a desk's code: four capital letters")
]
