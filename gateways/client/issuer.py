"""Where an agent gets its tokens: from the broker's address to the token endpoint of its authorization server.

1. The broker's document names the issuer, the issuer's names the endpoint; each must name itself as it was asked for.
2. What proves an agent goes over TLS, or stays on this machine: from https no http is followed.

Source: RFC 9728 3 (the resource's document), RFC 8414 3 (the issuer's), RFC 8707 2 (`resource`).
"""

from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx
import msgspec

from broker.wire.refusals import refuse
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.reasons import reason_of
from gateways.http_client import is_here

RESOURCE: Final = "/.well-known/oauth-protected-resource"
ISSUER: Final = "/.well-known/oauth-authorization-server"
MCP: Final = "/mcp"
"""The path of the broker's resource: a token for it is good at all of the broker's doors."""


class Issuer(msgspec.Struct, frozen=True):
    """What a client has to know to get a token for a broker."""

    issuer: str
    token_endpoint: str
    resource: str


def http_origin(url: str) -> str:
    """The http(s) origin of a broker's address, whichever of its doors the URL names."""
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, "", "", ""))


def safe_origin(url: str) -> str:
    """The same, where a token may be shown. Raises ValueError for another machine without TLS."""
    origin = http_origin(url)
    if not _is_safe(origin, urlsplit(origin).scheme):
        raise ValueError(f"a token is not shown to {urlsplit(origin).netloc} without TLS: use https")
    return origin


async def find_issuer(http: httpx.AsyncClient, url: str) -> tuple[Issuer, httpx.Response]:
    """The issuer of the broker at `url`, and the last answer on the way to it (its Date tells the time).

    Raises Disconnected where there is no answer, Refused (unauthenticated) where the broker has no sign-in, WireFault
    where what they say of themselves can't be right. Cancelling is safe: it only reads.
    """
    origin = safe_origin(url)
    resource = origin + MCP
    described, _ = await _read(http, f"{origin}{RESOURCE}{MCP}", "the broker's sign-in")
    if described.get("resource") != resource:
        raise WireFault(f"{origin} calls itself {described.get('resource')!r}: use that address")
    named = described.get("authorization_servers")
    if not isinstance(named, list) or not named:
        raise Refused(refuse("unauthenticated", f"{origin} names nobody who gives tokens for it"))
    issuer = _url(origin, named[0])
    found, answer = await _read(http, _document(issuer), "the issuer's document")
    if found.get("issuer") != issuer:
        raise WireFault(f"the issuer {issuer} calls itself {found.get('issuer')!r}")
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if not isinstance(methods, list) or "private_key_jwt" not in methods:
        raise Refused(refuse("unauthenticated", f"the issuer {issuer} takes no agent's own key"))
    return Issuer(issuer, _url(origin, found.get("token_endpoint")), resource), answer


def _document(issuer: str) -> str:
    """RFC 8414 3.1: the well-known path stands before the issuer's own."""
    parts = urlsplit(issuer)
    return urlunsplit((parts.scheme, parts.netloc, ISSUER + parts.path.rstrip("/"), "", ""))


def _url(origin: str, value: Any) -> str:
    """A URL that a document names, where what proves the agent may be shown."""
    if not isinstance(value, str) or not _is_safe(value, urlsplit(origin).scheme):
        raise WireFault(f"{origin} sends us to {value!r} for tokens")
    return value


def _is_safe(url: str, scheme: str) -> bool:
    """TLS; or the scheme that we came by, to this machine itself."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == scheme and is_here(url)))


async def _read(http: httpx.AsyncClient, url: str, what: str) -> tuple[dict[str, Any], httpx.Response]:
    try:
        answer = await http.get(url)
    except httpx.HTTPError as fault:
        raise Disconnected(f"cannot read {url}: {reason_of(fault)}") from None
    if answer.status_code in (401, 403, 404, 410):
        raise Refused(refuse("unauthenticated", f"{what} is not at {url} (HTTP {answer.status_code})"))
    if answer.status_code != 200:
        raise Disconnected(f"HTTP {answer.status_code} from {url}", retry_after_s(answer))
    try:
        return msgspec.json.decode(answer.content, type=dict[str, Any]), answer
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault(f"what stands at {url} is not a JSON object") from None


def retry_after_s(answer: httpx.Response) -> float | None:
    """The wait that an answer asks for, seconds."""
    after = answer.headers.get("retry-after", "")
    return float(after) if after.isdigit() else None
