"""`POST /agents/register`: an agent registers itself (network.md, Sign-in). 201 with the agent and its claim code.

1. Only JSON is taken: a page of somebody else's can't have a browser register anything.
2. The proof inside is the authority; no token is looked at. The identical request again is answered 200, with the same.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from quart import Quart, Response, request

from broker.app import Broker
from broker.wire.refusals import Refusal, refuse
from gateways import render
from gateways.bodies import is_json
from gateways.caller import connect
from gateways.listen import Network

PATH: Final = "/agents/register"


def register(app: Quart, broker: Broker, *, proxies: Sequence[Network] = ()) -> None:
    """Add the route. Cancelled when the client leaves: the registration goes on, and the identical request gets its
    answer."""

    @app.post(PATH)
    async def register_agent() -> Response:
        types = request.headers.getlist("content-type")
        if len(types) != 1 or not is_json(types[0]):
            return _answer(*render.http(refuse("bad_request", "send application/json in UTF-8", status=415)))
        body = await request.get_data(cache=False, as_text=False, parse_form_data=False)
        try:
            made = await broker.signin(connect(dict(request.scope), proxies), "register_agent", body)
        except Exception as fault:
            return _answer(*render.http_fault(render.incident(fault, f"POST {PATH}")))
        if isinstance(made, Refusal):
            return _answer(*render.http(made))
        return _answer(200 if "replayed" in made else 201, [*render.JSON_HEADERS], msgspec.json.encode(made))


def _answer(status: int, headers: render.Headers, body: bytes) -> Response:
    response = Response(body, status)
    for name, value in [*headers, (b"cache-control", b"no-store")]:
        response.headers[name.decode()] = value.decode("latin-1")
    return response
