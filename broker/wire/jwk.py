"""Ed25519 keys as JSON Web Keys (RFC 8037), and their thumbprints (RFC 7638): how the network names a key.

1. One form: 32 bytes in base64url without padding; every other spelling of them is refused.
2. A key that signs nothing safely (small order, not on the curve) is no key; a private one is never taken.
"""

import hashlib
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from broker.wire import base64url
from broker.wire.ids import Pk
from broker.wire.keys import is_acceptable_pk
from broker.wire.refusals import Refusal, refuse

KID: Final = "[A-Za-z0-9_-]{43}"


class Jwk(msgspec.Struct, frozen=True, omit_defaults=True):
    """A public Ed25519 key as a JWK: kty OKP, crv Ed25519, x; other members are passed over, as RFC 7517 says."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: Annotated[str, Meta(pattern=rf"^{KID}$(?!\n)", description="the public key, base64url")]
    d: Annotated[str | None, Meta(description="never send it: it is the private key")] = None


def read_jwk(jwk: Jwk, path: str) -> Pk | Refusal:
    """The public key, hex; bad_request with `path` for what is no key, or is a private one."""
    if jwk.d is not None:
        said = (
            "this is a private key, and known to others now: make a new one, and send its public half alone"
        )
        return refuse("bad_request", said, path=f"{path}.d")
    pk = base64url.decode(jwk.x).hex()
    if jwk_of(pk).x != jwk.x or not is_acceptable_pk(pk):
        return refuse("bad_request", "x is no Ed25519 public key", path=f"{path}.x")
    return Pk(pk)


def jwk_of(pk: str) -> Jwk:
    """A public key (64 hex characters) as a JWK."""
    return Jwk("OKP", "Ed25519", base64url.encode(bytes.fromhex(pk)))


def thumbprint(pk: str) -> str:
    """The key's name (kid): sha256 of its required members in order, base64url."""
    text = f'{{"crv":"Ed25519","kty":"OKP","x":"{jwk_of(pk).x}"}}'
    return base64url.encode(hashlib.sha256(text.encode()).digest())
