"""Ed25519 (RFC 8032) in libsodium's strict profile (wire.md, Canonical form).

1. Small-order keys and R, non-canonical encodings and S ≥ L are refused: two verifiers must never differ.
2. `verify` is a question: hostile input is False, never an exception.
3. Nothing here touches a file, and no text of a key's ever shows its seed.
"""

import re
from typing import Final

from nacl.bindings import (
    crypto_core_ed25519_is_valid_point,
    crypto_sign,
    crypto_sign_open,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import CryptoError
from nacl.utils import random as entropy

from broker.wire.ids import PK, Pk, Sig

_SEED: Final = re.compile(r"[0-9a-f]{64}")


def verify(pk: str, message: bytes, sig: str) -> bool:
    """Whether `sig` (128 lowercase hex) is the signature by `pk` (64 lowercase hex) over `message`."""
    try:
        signature, key = bytes.fromhex(sig), bytes.fromhex(pk)
        if len(signature) != 64 or len(key) != 32 or signature.hex() != sig or key.hex() != pk:
            return False  # capitals and white space are hex to Python, and not to the wire
        crypto_sign_open(signature + message, key)
    except (CryptoError, ValueError):
        return False
    return True


def is_acceptable_pk(pk: str) -> bool:
    """Whether `pk` may become a desk's key: a canonical point of the prime-order group, as every honest key is."""
    return PK.fullmatch(pk) is not None and crypto_core_ed25519_is_valid_point(bytes.fromhex(pk))


class SigningKey:
    """A party's key pair. Knows its seed; shows only `pk`."""

    __slots__ = ("_secret", "pk", "seed")

    def __init__(self, seed: bytes) -> None:
        """From 32 bytes of seed. Raises ValueError for any other length."""
        if len(seed) != 32:
            raise ValueError("a seed has 32 bytes")
        public, self._secret = crypto_sign_seed_keypair(seed)
        self.pk = Pk(public.hex())
        """64 lowercase hex characters."""
        self.seed = seed.hex()
        """64 lowercase hex characters. A secret: for key files alone."""

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new key from the system's entropy."""
        return cls(entropy(32))

    @classmethod
    def from_seed(cls, seed: str) -> "SigningKey":
        """The key of a seed of 64 lowercase hex characters. Raises ValueError for anything else."""
        if _SEED.fullmatch(seed) is None:
            raise ValueError("a seed is 64 lowercase hex characters")
        return cls(bytes.fromhex(seed))

    def sign(self, message: bytes) -> Sig:
        """The signature over `message`: 128 lowercase hex characters."""
        return Sig(crypto_sign(message, self._secret)[:64].hex())

    def __repr__(self) -> str:
        return f"SigningKey(pk={self.pk})"
