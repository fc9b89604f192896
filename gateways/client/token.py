"""An agent's access token: got by its own key, renewed in time, asked for once however many wait.

1. It is renewed at RENEW of its life, so that it never runs out under somebody who uses it.
2. Times are those of the server: what its clock shows more than ours is taken from the Date of its answers.
3. A token and an assertion go to the server and nowhere else: no message, no log, no repr holds any of either.

Source: RFC 6749 4.4 and 5, RFC 7523 2.2, RFC 8707 2, RFC 9110 6.6.1 (Date); network.md, Sign-in.
"""

from collections.abc import Collection
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import msgspec
import trio

from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.client.assertion import TYPE, client_assertion
from gateways.client.clockwork import WireClock
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.issuer import Issuer, find_issuer, retry_after_s
from gateways.http_client import Body

RENEW: Final = 0.8
"""The part of a token's life after which another is asked for."""
OFF_MS: Final = 2_000
"""A difference from the server's Date that is no mere rounding of it, milliseconds."""
_CODES: Final = {"invalid_client": "unauthenticated", "invalid_scope": "insufficient_scope"}
"""The refusals behind OAuth's errors (RFC 6749 5.2); any other is unauthenticated too."""


class Token:
    """One access token. `renew_at` and `until`: seconds on Trio's clock."""

    __slots__ = ("renew_at", "scopes", "text", "until")

    def __init__(self, text: str, scopes: frozenset[str], asked_at: float, life_s: float) -> None:
        self.text = text
        self.scopes = scopes
        self.renew_at = asked_at + RENEW * life_s
        self.until = asked_at + life_s

    @property
    def lives(self) -> bool:
        """Whether its time is not over."""
        return trio.current_time() < self.until

    def __repr__(self) -> str:
        return f"Token(until={self.until:.0f})"


class Tokens:
    """The tokens of one agent at one broker. `scopes`: those wanted; None: all that it may have."""

    def __init__(
        self,
        url: str,
        key: SigningKey,
        agent_id: str,
        clock: WireClock,
        http: httpx.AsyncClient,
        scopes: Collection[str] | None = None,
    ) -> None:
        self.agent_id = agent_id
        self._url = url
        self._key = key
        self._clock = clock
        self._http = http
        self._scopes = None if scopes is None else " ".join(scopes)
        self._issuer: Issuer | None = None
        self._token: Token | None = None
        self._lock = trio.Lock()
        self._asked = 0
        self._fault: Exception | None = None

    async def get(self, instead_of: Token | None = None) -> Token:
        """A token that is good for a while. `instead_of`: one that the broker did not take; it is forgotten.

        Who comes while somebody asks gets what that one gets. Raises Refused (unauthenticated: the key is none of the
        agent's any more), Disconnected where there was no answer (not while the last one is still good), WireFault.
        Cancelling leaves the next one to ask.
        """
        await trio.lowlevel.checkpoint()
        if instead_of is not None and self._token is instead_of:
            self._token = None
        if (token := self._good()) is not None:
            return token
        asked = self._asked
        async with self._lock:
            if (token := self._good()) is not None:
                return token
            if self._asked > asked and self._fault is not None:
                raise self._fault
            try:
                self._token, self._fault = await self._fetch(), None
            except (Refused, Disconnected, WireFault) as fault:
                self._fault = fault
                if isinstance(fault, Disconnected) and self._token is not None and self._token.lives:
                    return self._token
                raise
            finally:
                self._asked += 1
            return self._token

    def _good(self) -> Token | None:
        token = self._token
        return token if token is not None and trio.current_time() < token.renew_at else None

    async def _fetch(self) -> Token:
        """Ask. A clock of ours that turns out to be wrong by the refusal itself is put right, once."""
        if self._issuer is None:
            self._issuer, answer = await find_issuer(self._http, self._url)
            self._correct(answer)
        asked_at, answer = await self._ask(self._issuer)
        if answer.status_code in (400, 401) and self._correct(answer):
            asked_at, answer = await self._ask(self._issuer)
        if answer.status_code != 200:
            refused = _refused(answer)
            if isinstance(refused, Refused):
                self._issuer = None  # it may have moved
            raise refused
        return _read_token(answer, asked_at)

    async def _ask(self, issuer: Issuer) -> tuple[float, httpx.Response]:
        assertion = client_assertion(
            self._key, self.agent_id, issuer.token_endpoint, self._clock.now_ms() // 1000
        )
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": TYPE,
            "client_assertion": assertion,
            "resource": issuer.resource,
        }
        if self._scopes is not None:
            form["scope"] = self._scopes
        text = urlencode(form).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        request = self._http.build_request("POST", issuer.token_endpoint, content=text, headers=headers)
        request.stream = Body(text)
        asked_at = trio.current_time()
        try:
            return asked_at, await self._http.send(request)
        except httpx.HTTPError as fault:
            raise Disconnected(f"no answer to the request for a token: {type(fault).__name__}") from None

    def _correct(self, answer: httpx.Response) -> bool:
        """Take over the time of an answer; whether ours was wrong."""
        try:
            shown = parsedate_to_datetime(answer.headers.get("date", ""))
        except ValueError:
            return False
        shown_ms = int(shown.timestamp()) * 1000 + 500  # it has no fraction of a second
        if abs(shown_ms - self._clock.now_ms()) <= OFF_MS:
            return False
        self._clock.correct(shown_ms)
        return True


def _refused(answer: httpx.Response) -> Exception:
    """What an answer without a token means; its words are the server's, never what was sent."""
    if answer.status_code == 429 or answer.status_code >= 500:
        return Disconnected(
            f"HTTP {answer.status_code} instead of a token: ask again later", retry_after_s(answer)
        )
    try:
        body = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        body = {}
    error = str(body.get("error", f"HTTP {answer.status_code}"))
    words = f"no token: {error}: {body.get('error_description', 'no reason given')}"
    return Refused(refuse(_CODES.get(error, "unauthenticated"), words, error=error))


def _read_token(answer: httpx.Response, asked_at: float) -> Token:
    try:
        body = msgspec.json.decode(answer.content, type=_Answer)
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("the answer of the token endpoint can't be read") from None
    if body.token_type.lower() != "bearer":
        raise WireFault("the token endpoint gives tokens of another kind than Bearer")
    return Token(body.access_token, frozenset(body.scope.split()), asked_at, max(1.0, body.expires_in))


class _Answer(msgspec.Struct):
    access_token: str
    token_type: str
    expires_in: float = 60.0
    """Seconds; the RFC lets a server leave it out (5.1): then it is not trusted for long."""
    scope: str = ""
