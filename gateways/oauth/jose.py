"""Signed tokens (JWS, JWT) read strictly and by joserfc: what a token may be before its key is asked (pure).

1. The algorithm is one of those that the reader names, all asymmetric, and fits the key; what the header says of keys
   (jwk, jku, x5c …) is never followed. `none` and secrets shared are nobody's algorithm here.
2. One text, one meaning: canonical base64url, and JSON in which no member stands twice.
3. A bad token is None, whatever is bad about it. No message holds any of it.

Source: RFC 7515, 7517, 7519, 8037; RFC 8725 3.1 to 3.12 (best practices); RFC 9864 (Ed25519 by its own name).
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, OKPKey
from joserfc.jws import JWSRegistry
from joserfc.registry import Header

from broker.wire import base64url, canonical
from broker.wire.jwk import jwk_of
from broker.wire.refusals import Refusal

ED25519: Final = ("EdDSA", "Ed25519")
"""Ed25519 by its old name, which clients know, and by its new one."""
ASYMMETRIC: Final = (
    *ED25519,
    "ES256",
    "ES384",
    "ES512",
    "PS256",
    "PS384",
    "PS512",
    "RS256",
    "RS384",
    "RS512",
)
"""What an outside issuer may sign with."""
LONGEST: Final = 8192
"""Characters of a token."""
RSA_BITS: Final = range(2048, 8193)
"""Of a modulus: less is weak (RFC 7518 3.3), more only costs."""
_COMPACT: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


class Token(msgspec.Struct, frozen=True):
    """A token's header and claims as it says them itself: not verified yet."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]


class _Registry(JWSRegistry):
    """joserfc's, where EdDSA is no warning: its successor's name is still unknown to most clients."""

    def get_alg(self, name: str) -> Any:
        if name not in (self.allowed or ()):
            raise JoseError
        return self.algorithms[name]


_SIGNING: Final = _Registry(algorithms=ED25519)


def read(text: str) -> Token | None:
    """Header and claims of a compact token; None for what is none, or could be read in two ways."""
    found = _COMPACT.fullmatch(text) if len(text) <= LONGEST else None
    parts = [_decoded(each) for each in found.groups()] if found is not None else []
    if len(parts) != 3 or None in parts:
        return None
    header, claims = (_object(each or b"") for each in parts[:2])
    return None if header is None or claims is None else Token(text, header, claims)


def verified(
    token: Token, keys: Iterable[Key], algorithms: Collection[str], types: Collection[str] = ()
) -> Key | None:
    """The key among `keys` that signed it, with one of `algorithms`; None where none did.

    `types`: what its `typ` may be, compared as RFC 7515 4.1.9 says; none given: anything. A `kid` in the header picks
    the keys of that id, and no others are tried.
    """
    kid, kind = token.header.get("kid"), str(token.header.get("typ", "")).lower().removeprefix("application/")
    if types and kind not in types:
        return None
    if "crit" in token.header or "b64" in token.header:  # extensions, of which we know none (RFC 7515 4.1.11)
        return None
    registry = _Registry(algorithms=algorithms, strict_check_header=False)
    for key in keys:
        if kid is not None and kid not in (key.kid, key.thumbprint()):
            continue
        try:
            jws.deserialize_compact(token.text, key, registry=registry)
        except (JoseError, ValueError, TypeError):
            continue
        return key
    return None


def signed(header: Header, claims: dict[str, Any], key: OKPKey) -> str:
    """A compact token by an Ed25519 key."""
    return jws.serialize_compact(header, msgspec.json.encode(claims), key, registry=_SIGNING)


def public_key(pk: str) -> OKPKey:
    """The JWK of an Ed25519 public key (64 hex characters)."""
    return OKPKey.import_key(msgspec.to_builtins(jwk_of(pk)))


def read_keys(document: Any) -> list[Key]:
    """The usable public keys of a JWK set; what is not understood is passed over (RFC 7517 5), and so are secrets."""
    rows = document.get("keys") if isinstance(document, dict) else None
    keys: list[Key] = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or row.get("kty") not in ("OKP", "EC", "RSA") or "d" in row:
            continue
        if row.get("use", "sig") != "sig" or "verify" not in row.get("key_ops", ["verify"]):
            continue
        if row["kty"] == "RSA" and not _is_strong(row):
            continue
        try:
            key = JWKRegistry.import_key(row)
            key.thumbprint()
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        keys.append(key)
    return keys


def _is_strong(row: dict[str, Any]) -> bool:
    """Whether an RSA key's modulus and exponent have sizes that are in use."""
    modulus, exponent = (_decoded(str(row.get(name, ""))) for name in ("n", "e"))
    return int.from_bytes(modulus or b"").bit_length() in RSA_BITS and len(exponent or b"") <= 4


def texts(value: Any) -> frozenset[str]:
    """A claim that is one text or a list of them."""
    many = value if isinstance(value, list) else [value]
    return frozenset(each for each in many if isinstance(each, str))


def is_time(value: Any) -> bool:
    """Whether a claim is a NumericDate (RFC 7519 2)."""
    return type(value) in (int, float)


def _decoded(segment: str) -> bytes | None:
    """Base64url without padding; other spellings of the same bytes are the library's to refuse."""
    try:
        return base64url.decode(segment)
    except ValueError:
        return None


def _object(data: bytes) -> dict[str, Any] | None:
    value = canonical.read(data)
    return value if isinstance(value, dict) and not isinstance(value, Refusal) else None
