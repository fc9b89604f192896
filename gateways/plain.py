"""`POST /v1/<tool>`: params as a JSON object; 200 with the result, or the refusal with its status.

1. A body is taken only as application/json: a browser's form or a plain-text post from a foreign page never
   reaches a tool.
2. The operators' tools do not exist here: they have a port of their own.
3. The body goes to the broker as it came: what it may hold is judged there, once. Only an Idempotency-Key header is
   added to it, where the tool takes a key.
4. Whoever shows a good token for a tool of the network may send more, so that it is asked who it is before its body
   is read; who shows a bad one is told so then, and not that its body is too large.

Source: wire.md, Tools of the wire (Plain HTTP), Limits. Host and Origin were checked before (gateways.wrappers).
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from quart import Quart, Response, request

from broker.apart import LARGE, apart
from broker.app import Broker
from broker.wire import canonical
from broker.wire.refusals import Refusal, refuse
from gateways import render
from gateways.bodies import is_json
from gateways.caller import identify
from gateways.gate import Gate, refused
from gateways.listen import Network, Scope
from gateways.wrappers import WHO, Limit, Reply

PREFIX: Final = "/v1/"
_KEY: Final = re.compile(r'"([!#-~]{1,128})"|([!-~]{1,128})')
"""An Idempotency-Key: a quoted string, as the draft has it, or bare, as most send it."""


def limit(broker: Broker, *, proxies: Sequence[Network] = (), gate: Gate | None = None) -> Limit:
    """How large a request's body may be: `limits.token_bytes` for a tool that needs a token from who shows a good
    one, `limits.frame_bytes` for all others; the refusal of a token that is no good, so that its bearer renews it."""
    limits = broker.settings.limits

    async def most(scope: Scope) -> int | Reply:
        path: str = scope["path"]
        tool = broker.tools.get(path.removeprefix(PREFIX).removesuffix("/"))
        bearing = any(
            name.lower() == b"authorization" and value[:7].lower() == b"bearer "
            for name, value in scope["headers"]
        )
        if gate is None or not bearing or not path.startswith(PREFIX) or tool is None or tool.scope is None:
            return limits.frame_bytes
        who = scope[WHO] = await identify(broker, scope, proxies, bearer=gate.admit)
        if isinstance(who, Refusal):
            status, headers, body = refused(who, scope, gate)
            return status, [*headers, (b"cache-control", b"no-store")], body
        return limits.token_bytes

    return most


def register(
    app: Quart, broker: Broker, *, proxies: Sequence[Network] = (), gate: Gate | None = None
) -> None:
    """Add the route. Cancelled when the client leaves: a command that
    reached the broker goes on, and the identical request gets the stored answer."""
    bearer = gate.admit if gate is not None else None

    @app.post("/v1/<tool>")
    async def v1(tool: str) -> Response:
        scope: Scope = dict(request.scope)

        def no(refusal: Refusal) -> Response:
            return answer(*refused(refusal, scope, gate))

        types = request.headers.getlist("content-type")
        if len(types) != 1 or not is_json(types[0]):
            return no(refuse("bad_request", "send application/json in UTF-8", status=415))
        caller = scope.get(WHO) or await identify(broker, scope, proxies, bearer=bearer)
        if isinstance(caller, Refusal):
            return no(caller)
        if tool not in broker.tools or broker.tools[tool].face == "operator":
            return no(refuse("not_found", "there is no tool of this name"))
        body = await request.get_data(cache=False, as_text=False, parse_form_data=False)
        keys = request.headers.getlist("idempotency-key")
        keyed: bytes | Refusal = body
        if keys and broker.tools[tool].keyed:
            keyed = with_key(body, keys) if len(body) <= LARGE else await apart(with_key, body, keys)
        if isinstance(keyed, Refusal):
            return no(keyed)
        try:
            result = await broker.call(caller, tool, keyed)
            if isinstance(result, Refusal):
                return no(result)
            return answer(200, [*render.JSON_HEADERS], msgspec.json.encode(result))
        except Exception as fault:
            return answer(*render.http_fault(render.incident(fault, f"POST /v1/{tool}")))


def with_key(body: bytes, headers: Sequence[str]) -> bytes | Refusal:
    """The params with the Idempotency-Key header as their idempotency_key. What is no JSON object stays as it is."""
    found = _KEY.fullmatch(headers[0].strip()) if len(headers) == 1 else None
    if found is None:
        return refuse("bad_request", "send one Idempotency-Key of 1 to 128 printable characters")
    key = found[1] or found[2]
    members = canonical.members(body)
    if isinstance(members, Refusal):
        return body
    text = msgspec.json.encode(key)
    if "idempotency_key" in members:
        if bytes(members["idempotency_key"]) == text:
            return body
        return refuse(
            "bad_request", "the Idempotency-Key header and idempotency_key differ", path="idempotency_key"
        )
    return b'{"idempotency_key":%b%b' % (text, (b"," if members else b"") + body.lstrip()[1:])


def answer(status: int, headers: render.Headers, body: bytes) -> Response:
    """A Quart response out of a rendered one; nothing that a tool answers may be cached."""
    response = Response(body, status)
    del response.headers["content-type"]
    for name, value in [*headers, (b"cache-control", b"no-store")]:
        response.headers.add(name.decode(), value.decode("latin-1"))
    return response
