"""GET /oauth/authorize: a client sends its user here; who is good is led to the consent page.

1. Client and redirect first: what is wrong with these is a page of its own and leads nowhere. Everything else that is
   wrong goes back to the client, with its state and our issuer.
2. Anybody may register a client, so that our address must send nobody to another site who has not been asked: such an
   answer goes by a page that names the site, with a link. On the user's own machine alone it goes by itself.
3. PKCE by S256 and one resource of ours are asked of everybody.

Source: RFC 6749 4.1.1 and 4.1.2.1; RFC 7636 4.3; RFC 8707 2.1; RFC 9207 2; RFC 9700 2.1, 4 and 4.11.2.
"""

import html
from typing import Any, Final
from urllib.parse import quote

import msgspec

from broker.app import Caller
from broker.wire.refusals import Refusal, refuse_oauth
from gateways.oauth import forms
from gateways.oauth.server import AuthorizationServer, Target

CONSENT: Final = "/consent"
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>This sign-in can’t go on</title></head>
<body><main><h1>This sign-in can’t go on</h1><p>%s.</p>
<p>Nothing was allowed and nothing was sent anywhere. Go back to the application and start again there.</p>
</main></body></html>
"""
_ASIDE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>This sign-in can’t go on</title></head>
<body><main><h1>This sign-in can’t go on</h1><p>What the application asks for can’t be taken now, or not as it
asks. Nothing was allowed.</p>
<p>It says that it is at <strong><bdi>%s</bdi></strong>. If you know that site, <a href="%s">go back to it</a>.</p>
</main></body></html>
"""


class Place(msgspec.Struct, frozen=True):
    """Where the user's browser goes now."""

    url: str


class Stop(msgspec.Struct, frozen=True):
    """The page of a request that leads nowhere, or can't be looked at now (429, 503)."""

    page: str
    status: int = 400


async def authorize(server: AuthorizationServer, caller: Caller, query: str) -> Place | Stop:
    """What becomes of a request."""
    form = forms.read_form(query)
    if isinstance(form, Refusal):
        return _stop(form)
    client_id = form.get("client_id")
    if client_id is None:
        return _stop(refuse_oauth("invalid_request", "It does not say which application asks"))
    target = server.target(form.get("resource"))
    wrong = _wrong(form, target)
    document = await _document(server, caller, client_id)
    if isinstance(document, Refusal):
        return _stop(document)
    begun = await server.ask(
        caller,
        "begin_authorization",
        client_id=client_id,
        issuer=server.issuer,
        redirect_uri=form.get("redirect_uri"),
        document=document,
        state=form.get("state"),
        challenge=form.get("code_challenge"),
        scopes=forms.scopes_in(form) or list(target.scopes if target is not None else ()),
        resource=target.resource if target is not None else None,
        wrong=wrong,
    )
    if isinstance(begun, Refusal):
        return _stop(begun)
    if begun.ask is not None:
        return Place(f"{CONSENT}?ask={quote(begun.ask)}")
    if begun.host is None:
        return Place(begun.redirect)
    return Stop(_ASIDE % (html.escape(begun.host), html.escape(begun.redirect)))


def _wrong(form: dict[str, str], target: Target | None) -> dict[str, str] | None:
    """What is wrong with the request but for client and redirect, as the client is told it (pure)."""
    checks = (
        ("request" in form, "request_not_supported", "request objects are not taken"),
        ("request_uri" in form, "request_uri_not_supported", "request objects are not taken"),
        ("response_type" not in form, "invalid_request", "response_type is missing"),
        (form.get("response_type") != "code", "unsupported_response_type", "response_type is code"),
        (form.get("response_mode", "query") != "query", "invalid_request", "response_mode is query"),
        ("code_challenge" not in form, "invalid_request", "code_challenge is missing (PKCE)"),
        (form.get("code_challenge_method") != "S256", "invalid_request", "code_challenge_method is S256"),
        (target is None, "invalid_target", "resource is none of this server's"),
        ("none" in form.get("prompt", "").split(), "login_required", "a person has to be asked"),
    )
    found = next(((error, why) for bad, error, why in checks if bad), None)
    return None if found is None else {"error": found[0], "error_description": found[1]}


async def _document(
    server: AuthorizationServer, caller: Caller, client_id: str
) -> dict[str, Any] | Refusal | None:
    """The document of a client whose id is a URL; None for other ids."""
    if not client_id.startswith("https://"):
        return None
    found = await server.documents.find(client_id, caller.address) if len(client_id) <= 2048 else None
    return (
        refuse_oauth("invalid_client", "The application's document can't be had") if found is None else found
    )


def _stop(refusal: Refusal) -> Stop:
    message = refusal.message[:1].upper() + refusal.message[1:]
    return Stop(_PAGE % html.escape(message), refusal.status if refusal.code in forms.BUSY else 400)


NOT_SHOWN: Final = _stop(refuse_oauth("invalid_request", "It was asked for by a page, and not by you"))
"""A page's image, frame or script asks: whose makers would have so many wait that the user's own has no place."""
