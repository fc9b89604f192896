"""What a browser sends, and what it keeps: one cookie, and forms that only our own pages can have made.

1. The cookie is a secret: of a session, once somebody has signed in, else of the browser alone, so that a sign-in form
   is bound to a browser too. Signing in gives another one.
2. A form carries a token made of that secret (HMAC): a page of others can't know it.
3. Who sends an Origin must send ours, to the port; who says where the request came from (Sec-Fetch-Site) must say
   from here.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from broker.app import Caller
from broker.wire import base64url

TOKEN: Final = "token"  # noqa: S105  # the field's name
OURS: Final = "turret"
"""The name of the owners' cookie."""
FIELDS: Final = 100
"""Fields of one form; ours have fewer, but for many agents and scopes."""
_PURPOSE: Final = b"a form of turret's pages"
_NEXT: Final = frozenset(
    (
        "/owner",
        "/owner/agent",
        "/owner/sessions",
        "/owner/session",
        "/owner/trials",
        "/owner/claim",
        "/owner/requests",
        "/owner/grants",
        "/owner/password",
        "/consent",
        "/directory",
    )
)
"""Where somebody may be led after signing in."""


class Form(msgspec.Struct, frozen=True):
    """The fields of a form or a query, each with its values in order."""

    fields: dict[str, list[str]] = {}

    def one(self, name: str) -> str:
        """The field's first value; empty where there is none."""
        return self.fields.get(name, [""])[0]

    def many(self, name: str) -> list[str]:
        """All its values: boxes that were ticked."""
        return self.fields.get(name, [])


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a browser, whoever is signed in there."""

    caller: Caller
    path: str
    query: Form
    form: Form = Form()
    secret: str
    """The cookie's value, or a fresh one that is set with the answer."""
    fresh: bool
    """Whether the browser sent no cookie."""

    @property
    def token(self) -> str:
        """What this browser's forms carry."""
        return token_of(self.secret)

    @property
    def here(self) -> str:
        """The path with its query, to come back to."""
        pairs = [(name, value) for name, values in self.query.fields.items() for value in values]
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
        return f"{self.path}?{query}" if query else self.path


class Visit(Asked, frozen=True, kw_only=True):
    """A request of an owner's browser."""

    owner_id: str = ""
    """Who is signed in; empty: nobody."""
    email: str = ""


def read_form(text: bytes) -> Form | None:
    """A form (application/x-www-form-urlencoded) or a query; None for what is none, or not UTF-8."""
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        return None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return Form(fields)


def token_of(secret: str) -> str:
    """The token of a browser's forms."""
    return base64url.encode(hmac.digest(secret.encode(), _PURPOSE, hashlib.sha256))


def is_token(given: str, secret: str) -> bool:
    """Whether a form came from a page that this browser was shown."""
    return hmac.compare_digest(given.encode(), token_of(secret).encode())


def new_secret() -> str:
    """The secret of a browser in which nobody is signed in."""
    return secrets.token_urlsafe(32)


def cookie_name(secure: bool, name: str = OURS) -> str:
    """`__Host-`: browsers take it by TLS alone, and from this very host."""
    return f"__Host-{name}" if secure else name


def read_cookie(headers: Sequence[str], secure: bool, name: str = OURS) -> str | None:
    """The secret in the Cookie headers; None where there is none, or nothing of a secret's size."""
    wanted = cookie_name(secure, name)
    for pair in ";".join(headers).split(
        ";"
    ):  # by hand: others on this host may have set what no parser takes
        given, _, value = pair.strip().partition("=")
        if given == wanted and 20 < len(value) < 200 and value.isascii():
            return value
    return None


def write_cookie(secret: str, secure: bool, name: str = OURS, same_site: str = "Lax") -> str:
    """The Set-Cookie header. It ends with the browser's session; the broker ends it before, in any case."""
    tls = "; Secure" if secure else ""
    return f"{cookie_name(secure, name)}={secret}; Path=/; HttpOnly; SameSite={same_site}{tls}"


def is_ours(*, origin: str, site: str, host: str, public_url: str | None) -> bool:
    """Whether a form may have come from our own pages, by the headers Origin, Sec-Fetch-Site and Host ("": absent).

    Which hosts and schemes are ours at all was looked at before (gateways.wrappers); here no other port is.
    """
    if site not in ("", "same-origin", "none"):
        return False
    ours = [each.lower() for each in (host, urlsplit(public_url or "").netloc) if each]
    return not origin or origin.partition("://")[2].lower() in ours


def read_next(text: str) -> str:
    """Where to go after signing in: one of our own pages, else the owner's."""
    if text.isascii() and text.isprintable():
        try:
            parts = urlsplit(text)
        except ValueError:
            return "/owner"
        if parts.path in _NEXT:  # whatever host stood before it
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return "/owner"
