"""Bearer tokens at our doors: a token becomes a Caller, or is refused (network.md, Sign-in).

1. A token is ours (the embedded server's) or the outside issuer's that is set: never one or the other.
2. First whether it is good (signed, for this resource, not over), then whether its subject may speak now, then its
   scopes: who shows nothing good is told nothing else.
3. An outside subject that has the form of one of our ids is that agent or owner; any other is a principal by itself,
   for which no agent acts.

Source: RFC 6750 3.1, 8707 2, 9068 4; MCP 2025-11-25, Authorization.
"""

from collections.abc import Collection
from typing import Protocol

import msgspec

from broker.app import Broker, Caller
from broker.wire.ids import AGENT, OWNER
from broker.wire.refusals import Refusal, refuse
from gateways.oauth.metadata import BAD
from gateways.oauth.outside import Grant
from gateways.oauth.server import AuthorizationServer


class Outside(Protocol):
    """What judges an outside issuer's tokens (gateways.oauth.outside)."""

    async def verify(self, token: str, audiences: Collection[str]) -> Grant | Refusal: ...


class Bearers:
    """The judge of tokens of one broker: of its own server's, or of an outside issuer's."""

    def __init__(self, broker: Broker, judge: AuthorizationServer | Outside) -> None:
        self._broker = broker
        self._judge = judge

    async def identify(
        self, caller: Caller, token: str, audiences: Collection[str], scopes: Collection[str] = ()
    ) -> Caller | Refusal:
        """Who calls. `audiences`: what the token may be for; `scopes`: of which it needs one, where there are any.

        Refusals: unauthenticated, suspended, insufficient_scope (with `scope`), and unavailable where an outside
        issuer gives no answer. Cancelling keeps nothing.
        """
        if isinstance(self._judge, AuthorizationServer):
            found = _ours(self._judge, caller, token, audiences)
        else:
            given = await self._judge.verify(token, audiences)
            found = given if isinstance(given, Refusal) else _theirs(caller, given)
        if isinstance(found, Refusal):
            if found.code == "unauthenticated":
                await self._broker.signin(caller, "failed_proof", b'{"kind":"invalid_token"}')
            return found
        refused = await self._broker.judge(found)
        if refused is None and scopes and found.scopes.isdisjoint(scopes):
            needed = " ".join(scopes)
            refused = refuse(
                "insufficient_scope", f"this needs a token with one of: {', '.join(scopes)}", scope=needed
            )
        return refused or found


def _ours(
    server: AuthorizationServer, caller: Caller, token: str, audiences: Collection[str]
) -> Caller | Refusal:
    read = server.read(token)
    return BAD if read is None or read.aud not in audiences else read.caller(caller)


def _theirs(caller: Caller, grant: Grant) -> Caller:
    ours = "" if grant.itself else grant.subject
    agent, owner = AGENT.fullmatch(ours), OWNER.fullmatch(ours)
    return msgspec.structs.replace(
        caller,
        principal=ours if agent or owner else f"{grant.issuer} {grant.subject}",
        agent=ours if agent else None,
        owner=ours if owner else None,
        client=grant.client or None,
        issued=grant.issued,
        scopes=grant.scopes,
        until=int(grant.until) if grant.until is not None else None,
    )
