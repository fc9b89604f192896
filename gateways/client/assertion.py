"""An agent's own proof at the token endpoint: a client assertion, signed with its Ed25519 key (private_key_jwt).

1. It is for one audience, good for a minute, and never made twice: its jti is random.
2. What it needs of JOSE is a header, base64url and one signature; the key never leaves SigningKey.

Source: RFC 7523 2.2 and 3, RFC 7515 3.1 and 7.1, RFC 8037 3.1; network.md, Sign-in.
"""

import secrets
from typing import Any, Final

import msgspec

from broker.wire import base64url
from broker.wire.jwk import thumbprint
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
    return f"{signed}.{base64url.encode(bytes.fromhex(key.sign(signed.encode())))}"


def _encoded(value: dict[str, Any]) -> str:
    return base64url.encode(msgspec.json.encode(value))
