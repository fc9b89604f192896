"""A stub of an authorization server in the test's process: its document and introspection, on a real port."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import trio

from gateways.bodies import read_body
from gateways.listen import Receive, Scope, Send
from tests.support.network import serving

CLIENT, SECRET = "turret broker", "s3:cret/+"
"""With marks that must be encoded before they are joined."""


class Issuer:
    """What it knows of tokens, and what it was asked. `fails`: the status of every answer; `silent`: none comes."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.url = ""
        self.tokens: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.documents = 0
        self.fails: int | None = None
        self.silent = False
        self.grants = ""
        """The audience of the token that anybody gets who comes with a code."""
        self.keys: Any = {"keys": []}
        """Its set of public keys, and how often that was read."""
        self.key_reads = 0
        self.changes: dict[str, Any] = {}
        """Members of its document that are others than they should be."""

    def give(self, token: str, audience: Any, **claims: Any) -> str:
        """Have a token be active for an audience."""
        known = {"active": True, "aud": audience, "client_id": "app", "sub": "agent-1", "exp": 4_000_000_000}
        self.tokens[token] = {**known, **claims}
        return token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive, 65_536)
        assert isinstance(body, bytes)
        if self.silent:
            await trio.sleep_forever()
        status, answer = self._answer(scope, body)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _answer(self, scope: Scope, body: bytes) -> tuple[int, Any]:
        if self.fails is not None:
            return self.fails, {}
        if scope["path"] == f"/.well-known/oauth-authorization-server{self.path}":
            self.documents += 1
            document = {
                "issuer": self.url,
                "introspection_endpoint": f"{self.url}/introspect",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                **self.changes,
            }
            return 200, {name: value for name, value in document.items() if value is not None}
        if scope["path"] == f"{self.path}/keys":
            self.key_reads += 1
            return 200, self.keys
        if scope["path"] == f"{self.path}/register":
            return 201, {**json.loads(body), "client_id": "app"}
        if scope["path"] == f"{self.path}/token":
            assert parse_qs(body.decode())["resource"] == [self.grants]
            token = self.give("granted", self.grants, scope="message arena trial")
            return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        if scope["path"] != f"{self.path}/introspect" or scope["method"] != "POST":
            return 404, {}
        if not self._knows(dict(scope["headers"]).get(b"authorization", b"").decode()):
            return 401, {"error": "invalid_client"}
        form = parse_qs(body.decode(), strict_parsing=True)
        assert form["token_type_hint"] == ["access_token"]
        self.asked += form["token"]
        return 200, self.tokens.get(form["token"][0], {"active": False})

    def _knows(self, authorization: str) -> bool:
        scheme, _, pair = authorization.partition(" ")
        name, _, secret = base64.b64decode(pair).decode().partition(":")
        return (scheme, unquote_plus(name), unquote_plus(secret)) == ("Basic", CLIENT, SECRET)


@asynccontextmanager
async def issuing(path: str = "") -> AsyncIterator[Issuer]:
    """A stub that listens. `path`: of its issuer's URL."""
    issuer = Issuer(path)
    async with serving(issuer) as server:
        issuer.url = f"{server.url}{path}"
        yield issuer
