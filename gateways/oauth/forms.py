"""The sign-in's requests and answers as OAuth writes them: strict forms in, JSON out, errors by OAuth's codes.

1. A parameter stands once, and is text; anything else is invalid_request.
2. An answer that has to do with tokens is kept by no cache.
3. An error says its code and one sentence of ours; never what was sent, and nothing of the inside.

Source: RFC 6749 3.1, 3.2, 5.1, 5.2 and appendix B; RFC 7591 3.2.2.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from broker.wire.refusals import Refusal, refuse_oauth

FORM: Final = "application/x-www-form-urlencoded"
MOST: Final = 64
"""Parameters of one request."""
BUSY: Final = frozenset({"rate_limited", "overloaded", "unavailable", "in_doubt"})


class Reply(msgspec.Struct, frozen=True):
    """An answer in JSON: status, what stands in it, and headers beside those that every answer has."""

    status: int
    value: Any
    headers: dict[str, str] = {}


def read_form(text: str) -> dict[str, str] | Refusal:
    """The parameters of a query or a form; empty ones are as if they were not there (RFC 6749 3.1)."""
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=MOST, errors="strict"
        )
    except ValueError:
        return refuse_oauth("invalid_request", "this is no form")
    form = dict(pairs)
    if len(form) < len(pairs):
        return refuse_oauth("invalid_request", "a parameter stands twice")
    return {name: value for name, value in form.items() if value}


def read_basic(header: str) -> tuple[str, str] | None:
    """Client and secret out of `Authorization: Basic`, each form-encoded (RFC 6749 2.3.1); None for what is none."""
    encoded = header.strip().partition(" ")[2]
    try:
        name, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        return (unquote_plus(name, errors="strict"), unquote_plus(secret, errors="strict")) if colon else None
    except (binascii.Error, ValueError):
        return None


def refused(refusal: Refusal) -> Reply:
    """A refusal as RFC 6749 5.2 says it. Busy is 429 or 503 with Retry-After, since clients know these."""
    error = str(
        refusal.detail.get("error", "temporarily_unavailable" if refusal.code in BUSY else "invalid_request")
    )
    headers: dict[str, str] = {}
    status = refusal.status if refusal.code in BUSY else 400
    if error == "invalid_client":
        status, headers["WWW-Authenticate"] = 401, 'Basic realm="turret"'
    if isinstance(wait_ms := refusal.detail.get("retry_after_ms"), int):
        headers["Retry-After"] = str(max(1, math.ceil(wait_ms / 1000)))
    return Reply(status, {"error": error, "error_description": _plain(refusal.message)}, headers)


def scopes_in(form: Mapping[str, str]) -> list[str] | None:
    """The scopes that a request names; None where it names none."""
    return form["scope"].split() if form.get("scope", "").strip() else None


def _plain(text: str) -> str:
    """error_description has no quotes and no backslashes, and is ASCII (RFC 6749 5.2)."""
    clean = text.replace('"', "'").replace("\\", "/")
    return clean.encode("ascii", "replace").decode()
