"""All HTTP doors of the public port as one ASGI application.

1. Before every door: faults contained, Host and Origin checked, preflights answered (gateways.wrappers).
2. /mcp, /rings and /ws are raw ASGI callables; the rest is Quart-Trio.
3. Every error of the framework is a refusal or an incident in JSON; it never shows a page of its own.
"""

from collections.abc import Sequence
from typing import Final

import trio
from quart import Response
from quart.wrappers import base
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from broker.app import Broker
from broker.wire.refusals import refuse
from gateways import artifacts, metrics, plain, registering, render, sse, trialreports, wellknown
from gateways.a2a.card import PREFIX as A2A
from gateways.a2a.card import Place
from gateways.a2a.door import a2a_app
from gateways.gate import Gate
from gateways.identified import identified
from gateways.listen import App, Bounds, Network, Receive, Scope, Send
from gateways.oauth import routes as oauth
from gateways.oauth.metadata import Resources
from gateways.oauth.server import DOCUMENT, JWKS, TOKEN, AuthorizationServer
from gateways.pages import routes
from gateways.transport import strict_transport
from gateways.verifying import route as verifying
from gateways.wrappers import Origins, check_origin, contain, limit_body

MCP: Final = "/mcp"
WS: Final = "/ws"
LEFT: Final[type[Exception]] = getattr(base, "ClientDisconnectedError", trio.BrokenResourceError)
"""How Quart from 0.23 (Python 3.13) says that the client has left. Older ones cancel."""


def web_app(
    broker: Broker,
    figures: metrics.Metrics | None,
    *,
    mcp_app: App | None = None,
    ws_app: App | None = None,
    origins: Origins = Origins(),  # noqa: B008  # frozen
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
    proxies: Sequence[Network] = (),
    resources: Resources | None = None,
    sign_in: AuthorizationServer | None = None,
    gate: Gate | None = None,
) -> App:
    """The application for `serve_http`. `mcp_app` gets every path of /mcp and reads its bodies itself, `ws_app` gets
    /ws. `resources`: the documents for who needs a token; `sign_in`: where it gets one. Without `gate` the other doors
    take none. `figures`: those of /metrics, for who asks from this machine; None: there is no such path."""
    quart = quart_app()
    plain.register(quart, broker, proxies=proxies, gate=gate)
    registering.register(quart, broker, proxies=proxies)
    wellknown.register(quart, broker, origins.public_url)
    artifacts.register(quart, broker, proxies=proxies)
    trialreports.register(quart, broker, proxies=proxies)
    routes.register(quart, broker, proxies=proxies, public_url=origins.public_url)
    verifying.register(quart)
    if resources is not None:
        wellknown.register_resources(quart, resources)
    if sign_in is not None:
        wellknown.register_shared(quart, {DOCUMENT: sign_in.document, JWKS: sign_in.jwks})
        oauth.register(quart, sign_in, proxies=proxies)
    if figures is not None:
        metrics.register(quart, figures, proxies=proxies)
    limit = plain.limit(broker, proxies=proxies, gate=gate)
    framed: App = limit_body(quart, limit, bounds)  # type: ignore[arg-type]  # ASGI
    rings = sse.rings_app(broker, proxies=proxies, gate=gate)
    channels = sse.channels_app(broker, proxies=proxies, gate=gate)
    a2a = a2a_app(broker, _place(broker, resources, sign_in), proxies=proxies, gate=gate, bounds=bounds)
    mcp = mcp_app or framed

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path == MCP or path.startswith(f"{MCP}/"):
            await mcp(scope, receive, send)
        elif path == WS and ws_app is not None:
            await ws_app(scope, receive, send)
        elif path.startswith(sse.PREFIX):
            await rings(scope, receive, send)
        elif path.startswith(sse.CHANNELS):
            await channels(scope, receive, send)
        elif path.startswith(A2A):
            await a2a(scope, receive, send)
        else:
            await framed(scope, receive, send)

    checked = contain(check_origin(dispatch, origins, bounds))
    return identified(strict_transport(checked, origins.public_url), proxies)


def metrics_app(broker: Broker, figures: metrics.Metrics) -> App:
    """The application of a port for metrics alone: /metrics for everybody who reaches it, /healthz and /readyz."""
    quart = quart_app()
    metrics.register(quart, figures, proxies=None)
    wellknown.register_probes(quart, broker)
    framed: App = limit_body(quart, broker.settings.limits.frame_bytes, Bounds())  # type: ignore[arg-type]  # ASGI
    return identified(contain(check_origin(framed, Origins(), Bounds())))


def _place(broker: Broker, resources: Resources | None, sign_in: AuthorizationServer | None) -> Place:
    """Where A2A's cards say that the doors stand, and how one signs in."""
    if resources is None:
        return Place((broker.mcp_url or "").removesuffix(MCP))
    token = f"{sign_in.issuer}{TOKEN}" if sign_in is not None else None
    return Place(resources.origins[0], token, f"{sign_in.issuer}{DOCUMENT}" if sign_in is not None else None)


def quart_app() -> QuartTrio:
    """A Quart-Trio application without its defaults that cut streams, redirect or answer in HTML."""
    app = QuartTrio("gateways", static_folder=None)
    app.config.update(
        RESPONSE_TIMEOUT=None,  # 60 s would cut a stream
        BODY_TIMEOUT=None,  # bodies are read and bounded before (gateways.wrappers)
        MAX_CONTENT_LENGTH=None,
        PROVIDE_AUTOMATIC_OPTIONS=False,
    )
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False

    @app.errorhandler(HTTPException)
    async def refused(error: HTTPException) -> Response:
        if isinstance(error, MethodNotAllowed):
            answer = refuse("bad_request", "this path takes another method", status=405)
            response = plain.answer(*render.http(answer))
            response.headers["allow"] = ", ".join(sorted(error.valid_methods or ()))
            return response
        if error.code == 404:
            return plain.answer(*render.http(render.NOTHING))
        status = {} if error.code is None else {"status": error.code}
        return plain.answer(*render.http(refuse("bad_request", render.NOTHING.message, **status)))

    @app.errorhandler(Exception)
    async def failed(error: Exception) -> Response:
        if isinstance(error, LEFT):  # nobody is there any more to be told, and nothing went wrong
            return Response(status=400)
        return plain.answer(*render.http_fault(render.incident(error, "an HTTP route")))

    return app
