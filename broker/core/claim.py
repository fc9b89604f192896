"""Claim codes: what an agent that registered itself hands to its owner (network.md, Identity, Sign-in).

1. 20 characters of Crockford's base 32, in groups of five. The first four only say where to look; the other sixteen
   are the secret, 80 bits.
2. A code is read as people write it: small letters, O for 0, I or L for 1, with or without its lines.
3. Kept is the sha256 of its one form, never the code.
"""

import re
from typing import Final

import msgspec

from broker.core.secret import digest

ENTROPY: Final = 13
"""Bytes of chance for one code."""
SIZE: Final = 20
SELECTOR: Final = 4
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_FORM: Final = re.compile(f"[{_CROCKFORD}]{{{SIZE}}}")
_READ: Final = str.maketrans("OIL", "011", "- \t")


class ClaimCode(msgspec.Struct, frozen=True):
    """A claim code that waits: where it is looked for, and sha256 of its one form, hex."""

    selector: str
    digest: str


def new_code(entropy: bytes) -> str:
    """The code of so much chance, as it is shown. Raises ValueError for another size."""
    if len(entropy) != ENTROPY:
        raise ValueError(f"a claim code takes {ENTROPY} bytes of chance")
    value = int.from_bytes(entropy)
    text = "".join(_CROCKFORD[value >> 5 * place & 31] for place in range(SIZE))
    return "-".join(text[start : start + 5] for start in range(0, SIZE, 5))


def read_code(text: str) -> ClaimCode | None:
    """What is kept of a code that somebody typed; None for what can't be one."""
    code = text.upper().translate(_READ)
    if _FORM.fullmatch(code) is None:
        return None
    return ClaimCode(code[:SELECTOR], digest(code))
