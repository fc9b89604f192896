"""Secrets inside remembered answers: a claim code or a credential is shown once, and again to the identical request
alone; what is stored of it is sealed with the wire's own key, which no backup holds by default.

A tool that makes a secret gives its answer sealed (`seal`); what leaves the registry is opened (`opened`), with an
older key of the wire too. Where the wire has that key no more the member is left out: make a new secret.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from broker.core.pushheaders import NAME, TEMPLATE
from broker.tools.context import Services
from broker.wire.keyring import Keyring
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal

_PURPOSE: Final = b"turret: secrets in remembered answers\0"
_CHANCE: Final = b"turret: where chance comes from\0"
_DIGEST: Final = b"turret: digests of requests that hold secrets\0"
HIDDEN: Final = {"writeOnly": True}
"""In the schema of a param that is a secret: it is taken, and shown nowhere (JSON Schema, 9.4 of its validation)."""
HeaderTemplates = dict[
    Annotated[str, Meta(pattern=rf"^{NAME}$(?!\n)")],
    Annotated[str, Meta(pattern=rf"^{TEMPLATE}$(?!\n)", extra_json_schema=HIDDEN)],
]
"""A param: headers by name, whose values may name secrets, or be some themselves (broker.core.pushheaders)."""


def seal(services: Services, secret: str) -> str:
    """The secret as it may be stored: hex."""
    return seal_with(services.keyring, services.entropy, secret)


def seal_with(keyring: Keyring, entropy: Callable[[int], bytes], secret: str) -> str:
    """The same, by its parts."""
    sealed = _box(keyring.current).encrypt(secret.encode(), entropy(SecretBox.NONCE_SIZE))
    return bytes(sealed).hex()


def opened(services: Services, answer: Any, members: Sequence[str]) -> Any:
    """The answer, a mapping, with these members opened. A Refusal stays as it is."""
    if isinstance(answer, Refusal):
        return answer
    shown: dict[str, Any] = msgspec.to_builtins(answer)
    for name in members:
        secret = unseal(services.keyring, shown[name]) if name in shown else None
        if secret is None:
            shown.pop(name, None)
        else:
            shown[name] = secret
    return shown


def unseal(keyring: Keyring, sealed: str) -> str | None:
    """The secret that `seal` was given; None where the wire has that key no more."""
    for key in (keyring.get(row["pk"]) for row in reversed(keyring.listing())):
        try:
            return bytes(_box(key).decrypt(bytes.fromhex(sealed))).decode()
        except (CryptoError, ValueError):
            continue
    return None


def hidden(services: Services, digest: bytes) -> bytes:
    """What is kept of a request's digest where its arguments hold a secret: who reads the store can't try values until
    one fits. After a rotation of the wire's key it is another one, and the request a new one (IDEMPOTENCY_MISMATCH)."""
    key = hashlib.sha256(_DIGEST + bytes.fromhex(services.keyring.current.seed)).digest()
    return hmac.digest(key, digest, "sha256")


def root_of(keyring: Keyring) -> bytes:
    """A secret of the broker's own that chance comes of (broker.core.chance); another one when the wire's key is."""
    return hashlib.sha256(_CHANCE + bytes.fromhex(keyring.current.seed)).digest()


def _box(key: SigningKey) -> SecretBox:
    return SecretBox(hashlib.sha256(_PURPOSE + bytes.fromhex(key.seed)).digest())
