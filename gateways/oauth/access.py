"""Access tokens of the embedded authorization server: made, and read back (RFC 9068; network.md, Sign-in).

Signed by Ed25519, for one resource, good for 15 minutes. What a token says was true when it was made; whether its
subject may still speak is Standing's to say.
"""

from typing import Any, Final

import msgspec

from broker.app import Caller
from broker.wire.ids import AGENT, OWNER
from gateways.oauth import jose
from gateways.oauth.keys import ACCESS_S, SigningKeys

TYPE: Final = "at+jwt"


class Access(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claims. `sub`: an agent or an owner; `owner`: whose the agent is, or the owner itself; `grant`: the consent
    that it came of; `akid`: the agent's key that it was got with."""

    iss: str
    sub: str
    aud: str
    client_id: str
    scope: str
    iat: int
    exp: int
    jti: str
    owner: str | None = None
    grant: str | None = None
    akid: str | None = None

    @property
    def agent(self) -> str | None:
        """The agent that it acts for."""
        return self.sub if AGENT.fullmatch(self.sub) else None

    def caller(self, caller: Caller) -> Caller:
        """Who calls, by this token."""
        return msgspec.structs.replace(
            caller,
            principal=self.sub,
            agent=self.agent,
            owner=self.owner,
            client=self.client_id,
            grant=self.grant,
            kid=self.akid,
            issued=self.iat,
            scopes=frozenset(self.scope.split()),
            until=self.exp,
        )


def mint(keys: SigningKeys, now_ms: int, jti: str, issuer: str, after: int = 0, **claims: Any) -> str:
    """A token with these claims (sub, aud, client_id, scope, owner, grant, akid), signed by the present key.

    `after`: Unix seconds before which its subject's tokens are over. That may be the second that begins next, when a
    credential was renewed in this one; the new token is then of that second already.
    """
    now = now_ms // 1000
    given = {name: value for name, value in claims.items() if value is not None}
    access = Access(iss=issuer, iat=max(now, after), exp=now + ACCESS_S, jti=jti, **given)
    key = keys.present(now_ms)
    header = {"alg": "EdDSA", "typ": TYPE, "kid": key.thumbprint()}
    return jose.signed(header, msgspec.to_builtins(access), key)


def read(keys: SigningKeys, now_ms: int, issuer: str, token: str) -> Access | None:
    """The claims of a token that we made and that is not over; None for any other."""
    found = jose.read(token)
    if found is None or found.header.get("alg") != "EdDSA" or "kid" not in found.header:
        return None
    if jose.verified(found, keys.verifying(now_ms), ("EdDSA",), (TYPE,)) is None:
        return None
    try:
        access = msgspec.convert(found.claims, Access)
    except msgspec.ValidationError:
        return None
    good = (
        access.iss == issuer and access.exp * 1000 > now_ms and (access.agent or OWNER.fullmatch(access.sub))
    )
    return access if good else None
