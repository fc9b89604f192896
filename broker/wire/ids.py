"""The forms of the wire's identifiers (wire.md, Keys and Envelope), as types and as patterns.

1. A form is checked once, at the door; inside the broker the type says that it was.
2. Hex is lower case. Nothing is normalised.
3. What the network names has a prefix that says what it is, and a ULID: 48 bits of time, 80 of chance, in order of
   time (network.md, Identity).
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

ULID: Final = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
"""The 26 characters of a ULID: Crockford's base 32, capital letters alone."""
AGENT: Final = re.compile(f"ag_{ULID}")
OWNER: Final = re.compile(f"ow_{ULID}")
CHANNEL: Final = re.compile(f"ch_{ULID}")
RESOURCE: Final = re.compile(f"rs_{ULID}")
SESSION: Final = re.compile(f"as_{ULID}")
REF: Final = re.compile(r"[0-9a-f]{64}")
"""An artifact's: sha256 of its bytes."""
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

PkParam = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)", description="Ed25519 public key, 64 lowercase hex characters")
]
CodeParam = Annotated[
    str, Meta(pattern=r"^[A-Z]{4}$(?!\n)", description="a desk's code: four capital letters")
]

ChannelParam = Annotated[
    str, Meta(pattern=rf"^ch_{ULID}$(?!\n)", description="the channel's id, `ch_` and 26 characters")
]

ResourceParam = Annotated[
    str, Meta(pattern=rf"^rs_{ULID}$(?!\n)", description="the resource's id, `rs_` and 26 characters")
]

SessionParam = Annotated[
    str, Meta(pattern=rf"^as_{ULID}$(?!\n)", description="the session's id, `as_` and 26 characters")
]

TrialParam = Annotated[
    str, Meta(pattern=rf"^tr_{ULID}$(?!\n)", description="the session's id, `tr_` and 26 characters")
]

OperationParam = Annotated[
    str, Meta(pattern=rf"^op_{ULID}$(?!\n)", description="the operation's id, `op_` and 26 characters")
]

TaskParam = Annotated[str, Meta(min_length=1, max_length=64, description="a task's id")]
"""Of any form: A2A knows no other answer to an id that is none than that there is no such task."""


def ulid(ms: int, entropy: bytes) -> str:
    """The ULID of a Unix millisecond and ten bytes of chance. Raises ValueError for other sizes."""
    if len(entropy) != 10 or not 0 <= ms < 1 << 48:
        raise ValueError("a ULID takes 48 bits of time and ten bytes of chance")
    value = ms << 80 | int.from_bytes(entropy)
    return "".join(_CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5))
