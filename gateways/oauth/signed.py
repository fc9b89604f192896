"""Signed tokens of an outside issuer, read by the keys that its document names.

1. Only asymmetric algorithms, only keys of the issuer's own set, and only what says of itself that it is this
   issuer's, and when it ends.
2. Keys are believed for ten minutes. A key id that is not among them has the set read again, at most twice a minute, so
   that a rotation is seen and made-up ids cost the issuer nothing.

Source: RFC 9068 4; RFC 7517 5; RFC 8725.
"""

from typing import Any, Final

from joserfc.jwk import Key

from broker.clock import Clock
from gateways.oauth import jose
from gateways.oauth.issuer import Issuer, NoAnswer

BELIEVED_S: Final = 600.0
AGAIN_S: Final = 30.0
TYPES: Final = ("at+jwt", "jwt", "")
"""What an access token calls itself (RFC 9068 2.1), what most issuers call theirs, and what names no type."""


class Signed:
    """One issuer's."""

    def __init__(self, issuer: Issuer, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: list[Key] = []
        self._read_at: float | None = None

    async def claims(self, token: str) -> dict[str, Any] | None:
        """What a token says, as an introspection would, if the issuer has signed it. Raises NoAnswer."""
        read = jose.read(token)
        if read is None or read.header.get("alg") not in jose.ASYMMETRIC:
            return None
        if read.claims.get("iss") != self._issuer.url or not jose.is_time(read.claims.get("exp")):
            return None
        kid = read.header.get("kid")
        age = self._age()
        missing = kid is not None and all(kid not in (key.kid, key.thumbprint()) for key in self._keys)
        if age is None or age > BELIEVED_S or (missing and age > AGAIN_S):
            await self._read_keys()
        if jose.verified(read, self._keys, jose.ASYMMETRIC, TYPES) is None:
            return None
        client = read.claims.get("client_id", read.claims.get("azp", ""))
        scope = read.claims.get("scope", read.claims.get("scp", ""))
        said = " ".join(sorted(jose.texts(scope)))
        return {**read.claims, "active": True, "token_type": "Bearer", "client_id": client, "scope": said}

    def _age(self) -> float | None:
        return None if self._read_at is None else self._clock.monotonic() - self._read_at

    async def _read_keys(self) -> None:
        try:
            document = await self._issuer.ask("GET", await self._issuer.find("jwks_uri"))
        except NoAnswer:
            self._issuer.forget()
            raise
        self._keys = jose.read_keys(document)
        self._read_at = self._clock.monotonic()
