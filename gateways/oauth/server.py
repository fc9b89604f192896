"""The embedded authorization server: what its endpoints share (network.md, Sign-in).

1. It decides nothing of owners, clients and grants: that is the broker's; here tokens are made and read.
2. The issuer is one text, the same in the metadata, in every token, and in every answer that names it.

Source: RFC 8414 (metadata), 9207 (iss), 8707 (resource), 9068 (tokens).
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from broker.app import Broker, Caller
from broker.clock import Clock
from broker.wire.refusals import Refusal
from gateways.oauth import access, forms, jose
from gateways.oauth.documents import Documents
from gateways.oauth.keys import ACCESS_S, SigningKeys
from gateways.oauth.metadata import GUARDED, MCP, Resources, scopes_of

AUTHORIZE: Final = "/oauth/authorize"
TOKEN: Final = "/oauth/token"  # noqa: S105  # a path
REGISTER: Final = "/oauth/register"
REVOKE: Final = "/oauth/revoke"
INTROSPECT: Final = "/oauth/introspect"
JWKS: Final = "/oauth/jwks"
DOCUMENT: Final = "/.well-known/oauth-authorization-server"
KEPT: Final = 4096
"""Verified tokens in memory."""
GRANTS: Final = ("authorization_code", "refresh_token", "client_credentials")
METHODS: Final = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
SCOPES: Final = tuple(scope for scopes in GUARDED.values() for scope in scopes)


class Target(msgspec.Struct, frozen=True):
    """What tokens are asked for: one resource of ours, and the scopes that are of use there."""

    resource: str
    scopes: tuple[str, ...]


class AuthorizationServer:
    """One broker's. `resources`: the faces, under this server as their issuer."""

    def __init__(
        self, broker: Broker, clock: Clock, keys: SigningKeys, resources: Resources, documents: Documents
    ) -> None:
        self.clock = clock
        self.keys = keys
        self.resources = resources
        self.documents = documents
        self._broker = broker
        self._read: OrderedDict[bytes, access.Access] = OrderedDict()
        """Tokens that were verified, by their hash: whoever calls often shows the same one again."""

    @property
    def issuer(self) -> str:
        """The issuer identifier: our first origin, without a slash at its end."""
        return self.resources.issuer

    def document(self) -> dict[str, Any]:
        """The metadata (RFC 8414 2)."""
        signed = {
            f"{place}_auth_methods_supported": list(METHODS)
            for place in ("token_endpoint", "revocation_endpoint")
        }
        algorithms = "token_endpoint_auth_signing_alg_values_supported"
        return {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + AUTHORIZE,
            "token_endpoint": self.issuer + TOKEN,
            "registration_endpoint": self.issuer + REGISTER,
            "revocation_endpoint": self.issuer + REVOKE,
            "introspection_endpoint": self.issuer + INTROSPECT,
            "jwks_uri": self.issuer + JWKS,
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(GRANTS),
            **signed,
            "introspection_endpoint_auth_methods_supported": list(METHODS[1:]),
            algorithms: list(jose.ED25519),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        }

    def jwks(self) -> dict[str, Any]:
        """The keys that verify our tokens now (RFC 7517 5)."""
        return self.keys.jwks(self.clock.now_ms())

    def target(self, resource: str | None) -> Target | None:
        """The resource that a client asks for; without one the whole endpoint (clients before RFC 8707). None: it is
        not ours."""
        resource = resource or self.resources.origins[0] + MCP
        face = self.resources.face_at(resource)
        return None if face is None else Target(resource, scopes_of(face) or SCOPES)

    async def ask(self, caller: Caller, verb: str, **params: Any) -> Any:
        """A verb of the broker's, with those params that are not None."""
        given = {name: value for name, value in params.items() if value is not None}
        return await self._broker.signin(caller, verb, msgspec.json.encode(given))

    def read(self, token: str) -> access.Access | None:
        """What a token of ours says while it is not over; None for any other. The signature is verified once."""
        now, digest = self.clock.now_ms(), hashlib.sha256(token.encode()).digest()
        found = self._read.get(digest)
        if found is not None and found.exp * 1000 > now:
            return found
        found = access.read(self.keys, now, self.issuer, token)
        if found is not None:
            self._read[digest] = found
            if len(self._read) > KEPT:
                self._read.popitem(last=False)
        return found

    async def judge(self, caller: Caller) -> Refusal | None:
        """Whether somebody may still speak."""
        return await self._broker.judge(caller)

    def give(self, granted: Any, client_id: str, target: Target, scopes: Sequence[str]) -> forms.Reply:
        """The answer with a new access token (RFC 6749 5.1) for what the broker has granted."""
        now = self.clock.now_ms()
        token = access.mint(
            self.keys,
            now,
            secrets.token_urlsafe(16),
            self.issuer,
            granted.after,
            sub=granted.subject,
            aud=target.resource,
            client_id=client_id,
            scope=" ".join(scopes),
            owner=granted.owner,
            grant=granted.grant,
            akid=granted.kid,
        )
        answer = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": ACCESS_S,
            "scope": " ".join(scopes),
        }
        if granted.refresh_token is not None:
            answer["refresh_token"] = granted.refresh_token
        return forms.Reply(200, answer)
