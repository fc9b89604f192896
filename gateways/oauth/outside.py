"""Bearer tokens of an outside issuer: by introspection where the broker may ask it, else by its keys.

1. Nothing passes that the issuer did not call active now (or sign), for us, within its time. An issuer that gives no
   answer is `unavailable`, never a pass.
2. A token goes to the issuer and nowhere else: no log, no message and no cache holds it (the cache holds its hash).
3. Every question to the issuer has a bound in time, and few are asked at once.

Source: RFC 7662 (introspection), RFC 9068 4 (signed tokens), RFC 6750 2.1 and 3.1, RFC 8707 2.
"""

import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import msgspec
import trio

from broker.clock import Clock
from broker.wire.refusals import Refusal, refuse
from gateways.oauth.issuer import PATIENCE_S, Issuer, NoAnswer, connect
from gateways.oauth.jose import is_time, texts
from gateways.oauth.metadata import BAD
from gateways.oauth.signed import Signed

log = logging.getLogger(__name__)

KEPT_S: Final = 60.0
"""Seconds for which an issuer's yes is believed: so long a token that was revoked may still work."""
KEPT: Final = 4096
"""Tokens whose answer is kept."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,4096}=*")
_AWAY: Final = refuse("unavailable", "the issuer of tokens gives no answer now", retry_after_ms=5000)


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A good token: whose, for whom, with what scopes, meant for which resources; times are Unix seconds."""

    issuer: str
    subject: str
    """For whom it speaks; a client that acts for itself is its own subject (`itself`)."""
    itself: bool = False
    """Whether the subject is but the client's id, which clients of some issuers choose for themselves."""
    client: str
    scopes: frozenset[str]
    audiences: frozenset[str]
    issued: int
    until: float | None


class Source(Protocol):
    """How it is found out what a token says."""

    async def claims(self, token: str) -> dict[str, Any] | None:
        """What the issuer says of a token; None: nothing good. Raises NoAnswer."""
        ...


class Introspection:
    """The issuer is asked (RFC 7662)."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer

    async def claims(self, token: str) -> dict[str, Any] | None:
        """See Source. What is not active is said to be so by the answer itself."""
        endpoint = await self._issuer.find("introspection_endpoint")
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        try:
            return await self._issuer.ask("POST", endpoint, form)
        except NoAnswer:
            self._issuer.forget()
            raise


class Tokens:
    """The tokens of one issuer."""

    def __init__(
        self,
        issuer: Issuer,
        source: Source,
        *,
        clock: Clock,
        patience_s: float = PATIENCE_S,
        kept_s: float = KEPT_S,
        kept: int = KEPT,
    ) -> None:
        self._issuer = issuer
        self._source = source
        self._clock = clock
        self._patience_s = patience_s
        self._kept_s = kept_s
        self._most = kept
        self._kept: OrderedDict[bytes, tuple[float, Grant]] = OrderedDict()
        self._away = False

    async def verify(self, token: str, audiences: Collection[str]) -> Grant | Refusal:
        """Judge a token that is to be for one of `audiences`.

        Refusals: unauthenticated, and unavailable when the issuer gives no answer in time. Cancelling gives up;
        nothing is kept then.
        """
        if _TOKEN.fullmatch(token) is None:
            await trio.lowlevel.checkpoint()
            return BAD
        digest = hashlib.sha256(token.encode()).digest()
        grant = self._known(digest)
        if grant is None:
            try:
                answer = await self._ask(token)
            except NoAnswer as fault:
                self._tell_away(str(fault))
                return _AWAY
            self._away = False
            now = self._clock.now_ms() / 1000
            grant = read_grant(answer, self._issuer.url, now) if answer is not None else None
            if grant is None:
                return BAD
            self._keep(digest, grant)
        return BAD if grant.audiences.isdisjoint(audiences) else grant

    def _known(self, digest: bytes) -> Grant | None:
        """What was said of this token, while that may be believed."""
        kept = self._kept.get(digest)
        if kept is None:
            return None
        until, grant = kept
        ended = grant.until is not None and grant.until <= self._clock.now_ms() / 1000
        if ended or until <= self._clock.monotonic():
            del self._kept[digest]
            return None
        return grant

    def _keep(self, digest: bytes, grant: Grant) -> None:
        self._kept[digest] = (self._clock.monotonic() + self._kept_s, grant)
        self._kept.move_to_end(digest)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    async def _ask(self, token: str) -> dict[str, Any] | None:
        """What the issuer says of it. Raises NoAnswer, after `patience_s` at the latest."""
        with trio.move_on_after(self._patience_s):
            async with self._issuer.places:
                return await self._source.claims(token)
        raise NoAnswer(f"it took longer than {self._patience_s:g} s")

    def _tell_away(self, why: str) -> None:
        """Once for each time that it goes away, not once for each token."""
        if not self._away:
            log.warning("the issuer %s can't be asked about tokens: %s", self._issuer.url, why)
        self._away = True


@asynccontextmanager
async def open_tokens(
    issuer: str, client: str | None, secret: str, clock: Clock, **options: Any
) -> AsyncIterator[Tokens]:
    """The tokens of an issuer, with connections of their own. `client` None: by its keys, nothing is asked of it."""
    async with connect(issuer) as http:
        theirs = Issuer(issuer, http=http, clock=clock, client=client, secret=secret)
        source: Source = Signed(theirs, clock) if client is None else Introspection(theirs)
        yield Tokens(theirs, source, clock=clock, **options)


def read_grant(answer: dict[str, Any], issuer: str, now: float) -> Grant | None:
    """The grant in what an issuer says of a token, or None for a token that is not good (pure). `now`: Unix seconds.

    A token that is bound to a key of its bearer (`cnf`, or a type other than Bearer) is none that we could check.
    """
    subject, client = answer.get("sub", ""), answer.get("client_id", "")
    audiences = texts(answer.get("aud")) | texts(answer.get("resource"))
    until, since, made = answer.get("exp"), answer.get("nbf"), answer.get("iat")
    kind = answer.get("token_type", "Bearer")
    good = (
        answer.get("active") is True
        and answer.get("iss", issuer) == issuer
        and isinstance(kind, str)
        and kind.lower() in ("bearer", "access_token")
        and "cnf" not in answer
        and isinstance(subject, str)
        and isinstance(client, str)
        and (subject or client)
        and (until is None or (is_time(until) and until > now))
        and (since is None or (is_time(since) and since <= now))
    )
    if not good:
        return None
    scope = answer.get("scope", "")
    return Grant(
        issuer=issuer,
        subject=subject or client,
        itself=not subject,
        client=client,
        scopes=frozenset(scope.split()) if isinstance(scope, str) else frozenset(),
        audiences=audiences,
        issued=int(made) if made is not None and is_time(made) else 0,
        until=until,
    )
