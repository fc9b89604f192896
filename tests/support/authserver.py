"""The embedded authorization server behind the real doors, and clients that sign in there."""

import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import trio

from broker.app import Caller
from broker.wire.refusals import Refusal
from gateways.gate import Gate
from gateways.listen import Network
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.metrics import Metrics
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import SigningKeys
from gateways.oauth.metadata import Resources
from gateways.oauth.server import AUTHORIZE, REGISTER, TOKEN, AuthorizationServer
from gateways.outbound import Outbound
from gateways.web import web_app
from tests.gateways.mcp.harness import BOTH
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.signin import CHALLENGE, REDIRECT, STATE, VERIFIER, answer_in, new_owner, signin


class SignIns:
    """A broker's public port with its own authorization server, and an owner who consents to everything."""

    def __init__(
        self, bench: Bench, server: AuthorizationServer, http: httpx.AsyncClient, owner: str
    ) -> None:
        self.bench = bench
        self.server = server
        self.http = http
        self.owner = owner
        self.bearers = Bearers(bench.broker, server)

    @property
    def url(self) -> str:
        return self.server.issuer

    async def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """One request, as nobody in particular."""
        with trio.fail_after(5):
            return await self.http.request(method, path, **request)

    async def register(self, **metadata: Any) -> dict[str, Any]:
        """A public client, if `metadata` says nothing else."""
        given = {
            "client_name": "An app",
            "redirect_uris": [REDIRECT],
            "token_endpoint_auth_method": "none",
            **metadata,
        }
        answer = await self.ask("POST", REGISTER, json=given)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def query(self, client_id: str, /, **changes: Any) -> dict[str, Any]:
        """The parameters of an authorization request; those that are None are left out."""
        params = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": REDIRECT,
            "state": STATE,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": f"{self.url}/mcp",
            "scope": "message channel",
            **changes,
        }
        return {name: value for name, value in params.items() if value is not None}

    async def authorize(self, client_id: str, subject: str | None = None, **changes: Any) -> dict[str, str]:
        """Ask, have the owner consent, and give what the redirect tells the client."""
        answer = await self.ask("GET", AUTHORIZE, params=self.query(client_id, **changes))
        assert answer.status_code == 303, answer.text
        return answer_in(await self.consent(answer.headers["location"], subject))

    async def consent(self, location: str, subject: str | None = None, *, allow: bool = True) -> str:
        """The owner decides about what waits at a consent page; where its browser goes then."""
        (ask,) = parse_qs(urlsplit(location).query)["ask"]
        decided = await signin(
            self.bench, "decide_authorization", ask=ask, owner_id=self.owner, subject=subject, allow=allow
        )
        assert not isinstance(decided, Refusal), decided
        redirect: str = decided["redirect"]
        return redirect

    async def token(self, **form: Any) -> httpx.Response:
        """POST to the token endpoint; what is None is left out."""
        headers = form.pop("headers", {})
        given = {name: value for name, value in form.items() if value is not None}
        return await self.ask("POST", TOKEN, data=given, headers=headers)

    def redemption(self, client_id: str, code: str, /, **changes: Any) -> dict[str, Any]:
        """The form that redeems a code."""
        return {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            "resource": f"{self.url}/mcp",
            **changes,
        }

    async def sign_in(self, subject: str | None = None, **changes: Any) -> dict[str, Any]:
        """The whole way: the token endpoint's answer, with the client's id."""
        client_id = (await self.register())["client_id"]
        told = await self.authorize(client_id, subject, **changes)
        shown = {"resource": changes["resource"]} if "resource" in changes else {}
        answer = await self.token(**self.redemption(client_id, told["code"], **shown))
        assert answer.status_code == 200, answer.text
        return {**answer.json(), "client_id": client_id}

    async def identify(self, token: str, face: str = "", *scopes: str) -> Caller | Refusal:
        """What the resource server makes of a token."""
        return await self.bearers.identify(Caller(), token, self.server.resources.audiences(face), scopes)

    async def post(self, path: str, body: Any, token: str | None = None, **headers: str) -> httpx.Response:
        """A POST to the MCP endpoint; header names take _ for -."""
        shown = {"authorization": f"Bearer {token}"} if token is not None else {}
        named = {
            name.replace("_", "-"): value for name, value in {"accept": BOTH, **shown, **headers}.items()
        }
        return await self.ask("POST", path, json=body, headers=named)


def claims_of(token: str) -> dict[str, Any]:
    """What a token says, not verified."""
    segment = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    return found


@asynccontextmanager
async def signing_in(
    bench: Bench, outbound: Outbound | None = None, proxies: Sequence[Network] = ()
) -> AsyncIterator[SignIns]:
    """The real doors. The port is known only when they stand, so that the application comes a moment later."""
    inner: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await inner[0](scope, receive, send)

    async with serving(app) as served:
        here = (served.url, served.url.replace("127.0.0.1", "localhost"))
        resources = Resources(issuer=served.url, origins=here)
        keys = SigningKeys.open(None, bench.clock.now_ms())
        documents = Documents(outbound or Outbound(), bench.clock)
        server = AuthorizationServer(bench.broker, bench.clock, keys, resources, documents)
        bearers = Bearers(bench.broker, server)
        mcp = mcp_app(bench.broker, protected=Protected(resources, bearers))
        inner.append(
            web_app(
                bench.broker,
                Metrics(bench.broker),
                mcp_app=mcp,
                resources=resources,
                sign_in=server,
                proxies=proxies,
                gate=Gate(bearers, resources),
            )
        )
        async with httpx.AsyncClient(base_url=served.url, verify=False) as http:
            yield SignIns(bench, server, http, await new_owner(bench))
        mcp.drain()
