"""Bearer tokens judged by their issuer: introspection, kept for a minute at most.

1. Nothing passes that the issuer did not call active now, for us, within its time. An issuer that gives no answer
   is `unavailable`, never a pass.
2. A token goes to the issuer and nowhere else: no log, no message and no cache holds it (the cache holds its hash).
3. Every question to the issuer has a bound in time, and few are asked at once.

Source: RFC 7662 (introspection), RFC 8414 3 (the issuer's document), RFC 6750 2.1 and 3.1, RFC 8707 2.
"""

import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
import msgspec
import trio

from broker.clock import Clock
from broker.wire.refusals import Refusal, refuse

log = logging.getLogger(__name__)

KEPT_S: Final = 60.0
"""Seconds for which an issuer's yes is believed: so long a token that was revoked may still work."""
KEPT: Final = 4096
"""Tokens whose answer is kept."""
PATIENCE_S: Final = 5.0
"""Seconds for one token, the wait for a place included."""
AT_ONCE: Final = 16
"""Questions to the issuer at once, so that made-up tokens are its load only in part."""
DOCUMENT_S: Final = 300.0
"""Seconds for which the issuer's own document is believed."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,4096}=*")
_BAD: Final = refuse("unauthenticated", "the token is not valid here, or not any more")
_AWAY: Final = refuse("unavailable", "the issuer of tokens gives no answer now", retry_after_ms=5000)


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A good token: for whom, with what scopes, meant for which resources, and until when (Unix seconds)."""

    principal: str
    """Issuer, client and subject as one text: the same after a refresh, another for every other subject."""
    scopes: frozenset[str]
    audiences: frozenset[str]
    until: float | None


class NoAnswer(Exception):
    """The issuer can't be asked; the message holds nothing of the token."""


class Tokens:
    """The tokens of one issuer. `client` and `secret`: as whom the broker asks."""

    def __init__(
        self,
        issuer: str,
        client: str,
        secret: str,
        *,
        http: httpx.AsyncClient,
        clock: Clock,
        patience_s: float = PATIENCE_S,
        kept_s: float = KEPT_S,
        kept: int = KEPT,
    ) -> None:
        self._issuer = issuer
        # RFC 6749 2.3.1: each half is form-encoded before it is joined.
        self._auth = httpx.BasicAuth(quote_plus(client), quote_plus(secret))
        self._http = http
        self._clock = clock
        self._patience_s = patience_s
        self._kept_s = kept_s
        self._most = kept
        self._kept: OrderedDict[bytes, tuple[float, Grant]] = OrderedDict()
        self._places = trio.CapacityLimiter(AT_ONCE)
        self._endpoint: tuple[float, str] | None = None
        self._away = False

    async def verify(
        self, token: str, audiences: Collection[str], scopes: Collection[str] = ()
    ) -> Grant | Refusal:
        """Judge a token that is to be for one of `audiences` and, where `scopes` are given, to have one of these.

        Refusals: unauthenticated, insufficient_scope, and unavailable when the issuer gives no answer in time.
        Cancelling gives up; nothing is kept then.
        """
        if _TOKEN.fullmatch(token) is None:
            await trio.lowlevel.checkpoint()
            return _BAD
        digest = hashlib.sha256(token.encode()).digest()
        grant = self._known(digest)
        if grant is None:
            try:
                answer = await self._introspect(token)
            except NoAnswer as fault:
                self._tell_away(str(fault))
                return _AWAY
            self._away = False
            grant = read_grant(answer, self._issuer, self._clock.now_ms() / 1000)
            if grant is None:
                return _BAD
            self._keep(digest, grant)
        if grant.audiences.isdisjoint(audiences):
            return _BAD
        if scopes and grant.scopes.isdisjoint(scopes):
            return refuse("insufficient_scope", f"this needs a token with one of: {', '.join(scopes)}")
        return grant

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

    async def _introspect(self, token: str) -> dict[str, Any]:
        """The issuer's answer. Raises NoAnswer, after `patience_s` at the latest."""
        with trio.move_on_after(self._patience_s):
            async with self._places:
                endpoint = await self._find_endpoint()
                form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
                try:
                    return await self._ask("POST", endpoint, form)
                except NoAnswer:
                    self._endpoint = None  # it may have moved
                    raise
        raise NoAnswer(f"it took longer than {self._patience_s:g} s")

    async def _find_endpoint(self) -> str:
        """Where to introspect, from the issuer's document. Raises NoAnswer."""
        if self._endpoint is not None and self._endpoint[0] > self._clock.monotonic():
            return self._endpoint[1]
        fault = NoAnswer("it has no document")
        for url in documents_of(self._issuer):
            try:
                document = await self._ask("GET", url)
            except NoAnswer as no:
                fault = no
                continue
            endpoint = document.get("introspection_endpoint")
            if document.get("issuer") != self._issuer:
                raise NoAnswer("its document names another issuer")
            if not isinstance(endpoint, str) or not endpoint.startswith(
                f"{urlsplit(self._issuer).scheme}://"
            ):
                raise NoAnswer("its document names no introspection_endpoint of the same scheme")
            self._endpoint = (self._clock.monotonic() + DOCUMENT_S, endpoint)
            return endpoint
        raise fault

    async def _ask(self, method: str, url: str, form: bytes | None = None) -> dict[str, Any]:
        """A JSON object from the issuer. Redirects are not followed: they would carry the token along."""
        kind = {"content-type": "application/x-www-form-urlencoded"} if form is not None else {}
        try:
            request = self._http.build_request(
                method, url, content=form, headers={"accept": "application/json", **kind}
            )
            request.stream = _Body(form or b"")
            answer = await self._http.send(
                request, auth=self._auth if form is not None else None, follow_redirects=False
            )
            if answer.status_code != 200:
                raise NoAnswer(f"it answered {answer.status_code}")
            return msgspec.json.decode(answer.content, type=dict[str, Any])
        except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, RecursionError, ValueError) as fault:
            raise NoAnswer(type(fault).__name__) from None

    def _tell_away(self, why: str) -> None:
        """Once for each time that it goes away, not once for each token."""
        if not self._away:
            log.warning("the issuer %s can't be asked about tokens: %s", self._issuer, why)
        self._away = True


class _Body(httpx.AsyncByteStream):
    """A request's body that can be left half-way: httpx's own is a generator, and complains when cancelled."""

    def __init__(self, data: bytes) -> None:
        self._parts = [data]

    def __aiter__(self) -> "_Body":
        return self

    async def __anext__(self) -> bytes:
        if not self._parts:
            raise StopAsyncIteration
        return self._parts.pop()


@asynccontextmanager
async def open_tokens(
    issuer: str, client: str, secret: str, clock: Clock, **options: Any
) -> AsyncIterator[Tokens]:
    """Tokens with connections of their own. The environment's proxies are not asked for this machine itself."""
    host = urlsplit(issuer).hostname or ""
    here = host == "localhost" or host.startswith("127.") or host == "::1"
    # An issuer without TLS is asked without TLS alone (its endpoint has its scheme): certificates need no loading.
    tls = not issuer.startswith("http://")
    async with httpx.AsyncClient(verify=tls, trust_env=not here, timeout=PATIENCE_S) as http:
        yield Tokens(issuer, client, secret, http=http, clock=clock, **options)


def documents_of(issuer: str) -> tuple[str, str, str]:
    """Where an issuer's document may be: RFC 8414 3.1, its 5 (OpenID's name), and OpenID Connect Discovery 4."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )


def read_grant(answer: dict[str, Any], issuer: str, now: float) -> Grant | None:
    """The grant in an introspection's answer, or None for a token that is not good (pure). `now`: Unix seconds.

    A token that is bound to a key of its bearer (`cnf`, or a type other than Bearer) is none that we could check.
    """
    subject, client = answer.get("sub", ""), answer.get("client_id", "")
    audiences = _texts(answer.get("aud")) | _texts(answer.get("resource"))
    until, since = answer.get("exp"), answer.get("nbf")
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
        and (until is None or (_is_time(until) and until > now))
        and (since is None or (_is_time(since) and since <= now))
    )
    if not good:
        return None
    scope = answer.get("scope", "")
    return Grant(
        principal=msgspec.json.encode([issuer, client, subject]).decode(),
        scopes=frozenset(scope.split()) if isinstance(scope, str) else frozenset(),
        audiences=audiences,
        until=until,
    )


def _texts(value: Any) -> frozenset[str]:
    """A claim that is one text or a list of them."""
    many = value if isinstance(value, list) else [value]
    return frozenset(each for each in many if isinstance(each, str))


def _is_time(value: Any) -> bool:
    return type(value) in (int, float)
