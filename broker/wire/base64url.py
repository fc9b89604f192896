"""Bytes as text for URLs and JSON: base64url without padding (RFC 4648 5; RFC 7515 2)."""

import base64


def encode(data: bytes) -> str:
    """The one spelling of these bytes."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes of a text; padding may be left out. Raises ValueError where it can't be right.

    Characters that are none of base64url's are passed over, and other spellings of the same bytes are taken: whoever
    minds looks at the text before, or compares `encode` of the bytes with it.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
