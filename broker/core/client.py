"""OAuth clients: what one may say of itself, and where its user may be sent back to (pure).

1. A redirect leads to https or to this user's own machine, and is compared character by character; on the user's
   machine alone the port may be another, since native clients take a free one.
2. What a client says of itself is shown to people: it is short, and has no characters that hide others. A host is
   written as browsers ask for it, so that the one that is shown is the one that is gone to.
3. What we do not know of is passed over; what we know and can't keep is refused.

Source: RFC 7591 2 and 3.2.2; RFC 8252 7.3 and 8.3; RFC 9700 2.1 and 4.1.3; OAuth client ID metadata documents, 3 and 4.
"""

import hmac
import ipaddress
import re
import unicodedata
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from broker.core.secret import digest
from broker.wire.refusals import Refusal, refuse_oauth

Method = Literal["none", "client_secret_basic", "client_secret_post"]
METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
GRANTS: Final = ("authorization_code", "refresh_token")
MOST_REDIRECTS: Final = 10
LONGEST: Final = 2048
"""Characters of one URL."""
ALL_REDIRECTS: Final = 8192
"""Characters of all of a client's redirects together: anybody may register."""
NAME: Final = 100
_URL: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Printable ASCII without blanks, quotes, `<`, `>`, `\\`, `^`, backtick, braces and `|` (RFC 3986 2)."""
_LOOPBACK: Final = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::([0-9]{1,5}))?((?:[/?].*)?)")

_HOST: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
"""A name of a host without escapes: browsers decode these, and `%2e` looks like no dot."""
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of what browsers take for an IPv4 address, whatever stands before it (WHATWG URL, 3.5)."""
_HIDDEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u2800\u3164\uffa0")
"""By their category printable, or a separator, and yet nothing to be seen."""


class Metadata(msgspec.Struct, frozen=True):
    """What a client says of itself, as far as we look."""

    redirect_uris: list[str]
    client_name: str | None = None
    client_uri: str | None = None
    token_endpoint_auth_method: str | None = None
    grant_types: list[str] | None = None
    response_types: list[str] | None = None


class ClientRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client as stored (kind "client"), or as its document says. Times are wall milliseconds."""

    client_id: str
    name: str
    redirects: tuple[str, ...]
    uri: str | None = None
    method: Method = "none"
    secret_hash: str | None = None
    """sha256, hex, of 32 random bytes, so that no salt is needed."""
    made_at: int = 0
    used_at: int | None = None
    """When an owner last consented; None: never yet."""


def described(client_id: str, metadata: Any, *, default: Method) -> ClientRow | Refusal:
    """The client that metadata describes; `default`: how it proves itself where it does not say.

    invalid_redirect_uri or invalid_client_metadata says what is wrong with it.
    """
    try:
        read = msgspec.convert(metadata, Metadata)
    except msgspec.ValidationError as error:
        return refuse_oauth("invalid_client_metadata", f"this is no client's metadata: {error}")
    redirects = tuple(dict.fromkeys(read.redirect_uris))
    if not 0 < len(redirects) <= MOST_REDIRECTS or sum(map(len, redirects)) > ALL_REDIRECTS:
        return refuse_oauth("invalid_redirect_uri", f"name 1 to {MOST_REDIRECTS} redirect_uris")
    wrong = next((why for uri in redirects if (why := wrong_redirect(uri)) is not None), None)
    if wrong is not None:
        return refuse_oauth("invalid_redirect_uri", wrong)
    method: Any = read.token_endpoint_auth_method or default
    if method not in METHODS:
        return refuse_oauth(
            "invalid_client_metadata", f"token_endpoint_auth_method is one of: {', '.join(METHODS)}"
        )
    if "authorization_code" not in (read.grant_types or GRANTS):
        return refuse_oauth("invalid_client_metadata", "grant_types must have authorization_code")
    if "code" not in (read.response_types or ("code",)):
        return refuse_oauth("invalid_client_metadata", "response_types must have code")
    name = (read.client_name or host_of(redirects[0])).strip()
    if not is_plain(name) or not 0 < len(name) <= NAME:
        return refuse_oauth(
            "invalid_client_metadata", f"client_name is 1 to {NAME} characters, all of them seen"
        )
    if read.client_uri is not None and _web(read.client_uri) is None:
        return refuse_oauth("invalid_client_metadata", "client_uri is an https:// URL")
    return ClientRow(client_id, name, redirects, read.client_uri, method)


def wrong_redirect(uri: str) -> str | None:
    """Why a user can't be sent there; None: it is good."""
    if len(uri) > LONGEST or _URL.fullmatch(uri) is None or "#" in uri:
        return "a redirect is a URL in ASCII without a fragment"
    loopback = _LOOPBACK.fullmatch(uri)
    if loopback is not None and 0 < int(loopback[2] or 80) < 65536:
        return None
    parts = _web(uri)
    if parts is None or parts.scheme != "https":
        return "a redirect is https://, or http:// on 127.0.0.1, [::1] or localhost"
    return None


def redirect_of(row: ClientRow, asked: str | None) -> str | None:
    """Where this client's user is sent back to; None: not where it asks for."""
    if asked is None:
        return row.redirects[0] if len(row.redirects) == 1 else None
    if asked in row.redirects:
        return asked
    mine = _without_port(asked)
    known = mine is not None and mine in map(_without_port, row.redirects) and wrong_redirect(asked) is None
    return asked if known else None


def is_loopback(uri: str) -> bool:
    """Whether a redirect leads to the user's own machine, with TLS or without."""
    host = host_of(uri)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def host_of(uri: str) -> str:
    """The host of a redirect that was found good, as it is shown."""
    return urlsplit(uri).hostname or ""


def wrong_client_url(url: str) -> str | None:
    """Why a client_id that begins with https:// names no document; None: it may."""
    parts = _web(url)
    if parts is None or parts.scheme != "https" or parts.path in ("", "/") or "#" in url:
        return "a client_id that is a URL is https:// with a path, and no fragment"
    if any(each in (".", "..") for each in parts.path.split("/")) or "%2e" in url.lower():
        return "a client_id that is a URL has no dot segments"
    return None


def proves(row: ClientRow, secret: str | None) -> bool:
    """Whether a client has proved that it is this one: by its secret, or by having none."""
    if row.secret_hash is None:
        return secret is None
    return secret is not None and hmac.compare_digest(row.secret_hash, digest(secret))


def is_plain(text: str) -> bool:
    """Whether nothing in a text is hidden or turns it around: no control, format or private characters, no blank ones;
    and something is to be seen."""
    kinds = {unicodedata.category(mark)[0] for mark in text}
    return "C" not in kinds and bool(kinds & set("LNPS")) and _HIDDEN.isdisjoint(text)


def _without_port(uri: str) -> tuple[str, str] | None:
    found = _LOOPBACK.fullmatch(uri)
    return None if found is None else (found[1], found[3])


def _web(url: str) -> SplitResult | None:
    """A URL of the web with a host, without a user in it; else None."""
    if len(url) > LONGEST or _URL.fullmatch(url) is None:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    good = parts.scheme in ("https", "http") and "@" not in parts.netloc and port != 0
    return parts if good and _is_host(parts) and url.startswith(f"{parts.scheme}://") else None


def _is_host(parts: SplitResult) -> bool:
    """Whether the host is a name or an address in the one form that everybody reads alike."""
    host = parts.hostname or ""
    if "[" in parts.netloc:  # urlsplit has looked that it is an address of IPv6
        return True
    return _HOST.fullmatch(host) is not None and (
        _NUMBER.fullmatch(host.rpartition(".")[2]) is None or _is_ipv4(host)
    )


def _is_ipv4(host: str) -> bool:
    try:
        return str(ipaddress.IPv4Address(host)) == host
    except ValueError:
        return False
