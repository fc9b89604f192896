"""How the doors beside MCP take tokens: `Authorization: Bearer` on /v1, /rings and upgrades, `authenticate{token}`.

1. One judge for all of them: a token for the endpoint (/mcp, which serves all faces) or for the origin itself, whose
   subject may speak now. A token for one face of /mcp is good there alone.
2. Who is refused for want of a token is told the way to one; who has shown a bad one is told that it is bad.
3. A token goes to its judge and nowhere else: no log, no message, no query.

Source: RFC 6750 2.1 and 3; RFC 8707 2; RFC 9728 5.1; network.md, Sign-in.
"""

import re
from collections.abc import Collection
from typing import Final, Protocol

from broker.app import Caller
from broker.wire.refusals import Refusal
from gateways import render
from gateways.listen import Scope
from gateways.oauth.metadata import BAD, MCP, Resources

LONGEST: Final = 8192
"""Characters of a token; a head has room for twice as many, a WebSocket's frame for eight times."""
_TOKEN: Final = re.compile(rf"[A-Za-z0-9._~+/-]{{1,{LONGEST}}}=*")


class Bearers(Protocol):
    """What judges tokens, and last whether their subject may speak now (gateways.oauth.bearer)."""

    async def identify(
        self, caller: Caller, token: str, audiences: Collection[str], scopes: Collection[str] = ()
    ) -> Caller | Refusal: ...


class Gate:
    """See the module. One for a broker's public doors and its dealing port."""

    def __init__(self, bearers: Bearers, resources: Resources) -> None:
        self._bearers = bearers
        self._resources = resources
        bare = {f"{origin}{slash}" for origin in resources.origins for slash in ("", "/")}
        self._audiences = resources.audiences("") | bare

    async def admit(self, caller: Caller, token: str) -> Caller | Refusal:
        """The caller with what its token says; unauthenticated, suspended, or unavailable where nobody can judge it.

        The last thing that is looked at is whether it may speak now: who holds it by its right right after this
        misses nothing.
        """
        if _TOKEN.fullmatch(token) is None or len(token) > LONGEST:
            return BAD
        return await self._bearers.identify(caller, token, self._audiences)

    def challenge(self, refusal: Refusal, scope: Scope) -> str | None:
        """WWW-Authenticate for a refused request; None where no token would help."""
        error, needed = None, None
        if refusal.code == "insufficient_scope":
            error, needed = "insufficient_scope", refusal.detail.get("scope")
        elif refusal.status != 401:
            return None
        elif _header(scope, b"authorization").lower().startswith("bearer"):
            error = "invalid_token"
        return self._resources.challenge(MCP, _header(scope, b"host") or None, error, needed)


def refused(refusal: Refusal, scope: Scope, gate: Gate | None) -> tuple[int, render.Headers, bytes]:
    """A refusal over plain HTTP, with the way to a token in front where that is what is missing."""
    status, headers, body = render.http(refusal)
    way = gate.challenge(refusal, scope) if gate is not None else None
    if way is not None:  # clients read the first one alone
        headers = [(b"www-authenticate", way.encode("latin-1")), *headers]
    return status, headers, body


def _header(scope: Scope, wanted: bytes) -> str:
    found = next((value for name, value in scope["headers"] if name.lower() == wanted), b"")
    return str(found.decode("latin-1"))
