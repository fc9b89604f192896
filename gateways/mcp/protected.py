"""The endpoint's faces as protected resources: who may pass, and what the others are told.

1. A guarded face is entered with a token alone; every other face takes one, and a bad one is refused there too.
2. A challenge goes with each 401, and with the 403 of a missing scope. Bearer stands first: clients read no further.

Source: MCP 2025-11-25 and 2026-07-28, Authorization; RFC 6750 3; RFC 9728 5.1.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways import caller as callers
from gateways.mcp.exchange import Answer, Http
from gateways.oauth.bearer import Bearers
from gateways.oauth.metadata import GUARDED, Resources, face_of


class Protection(Protocol):
    """What an endpoint asks of who stands before its paths: Protected, or the operators' own (gateways.operator)."""

    def guards(self, path: str) -> bool: ...

    async def identify(
        self, broker: callers.Admitting, http: Http, proxies: Sequence[callers.Network]
    ) -> Caller | Refusal: ...

    def challenge(self, http: Http, refusal: Refusal, answer: Answer) -> Answer: ...


class Protected:
    """The resources of one broker and the judge of their tokens."""

    def __init__(self, resources: Resources, bearers: Bearers) -> None:
        self._resources = resources
        self._bearers = bearers

    def guards(self, path: str) -> bool:
        """Whether the face of this path is for callers with a token alone."""
        return face_of(path) in GUARDED

    async def identify(
        self, broker: callers.Admitting, http: Http, proxies: Sequence[callers.Network]
    ) -> Caller | Refusal:
        """Who asks, by token or by statement; on a guarded face unauthenticated without a token."""
        face = face_of(http.scope["path"]) or ""

        async def bearer(caller: Caller, token: str) -> Caller | Refusal:
            audiences = self._resources.audiences(face)
            return await self._bearers.identify(caller, token, audiences, GUARDED.get(face, ()))

        caller = await callers.identify(broker, http.scope, proxies, bearer=bearer)
        if face in GUARDED and isinstance(caller, Caller) and caller.principal is None:
            return refuse("unauthenticated", "this face needs a token: `Authorization: Bearer <token>`")
        return caller

    def challenge(self, http: Http, refusal: Refusal, answer: Answer) -> Answer:
        """The same answer with the way to a token, where a token is what it lacks."""
        error, scope = None, None
        if refusal.code == "insufficient_scope":
            error, scope = "insufficient_scope", refusal.detail.get("scope")
        elif refusal.status != 401:
            return answer
        elif (http.head.get("authorization") or "").lower().startswith("bearer"):
            error = "invalid_token"
        path = http.scope["path"]
        ours = self._resources.challenge(path, http.head.get("host"), error, scope)
        others = [
            each for each in answer.headers if not (self.guards(path) and each[0] == b"www-authenticate")
        ]
        return msgspec.structs.replace(
            answer, headers=[(b"www-authenticate", ours.encode("latin-1")), *others]
        )
