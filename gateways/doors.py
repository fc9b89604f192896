"""The doors of one broker: for each port where it listens, what stands behind it, and who is let in.

A door is bound when it is opened, and takes connections when it is served: so what can't be had is known before anybody
is told of the others. All doors share the counts, the bounds on connections, and the end.
"""

import errno
import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from broker.app import Broker
from broker.clock import Clock
from broker.wire.refusals import refuse
from gateways.configure import Configuration, ServeOptions, is_loopback, split_bind
from gateways.console import routes as console
from gateways.dealing import serve_dealing
from gateways.gate import Gate
from gateways.http import serve_http
from gateways.listen import App, Bounds, Network
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.measured import measured
from gateways.metrics import Metrics
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import SigningKeys
from gateways.oauth.metadata import Resources, origins_of
from gateways.oauth.outside import Tokens
from gateways.oauth.server import AuthorizationServer
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from gateways.outbound import Outbound
from gateways.sockets import Sockets
from gateways.traces import NoTraces, Traces
from gateways.web import metrics_app, web_app
from gateways.websocket import ws_app
from gateways.wrappers import Origins

log = logging.getLogger("turret")
BACKLOG: Final = 1024
UNSAFE_CONNECTIONS: Final = 100_000
"""Connections of a port with --unsafe-limits; none are counted by address, since loopback is exempt."""
NO_OPERATORS: Final = (
    "no operators' port: it needs a token (turret operator-token --out FILE, then --operator-token-file FILE)"
)


class ServeError(Exception):
    """The broker can't be served; the message is one line for a person."""


class Door(msgspec.Struct, frozen=True):
    """A port that is bound. Nobody closes its listeners but `serve`."""

    url: str
    serve: Callable[..., Awaitable[None]]
    """For `nursery.start`, which returns when connections are taken."""


class Doors:
    """Opens the ports, each once. All raise ServeError for an address that can't be had."""

    def __init__(
        self,
        configuration: Configuration,
        broker: Broker,
        clock: Clock,
        *,
        proxies: tuple[Network, ...] = (),
        tls: ssl.SSLContext | None = None,
        traces: Traces | None = None,
    ) -> None:
        self._options = configuration.serve
        self._settings = configuration.settings
        self._broker = broker
        self._clock = clock
        self._proxies = proxies
        self._tls = tls
        self._traces = traces if traces is not None else NoTraces()
        self.metrics = Metrics(broker)
        self._counted = self._traces.calls(measured(broker, self.metrics))
        self._sockets = Sockets()
        self._bounds = Bounds(connections=UNSAFE_CONNECTIONS) if self._settings.unsafe_limits else Bounds()
        self._shutdown = trio.Event()
        self._drains: list[Callable[[], None]] = []
        self._gate: Gate | None = None
        self.metrics.feed("turret_connections", self._sockets.by_door)
        self.metrics.feed("turret_outbox_bytes", self._sockets.waiting_bytes)

    async def open_public(self, outside: Tokens | None = None) -> Door:
        """HTTP, MCP, SSE, WebSocket, A2A and the pages. `outside` judges tokens where they are another issuer's."""
        options, broker = self._options, self._counted
        listeners = await _listen(options.bind, "--bind")
        url = (options.public_url or _url("https" if self._tls else "http", listeners)).rstrip("/")
        self._broker.mcp_url = f"{url}/mcp"
        resources = protected_resources(options, url)
        sign_in = self._open_sign_in(resources)
        judge, protected = sign_in or outside, None
        if resources is not None and judge is not None:
            bearers = Bearers(self._broker, judge)
            protected, self._gate = Protected(resources, bearers), Gate(bearers, resources)
        mcp = mcp_app(broker, proxies=self._proxies, protected=protected)
        self._drains.append(mcp.drain)
        self.metrics.feed("turret_mcp_sessions", lambda: mcp.sessions.statistics().sessions)
        ws = ws_app(
            broker,
            shutdown=self._shutdown,
            proxies=self._proxies,
            clock=self._clock,
            gate=self._gate,
            sockets=self._sockets,
        )
        app = web_app(
            broker,
            None if options.metrics_bind else self.metrics,
            mcp_app=mcp,
            ws_app=ws,
            origins=Origins(public_url=options.public_url, allowed=options.allowed_origins),
            proxies=self._proxies,
            resources=resources,
            sign_in=sign_in,
            gate=self._gate,
        )
        return Door(url, self._http(self._traces.requests(app), listeners, "http", self._tls))

    async def open_dealing(self) -> Door:
        """WebSocket for fast bots. It takes the tokens that the public port takes, if that was opened before."""
        options = self._options
        listeners = await _listen(options.dealing_bind, "--dealing-bind")
        url = options.dealing_url or _url("wss" if self._tls else "ws", listeners)
        self._broker.dealing_url = url
        serve = partial(
            serve_dealing,
            self._counted,
            listeners,
            shutdown=self._shutdown,
            ssl_context=self._tls,
            proxies=self._proxies,
            origins=options.allowed_origins,
            bounds=self._bounds,
            clock=self._clock,
            gate=self._gate,
            sockets=self._sockets,
        )
        return Door(url, serve)

    async def open_metrics(self) -> Door | None:
        """Figures for whoever reaches the address, without TLS; None where no such address is set."""
        if self._options.metrics_bind is None:
            return None
        listeners = await _listen(self._options.metrics_bind, "serve.metrics_bind")
        app = metrics_app(self._counted, self.metrics)
        serve = partial(serve_http, app, listeners, self._settings, shutdown=self._shutdown)
        return Door(_url("http", listeners), serve)

    async def open_operators(self, token: OperatorToken | None) -> Door | None:
        """The operators' port; None without a token. On loopback without TLS: its certificate is for another name."""
        options = self._options
        if token is None:
            log.info(NO_OPERATORS)
            return None
        here = is_loopback(split_bind(options.operator_bind)[0])
        if not here:
            log.warning("others can reach the operators' port on %s", options.operator_bind)
        tls = None if here else self._tls
        listeners = await _listen(options.operator_bind, "--operator-bind")
        url = (options.operator_url or _url("https" if tls else "http", listeners)).rstrip("/")
        app = operator_app(
            self._counted,
            token,
            url=options.operator_url if here else url,
            proxies=self._proxies,
            pages=(partial(console.register, counts=self.metrics.calls),),
        )
        self._drains.append(app.drain)
        return Door(url, self._http(app, listeners, "operators", tls))

    def drain(self) -> None:
        """Begin to stop: not ready, streams end with what was committed, doors finish what is under way."""
        log.info("stopping")
        self._broker.end_streams(
            refuse("unavailable", "the broker is restarting; come back with your last cursor")
        )
        for drain in self._drains:
            drain()
        self._shutdown.set()

    def _http(
        self, app: App, listeners: list[trio.SocketListener], door: str, tls: ssl.SSLContext | None
    ) -> Callable[..., Awaitable[None]]:
        return partial(
            serve_http,
            app,
            listeners,
            self._settings,
            shutdown=self._shutdown,
            bounds=self._bounds,
            tls=tls,
            proxies=self._proxies,
            sockets=self._sockets,
            door=door,
        )

    def _open_sign_in(self, resources: Resources | None) -> AuthorizationServer | None:
        """The embedded authorization server, where no outside issuer is set. Raises SignInKeyError."""
        if self._options.issuer is not None or resources is None:
            return None
        keys = SigningKeys.open(Path(self._options.data), self._clock.now_ms())
        return AuthorizationServer(
            self._counted, self._clock, keys, resources, Documents(Outbound(), self._clock)
        )


def protected_resources(options: ServeOptions, http: str) -> Resources | None:
    """The faces as protected resources, at the URL where clients find us; None where that is not known."""
    local = options.public_url is None and is_loopback(split_bind(options.bind)[0])
    if options.public_url is None and not local:
        log.warning("without --public-url nobody signs in: tokens are made for the URL that clients use")
        return None
    return Resources(issuer=options.issuer or http, origins=origins_of(http, loopback=local))


async def _listen(bind: str, named_by: str) -> list[trio.SocketListener]:
    """Raises ServeError, which says what to do where that can be known; `named_by`: what the address is given by."""
    host, port = split_bind(bind)
    try:
        return list(await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG))
    except OSError as error:
        advice = {
            errno.EADDRINUSE: f"; another program has it, {named_by} names another port",
            errno.EACCES: "; a port below 1024 needs CAP_NET_BIND_SERVICE",
            errno.EADDRNOTAVAIL: f"; {named_by} takes addresses of this machine alone",
        }.get(error.errno or 0, "")
        raise ServeError(f"cannot listen on {bind}: {error.strerror or error}{advice}") from None


def _url(scheme: str, listeners: list[trio.SocketListener]) -> str:
    host, port = listeners[0].socket.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
