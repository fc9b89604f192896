"""An outside issuer: its own document, what that names, and questions to it.

1. It is asked where its document says, and nowhere else; redirects are not followed.
2. An issuer that gives no answer, or not as itself, is NoAnswer, whose message holds nothing of any token.

Source: RFC 8414 3 (the document), RFC 6749 2.3.1 (as whom the broker asks).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import httpx
import msgspec
import trio

from broker.clock import Clock
from gateways.http_client import Body, is_here

PATIENCE_S: Final = 5.0
"""Seconds for one token, the wait for a place included."""
DOCUMENT_S: Final = 300.0
"""Seconds for which the issuer's own document is believed."""
AT_ONCE: Final = 16
"""Questions to the issuer at once, so that made-up tokens are its load only in part."""


class NoAnswer(Exception):
    """The issuer can't be asked; the message holds nothing of the token."""


class Issuer:
    """One issuer. `client` and `secret`: as whom the broker asks, where it has to say."""

    def __init__(
        self, url: str, *, http: httpx.AsyncClient, clock: Clock, client: str | None = None, secret: str = ""
    ) -> None:
        self.url = url
        self.places = trio.CapacityLimiter(AT_ONCE)
        # RFC 6749 2.3.1: each half is form-encoded before it is joined.
        self._auth = httpx.BasicAuth(quote_plus(client), quote_plus(secret)) if client is not None else None
        self._http = http
        self._clock = clock
        self._document: tuple[float, dict[str, Any]] | None = None

    def forget(self) -> None:
        """Its document is read again before the next question: what it names may have moved."""
        self._document = None

    async def find(self, member: str) -> str:
        """The URL that its document has under this name. Raises NoAnswer."""
        document = await self._read()
        endpoint = document.get(member)
        if not isinstance(endpoint, str) or not endpoint.startswith(f"{urlsplit(self.url).scheme}://"):
            raise NoAnswer(f"its document names no {member} of the same scheme")
        return endpoint

    async def _read(self) -> dict[str, Any]:
        if self._document is not None and self._document[0] > self._clock.monotonic():
            return self._document[1]
        fault = NoAnswer("it has no document")
        for url in documents_of(self.url):
            try:
                document = await self.ask("GET", url)
            except NoAnswer as no:
                fault = no
                continue
            if document.get("issuer") != self.url:
                raise NoAnswer("its document names another issuer")
            self._document = (self._clock.monotonic() + DOCUMENT_S, document)
            return document
        raise fault

    async def ask(self, method: str, url: str, form: bytes | None = None) -> dict[str, Any]:
        """A JSON object from the issuer. Redirects are not followed: they would carry the token along."""
        kind = {"content-type": "application/x-www-form-urlencoded"} if form is not None else {}
        try:
            request = self._http.build_request(
                method, url, content=form, headers={"accept": "application/json", **kind}
            )
            request.stream = Body(form or b"")
            auth = self._auth if form is not None else None
            answer = await self._http.send(request, auth=auth, follow_redirects=False)
            if answer.status_code != 200:
                raise NoAnswer(f"it answered {answer.status_code}")
            return msgspec.json.decode(answer.content, type=dict[str, Any])
        except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, RecursionError, ValueError) as fault:
            raise NoAnswer(type(fault).__name__) from None


@asynccontextmanager
async def connect(issuer: str) -> AsyncIterator[httpx.AsyncClient]:
    """Connections to an issuer. The environment's proxies are not asked for this machine itself."""
    # An issuer without TLS is asked without TLS alone (its endpoint has its scheme): certificates need no loading.
    tls = not issuer.startswith("http://")
    async with httpx.AsyncClient(verify=tls, trust_env=not is_here(issuer), timeout=PATIENCE_S) as http:
        yield http


def documents_of(issuer: str) -> tuple[str, str, str]:
    """Where an issuer's document may be: RFC 8414 3.1, its 5 (OpenID's name), and OpenID Connect Discovery 4."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
