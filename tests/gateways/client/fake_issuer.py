"""A small authorization server in memory, written by the RFCs: what an agent's client gets its tokens from.

It judges an assertion as RFC 7523 and network.md say, with joserfc, and is handed to httpx as its transport. `script`
has it do something else with the next requests for a token.
"""

import json
import warnings
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs

import httpx
import msgspec
import trio
from joserfc import jwt
from joserfc.errors import BadSignatureError
from joserfc.jwk import OKPKey

from broker.wire.jwk import jwk_of, thumbprint

START_S = 1_782_345_678
ORIGIN = "https://wire.test"
TOKEN = f"{ORIGIN}/oauth/token"
ALL = "profile contacts message channel task resource arena trial"
Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class FakeIssuer:
    """Agents and their keys, and the tokens that it has given. `life_s`: of each token."""

    def __init__(self) -> None:
        self.keys: dict[str, list[str]] = {}
        self.resource: dict[str, Any] = {
            "resource": f"{ORIGIN}/mcp",
            "authorization_servers": [ORIGIN],
        }
        self.document: dict[str, Any] = {
            "issuer": ORIGIN,
            "token_endpoint": TOKEN,
            "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_basic"],
            "token_endpoint_auth_signing_alg_values_supported": ["EdDSA"],
        }
        self.life_s = 900
        self.scripts: deque[Answer] = deque()
        self.requests: list[str] = []
        """Paths, in order."""
        self.forms: list[dict[str, list[str]]] = []
        self.claims: list[dict[str, Any]] = []
        self.live: dict[str, str] = {}
        """Token → agent, while it is good."""
        self.delay_s = 0.0
        self._jtis: set[str] = set()

    @property
    def transport(self) -> httpx.MockTransport:
        """What reaches it."""
        return httpx.MockTransport(self._handle)

    def now_s(self) -> int:
        return START_S + int(trio.current_time())

    def enter(self, agent_id: str, *pks: str) -> None:
        """An agent with these keys."""
        self.keys[agent_id] = list(pks)

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        await trio.sleep(self.delay_s)
        path = request.url.path
        self.requests.append(path)
        answer = self._answer(request, path)
        answer.headers.setdefault("date", formatdate(self.now_s(), usegmt=True))
        return answer

    def _answer(self, request: httpx.Request, path: str) -> httpx.Response:
        if path == "/.well-known/oauth-protected-resource/mcp":
            return httpx.Response(200, json=self.resource)
        if path == "/.well-known/oauth-authorization-server":
            return httpx.Response(200, json=self.document)
        if path != "/oauth/token":
            return httpx.Response(404)
        if self.scripts:
            scripted = self.scripts.popleft()
            if isinstance(scripted, Exception):
                raise scripted
            return scripted(request) if callable(scripted) else scripted
        form = parse_qs(request.content.decode(), strict_parsing=True)
        self.forms.append(form)
        return self._token(form)

    def _token(self, form: dict[str, list[str]]) -> httpx.Response:
        assert form["grant_type"] == ["client_credentials"]
        assert form["client_assertion_type"] == ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"]
        assert form["resource"] == [self.resource["resource"]]
        agent_id = self._judge(form["client_assertion"][0])
        if agent_id is None:
            return httpx.Response(401, json={"error": "invalid_client", "error_description": "not proved"})
        token = f"token-{len(self.forms)}"
        self.live[token] = agent_id
        scope = form.get("scope", [ALL])[0]
        given = {"access_token": token, "token_type": "Bearer", "expires_in": self.life_s, "scope": scope}
        return httpx.Response(200, json=given)

    def _judge(self, assertion: str) -> str | None:
        """The agent that signed it, or None (RFC 7523 3)."""
        for agent_id, pks in self.keys.items():
            for pk in pks:
                try:
                    token = read_signed(assertion, pk)
                except BadSignatureError:
                    continue
                claims = token.claims
                assert token.header["kid"] == thumbprint(pk)
                assert claims["iss"] == claims["sub"] == agent_id
                assert claims["aud"] == self.document["token_endpoint"]
                assert 0 < claims["exp"] - claims["iat"] <= 60
                assert claims["jti"] not in self._jtis, "an assertion serves once"
                self._jtis.add(claims["jti"])
                self.claims.append(claims)
                now = self.now_s()
                return agent_id if claims["iat"] - 30 <= now < claims["exp"] else None
        return None


def read_signed(text: str, pk: str) -> jwt.Token:
    """A token that the key has signed, as joserfc reads it. Raises BadSignatureError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EdDSA has a new name, which few know
        return jwt.decode(text, OKPKey.import_key(msgspec.to_builtins(jwk_of(pk))), algorithms=["EdDSA"])


def error(status: int, code: str, **headers: str) -> httpx.Response:
    """An OAuth error."""
    return httpx.Response(status, content=json.dumps({"error": code}), headers=headers)
