"""`POST /v1/<tool>`: params as a JSON object; 200 with the result, or the refusal with its status.

1. A body is taken only as application/json: a browser's form or a plain-text post from a foreign page never
   reaches a tool.
2. The operators' tools do not exist here: they have a port of their own.
3. The body goes to the broker as it came: what it may hold is judged there, once.

Source: wire.md, Tools of the wire (Plain HTTP). Size and Host were checked before (gateways.wrappers).
"""

from collections.abc import Sequence

import msgspec
from quart import Quart, Response, request

from broker.app import Broker
from broker.wire.refusals import Refusal, refuse
from gateways import render
from gateways.bodies import is_json
from gateways.caller import identify
from gateways.listen import Network


def register(app: Quart, broker: Broker, *, proxies: Sequence[Network] = ()) -> None:
    """Add the route. Cancelled when the client leaves: a command that
    reached the broker goes on, and the identical request gets the stored answer."""

    @app.post("/v1/<tool>")
    async def v1(tool: str) -> Response:
        types = request.headers.getlist("content-type")
        if len(types) != 1 or not is_json(types[0]):
            return answer(*render.http(refuse("bad_request", "send application/json in UTF-8", status=415)))
        caller = await identify(broker, dict(request.scope), proxies)
        if isinstance(caller, Refusal):
            return answer(*render.http(caller))
        if tool not in broker.tools or broker.tools[tool].face == "operator":
            return answer(*render.http(refuse("not_found", "there is no tool of this name")))
        body = await request.get_data(cache=False, as_text=False, parse_form_data=False)
        try:
            result = await broker.call(caller, tool, body)
            if isinstance(result, Refusal):
                return answer(*render.http(result))
            return answer(200, [*render.JSON_HEADERS], msgspec.json.encode(result))
        except Exception as fault:
            return answer(*render.http_fault(render.incident(fault, f"POST /v1/{tool}")))


def answer(status: int, headers: render.Headers, body: bytes) -> Response:
    """A Quart response out of a rendered one; nothing that a tool answers may be cached."""
    response = Response(body, status)
    for name, value in [*headers, (b"cache-control", b"no-store")]:
        response.headers[name.decode()] = value.decode("latin-1")
    return response
