"""A stream's epoch: made from the store's secret and the stream's name, so that nothing is written to ask for it.

1. The same store gives a stream the same epoch, before and after its first event.
2. Without the secret nobody can tell an epoch, or from one stream's another's.
3. A restore makes a new secret: every cursor given before then says that it is of another time.
"""

import hmac
import secrets
from typing import Final

SECRET_BYTES: Final = 32
EPOCH_BYTES: Final = 8
"""Of the digest; an epoch tells times apart and guards nothing."""


def new_secret() -> bytes:
    """A secret for a new or a restored store."""
    return secrets.token_bytes(SECRET_BYTES)


def epoch_of(secret: bytes, stream: str) -> str:
    """16 lowercase hex characters."""
    return hmac.digest(secret, stream.encode(), "sha256")[:EPOCH_BYTES].hex()
