"""An agent's own proof at the token endpoint: a client assertion, signed with its Ed25519 key (private_key_jwt).

1. It is for one audience, good for a minute, and never made twice: its jti is random.
2. What it needs of JOSE is a header, base64url and one signature; the key never leaves SigningKey.

Source: RFC 7523 2.2 and 3, RFC 7515 3.1 and 7.1, RFC 7638 3, RFC 8037 2 and 3.1; network.md, Sign-in.
"""

import base64
import hashlib
import secrets
from typing import Any, Final

import msgspec

from broker.wire.keys import SigningKey

TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LIFE_S: Final = 60
"""Seconds for which an assertion is good."""


def client_assertion(key: SigningKey, agent_id: str, audience: str, now_s: int) -> str:
    """A fresh assertion that `agent_id` shows `audience`. `now_s`: Unix seconds by the server's clock."""
    header = {"alg": "EdDSA", "kid": thumbprint(key.pk), "typ": "JWT"}
    claims = {
        "iss": agent_id,
        "sub": agent_id,
        "aud": audience,
        "iat": now_s,
        "exp": now_s + LIFE_S,
        "jti": secrets.token_urlsafe(16),
    }
    signed = f"{_encoded(header)}.{_encoded(claims)}"
    return f"{signed}.{base64url(bytes.fromhex(key.sign(signed.encode())))}"


def public_jwk(pk: str) -> dict[str, str]:
    """The public JWK of a key, 64 hex characters (RFC 8037 2)."""
    return {"crv": "Ed25519", "kty": "OKP", "x": base64url(bytes.fromhex(pk))}


def thumbprint(pk: str) -> str:
    """A key's kid: the RFC 7638 thumbprint of its JWK, whose members stand in their order there."""
    return base64url(hashlib.sha256(msgspec.json.encode(public_jwk(pk))).digest())


def base64url(data: bytes) -> str:
    """Without padding (RFC 7515 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _encoded(value: dict[str, Any]) -> str:
    return base64url(msgspec.json.encode(value))
