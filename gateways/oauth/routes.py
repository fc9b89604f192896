"""The sign-in's endpoints on the public port.

Only forms are taken where OAuth has forms, and only JSON where it has JSON: a page of somebody else's can't have a
browser send anything here that is looked at, and nothing here goes by cookies.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from quart import Quart, Response, request

from broker.app import Caller
from broker.wire import canonical
from broker.wire.refusals import Refusal, refuse_oauth
from gateways import render
from gateways.bodies import is_json
from gateways.caller import connect
from gateways.listen import Network
from gateways.oauth import authorize, forms, token
from gateways.oauth.forms import Reply, refused
from gateways.oauth.server import AUTHORIZE, INTROSPECT, REGISTER, REVOKE, TOKEN, AuthorizationServer

log = logging.getLogger(__name__)
Endpoint = Callable[[AuthorizationServer, Caller, dict[str, str], str | None], Awaitable[Reply]]
PAGE_HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
}
NEVER: Final = {"cache-control": "no-store", "pragma": "no-cache", "referrer-policy": "no-referrer"}
ECHOED: Final = (
    "scope", "contacts", "logo_uri", "tos_uri", "policy_uri", "software_id", "software_version", "application_type",
)  # fmt: skip
"""What a client may say of itself that we do not use; it is told back as it came (RFC 7591 3.2.1)."""


def register(app: Quart, server: AuthorizationServer, *, proxies: Sequence[Network] = ()) -> None:
    """Add the routes."""

    def caller() -> Caller:
        return connect(dict(request.scope), proxies)

    @app.get(AUTHORIZE)
    async def ask() -> Response:
        site, *how = (request.headers.get(f"sec-fetch-{name}", "") for name in ("site", "mode", "dest"))
        if site and how != ["navigate", "document"]:  # what no browser shows to anybody takes no place
            return _response(authorize.NOT_SHOWN.page.encode(), 400, PAGE_HEADERS)
        query = request.query_string.decode("latin-1")
        place = await authorize.authorize(server, caller(), query)
        if isinstance(place, authorize.Stop):
            return _response(place.page.encode(), place.status, PAGE_HEADERS)
        return _response(b"", 303, {"location": place.url})

    for path, endpoint in ((TOKEN, token.token), (REVOKE, token.revoke), (INTROSPECT, token.introspect)):
        app.add_url_rule(path, path, _form(server, caller, endpoint), methods=["POST"])

    @app.post(REGISTER)
    async def register_client() -> Response:
        types = request.headers.getlist("content-type")
        metadata = _object(await _body()) if len(types) == 1 and is_json(types[0]) else None
        if metadata is None:
            return _answer(refused(refuse_oauth("invalid_client_metadata", "send a JSON object in UTF-8")))
        made = await server.ask(caller(), "register_client", metadata=metadata)
        return _answer(refused(made) if isinstance(made, Refusal) else _registered(made, metadata))


def _form(
    server: AuthorizationServer, caller: Callable[[], Caller], endpoint: Endpoint
) -> Callable[[], Awaitable[Response]]:
    """An endpoint that takes a form."""

    async def taken() -> Response:
        types = [each.partition(";")[0].strip().lower() for each in request.headers.getlist("content-type")]
        given = request.headers.getlist("authorization")
        if types != [forms.FORM] or len(given) > 1:
            return _answer(refused(refuse_oauth("invalid_request", f"send one form ({forms.FORM})")))
        form = forms.read_form((await _body()).decode("latin-1"))
        if isinstance(form, Refusal):
            return _answer(refused(form))
        return _answer(await endpoint(server, caller(), form, given[0] if given else None))

    return taken


async def _body() -> bytes:
    return await request.get_data(cache=False, as_text=False, parse_form_data=False)


def _object(body: bytes) -> dict[str, Any] | None:
    """A JSON object in which no member stands twice."""
    value = canonical.read(body)
    return value if isinstance(value, dict) else None


def _registered(made: Any, metadata: dict[str, Any]) -> Reply:
    """What a client is told of itself (RFC 7591 3.2.1)."""
    value = {name: metadata[name] for name in ECHOED if name in metadata}
    uri = {"client_uri": metadata["client_uri"]} if "client_uri" in metadata else {}
    granted = {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
    secret = {} if made.client_secret is None else {"client_secret_expires_at": 0}
    return Reply(201, {**value, **uri, **granted, **msgspec.to_builtins(made), **secret})


def _answer(reply: Reply) -> Response:
    headers = {"content-type": render.JSON_HEADERS[0][1].decode(), **reply.headers}
    return _response(msgspec.json.encode(reply.value), reply.status, headers)


def _response(body: bytes, status: int, headers: dict[str, str]) -> Response:
    response = Response(body, status)
    for name, value in {**NEVER, **headers}.items():
        response.headers[name] = value
    return response
