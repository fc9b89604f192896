"""Who the operators' port lets in: who shows the operators' token, and nobody else.

1. One token, in `Authorization: Bearer`, or as the console's pages take it. It is the whole proof: no agent's or
   owner's token counts here, whatever its scopes, and this one counts nowhere else.
2. A wrong token is counted for the audit, and too many from one address are told to wait, this machine itself among
   them. The right one is let in all the same: nobody locks the operators out.

Source: network.md, Reports, audit, operators; RFC 6750 3.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from broker.app import Broker, Caller
from broker.wire.refusals import Refusal, refuse
from gateways import caller as callers
from gateways.listen import Network, Scope, values_of
from gateways.mcp.exchange import Answer, Http
from gateways.operator.token import OperatorToken

NO_TOKEN: Final = refuse(
    "unauthenticated", "the operators' port needs the operators' token: `Authorization: Bearer <token>`"
)
BAD_TOKEN: Final = refuse("unauthenticated", "that is not the operators' token")
CHALLENGE: Final = 'Bearer realm="turret operators"'


class OperatorGate:
    """The gate of one broker's operators' port. `proxies`: peers whose X-Forwarded-For is believed; `url`: where
    operators find it, maybe by the TLS of a proxy."""

    def __init__(
        self, broker: Broker, token: OperatorToken, proxies: Sequence[Network] = (), url: str | None = None
    ) -> None:
        self._broker = broker
        self._token = token
        self._proxies = proxies
        self._url = urlsplit(url or "")

    def by_tls(self, scheme: str, host: str) -> bool:
        """Whether a browser that asks for this Host came by TLS, to us or to the proxy before us."""
        asked = urlsplit(f"//{host}").hostname
        return scheme == "https" or (self._url.scheme == "https" and asked == self._url.hostname)

    def connect(self, scope: Scope) -> Caller:
        """The caller as far as the connection tells; no operator yet."""
        return callers.connect(scope, self._proxies)

    async def admit(self, caller: Caller, token: str) -> Caller | Refusal:
        """The caller as an operator; unauthenticated, or rate_limited after too many wrong tokens. Cancelling keeps
        nothing."""
        if self._token.matches(token):
            return replace(caller, operator=True)
        refused = await self._broker.signin(caller, "failed_operator", b"{}")
        return refused if isinstance(refused, Refusal) else BAD_TOKEN

    async def identify(self, scope: Scope) -> Caller | Refusal:
        """Who sends a request with `Authorization: Bearer <token>`: an operator, or why not."""
        given = values_of(scope, b"authorization")
        if len(given) > 1:
            return refuse("bad_request", "more than one Authorization header")
        scheme, _, token = (given[0] if given else b"").decode("latin-1").strip().partition(" ")
        if scheme.lower() != "bearer":
            return NO_TOKEN
        return await self.admit(self.connect(scope), token.strip())


class Guarded:
    """The operators' MCP endpoint as its own kind of protected resource: every path of it asks for the token."""

    def __init__(self, gate: OperatorGate) -> None:
        self._gate = gate

    def guards(self, path: str) -> bool:
        """Always."""
        return True

    async def identify(
        self, broker: callers.Admitting, http: Http, proxies: Sequence[Network]
    ) -> Caller | Refusal:
        """As the gate's; the proxies are its own."""
        return await self._gate.identify(http.scope)

    def challenge(self, http: Http, refusal: Refusal, answer: Answer) -> Answer:
        """The same answer with the one way in, where that is what it lacks: there is no document to find it by."""
        if refusal.status != 401:
            return answer
        error = ', error="invalid_token"' if refusal is not NO_TOKEN else ""
        others = [each for each in answer.headers if each[0] != b"www-authenticate"]
        return replace(answer, headers=[(b"www-authenticate", f"{CHALLENGE}{error}".encode()), *others])
