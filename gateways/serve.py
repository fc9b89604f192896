"""The composition root: configuration → store → broker → doors, in one nursery.

SIGTERM or Ctrl-C: not ready at once, no new connections, what was accepted is finished, sockets close with 1012 and
a retry hint, and the process ends within ten seconds whatever clients do (wire.md, Streams).
"""

import gc
import logging
import os
import signal
import sqlite3
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from broker.app import Broker, open_broker
from broker.clock import Clock, LoopClock
from broker.config import Settings
from broker.store.port import InUse, NotAStore, SchemaTooNew, Unavailable
from broker.store.sqlite import SqliteStore
from broker.wire.refusals import refuse
from gateways import descriptors, logs
from gateways.caller import read_proxies
from gateways.configure import (
    OPERATOR,
    ConfigError,
    Configuration,
    ServeOptions,
    is_loopback,
    load,
    split_bind,
)
from gateways.console import routes
from gateways.courier import Courier, Resolver
from gateways.dealing import serve_dealing
from gateways.gate import Gate
from gateways.headfile import HeadFile
from gateways.http import serve_http, tls_context
from gateways.keyfile import is_open_to_all
from gateways.listen import Bounds, Network
from gateways.mcp.endpoint import McpApp, mcp_app
from gateways.mcp.protected import Protected
from gateways.measured import measured
from gateways.metrics import Metrics
from gateways.notify import READY, STOPPING, Notifier
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import SigningKeys, SignInKeyError
from gateways.oauth.metadata import Resources, origins_of
from gateways.oauth.outside import Tokens, open_tokens
from gateways.oauth.server import AuthorizationServer
from gateways.operator.server import OperatorApp, Pages, operator_app
from gateways.operator.token import OperatorToken, WeakToken, find_token
from gateways.outbound import Outbound
from gateways.sockets import Sockets
from gateways.traces import CanNotTrace, Traces, open_traces
from gateways.web import metrics_app, web_app
from gateways.websocket import ws_app
from gateways.wirekeys import WireKeyError, open_keyring
from gateways.wrappers import Origins

log = logging.getLogger("turret")
BACKLOG: Final = 1024
UNSAFE_CONNECTIONS: Final = 100_000
"""Connections of a port with --unsafe-limits; none are counted by address, since loopback is exempt."""
NO_OPERATORS: Final = (
    "no operators' port: it needs a token (turret operator-token --out FILE, then --operator-token-file FILE)"
)
POSTS: Final = 64
"""Requests to webhooks under way."""
STOP_S: Final = 8.0
"""After this the doors are closed whatever they still do; the store then finishes its commit."""


class ServeError(Exception):
    """The broker can't be served; the message is one line for a person."""


class Ready(msgspec.Struct, frozen=True):
    """What is told once the broker takes connections."""

    ready: bool
    http: str
    dealing: str
    operator: str | None
    """The operators' address; None where there is no token for it."""
    pk: str


class _Operators(msgspec.Struct, frozen=True):
    """The operators' port, before it takes connections."""

    app: OperatorApp
    listeners: list[trio.SocketListener]
    url: str
    tls: ssl.SSLContext | None


def run_serve(config: Path | None, flags: Mapping[str, Any], *, as_json: bool = False) -> int:
    """Serve until a signal says stop; returns the exit code. One clear line on stderr for what can't be used."""
    descriptors.take_all()
    descriptors.keep_quiet()
    code = 0
    try:
        configuration = load(config, os.environ, flags)
        logs.configure(configuration.settings.log)
        token = _operator_token(configuration.serve)
        trio.run(partial(serve, configuration, token, announce=partial(_announce, as_json=as_json)))
    except* (ConfigError, CanNotTrace, ServeError, SignInKeyError, WireKeyError) as errors:
        for error in _leaves(errors):
            print(f"turret: {error}", file=sys.stderr)
        code = 2
    return code


def _operator_token(options: ServeOptions) -> OperatorToken | None:
    """The operators' token, which is then taken out of the environment: what we start need not have it."""
    try:
        return find_token(options.operator_token_file, os.environ)
    except WeakToken as error:
        raise ServeError(str(error)) from None
    except OSError as error:
        raise ServeError(f"{options.operator_token_file}: {error.strerror}") from None
    finally:
        os.environ.pop(OPERATOR, None)


async def serve(
    configuration: Configuration,
    operators: OperatorToken | None = None,
    *,
    announce: Callable[[Ready], None] = lambda _: None,
) -> None:
    """Keep a broker running until SIGTERM or SIGINT; with `operators`, their port too. Raises ServeError,
    SignInKeyError, WireKeyError, ConfigError, alone or grouped."""
    options = configuration.serve
    try:
        proxies = read_proxies(options.behind_proxy)
        tls = tls_context(options.tls_cert, options.tls_key) if options.tls_cert and options.tls_key else None
    except (ValueError, OSError) as error:
        raise ServeError(str(error)) from None
    for file in filter(None, (options.tls_key, options.issuer_secret_file, options.operator_token_file)):
        if is_open_to_all(Path(file)):  # refused would be too much: some containers know no other way
            log.warning("%s can be read by everybody on this machine: chmod o-r %s", file, file)
    clock = LoopClock()
    async with open_store(Path(options.data)) as store:
        try:
            keyring = await open_keyring(Path(options.data), store, clock.now_ms())
            async with (
                open_issuer(options, clock) as tokens,
                open_traces(configuration.settings.trace, proxies) as traces,
                open_broker(
                    configuration.settings,
                    traces.store(store),
                    clock,
                    keyring,
                    keeper=HeadFile(Path(options.data)),
                    courier=traces.courier(open_courier(configuration.settings)),
                ) as broker,
            ):
                await _serve_doors(
                    configuration, broker, clock, proxies, tls, tokens, operators, traces, announce
                )
        except* Unavailable as errors:  # a damaged page that the opening did not come upon
            raise ServeError(f"{options.data}: {_leaves(errors)[0]}") from None


def open_courier(settings: Settings) -> Courier:
    """The way out to webhooks. From here on names are looked up in threads of their own, whoever asks."""
    trio.socket.set_custom_hostname_resolver(Resolver())
    loopback = settings.webhooks.allow_loopback
    if loopback:
        log.warning("webhooks.allow_loopback: agents may have events sent to any port of this machine")
    return Courier(Outbound(loopback=loopback, at_once=POSTS))


@asynccontextmanager
async def open_store(directory: Path) -> AsyncIterator[SqliteStore]:
    """The embedded store of a data directory; closed in any case. Raises ServeError."""
    try:
        store = await SqliteStore.open(directory)
    except (InUse, NotAStore, SchemaTooNew, Unavailable) as error:
        raise ServeError(str(error)) from None
    except OSError as error:
        raise ServeError(f"{directory}: {error.strerror}") from None
    except sqlite3.Error as error:
        raise ServeError(f"{directory}: the store can't be opened: {error}") from None
    try:
        yield store
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_S):
            await store.aclose()


@asynccontextmanager
async def open_issuer(options: ServeOptions, clock: Clock) -> AsyncIterator[Tokens | None]:
    """The judge of an outside issuer's tokens, where one is set; it is asked when the first token comes. Raises
    ServeError."""
    if options.issuer is None:
        yield None
        return
    secret = _read_secret(options.issuer_secret_file) if options.issuer_secret_file is not None else ""
    async with open_tokens(options.issuer, options.issuer_client, secret, clock) as tokens:
        yield tokens


def _read_secret(file: str) -> str:
    try:
        secret = Path(file).read_text("utf-8").strip()
    except OSError as error:
        raise ServeError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ServeError(f"{file}: a secret is text in UTF-8") from None
    if not secret:
        raise ServeError(f"{file}: there is no secret in it")
    return secret


def _resources(options: ServeOptions, http: str) -> Resources | None:
    """The faces as protected resources, at the URL where clients find us; None where that is not known."""
    local = options.public_url is None and is_loopback(split_bind(options.bind)[0])
    if options.public_url is None and not local:
        log.warning("without --public-url nobody signs in: tokens are made for the URL that clients use")
        return None
    return Resources(issuer=options.issuer or http, origins=origins_of(http, loopback=local))


def _sign_in(
    options: ServeOptions, broker: Broker, clock: Clock, resources: Resources | None
) -> AuthorizationServer | None:
    """The embedded authorization server, where no outside issuer is set. Raises SignInKeyError."""
    if options.issuer is not None or resources is None:
        return None
    keys = SigningKeys.open(Path(options.data), clock.now_ms())
    return AuthorizationServer(broker, clock, keys, resources, Documents(Outbound(), clock))


async def _serve_doors(
    configuration: Configuration,
    broker: Broker,
    clock: Clock,
    proxies: tuple[Network, ...],
    tls: ssl.SSLContext | None,
    tokens: Tokens | None,
    operators: OperatorToken | None,
    traces: Traces,
    announce: Callable[[Ready], None],
) -> None:
    options, settings = configuration.serve, configuration.settings
    http_listeners = await _listen(options.bind)
    dealing_listeners = await _listen(options.dealing_bind)
    metrics_listeners = await _listen(options.metrics_bind) if options.metrics_bind else []
    metrics = Metrics(broker)
    pages = (partial(routes.register, counts=metrics.calls),)
    theirs = await _open_operators(options, broker, operators, pages, proxies, tls)
    http = (options.public_url or _url("https" if tls else "http", http_listeners)).rstrip("/")
    dealing = options.dealing_url or _url("wss" if tls else "ws", dealing_listeners)
    broker.mcp_url, broker.dealing_url = f"{http}/mcp", dealing
    counted, sockets = traces.calls(measured(broker, metrics)), Sockets()
    shutdown = trio.Event()
    bounds = Bounds(connections=UNSAFE_CONNECTIONS) if settings.unsafe_limits else Bounds()
    resources = _resources(options, http)
    sign_in = _sign_in(options, counted, clock, resources)
    protected, gate = _guard(broker, resources, sign_in or tokens)
    mcp = mcp_app(counted, proxies=proxies, protected=protected)
    _feed(metrics, sockets, mcp)
    app = web_app(
        counted,
        None if metrics_listeners else metrics,
        mcp_app=mcp,
        ws_app=ws_app(counted, shutdown=shutdown, proxies=proxies, clock=clock, gate=gate, sockets=sockets),
        origins=Origins(public_url=options.public_url, allowed=options.allowed_origins),
        proxies=proxies,
        resources=resources,
        sign_in=sign_in,
        gate=gate,
    )
    both: dict[str, Any] = {"shutdown": shutdown, "proxies": proxies, "bounds": bounds, "sockets": sockets}
    bots: dict[str, Any] = {
        "ssl_context": tls,
        "origins": options.allowed_origins,
        "clock": clock,
        "gate": gate,
    }
    doors = [
        partial(serve_http, traces.requests(app), http_listeners, settings, tls=tls, **both),
        partial(serve_dealing, counted, dealing_listeners, **bots, **both),
    ]
    if metrics_listeners:
        figures = metrics_app(counted, metrics)
        doors.append(partial(serve_http, figures, metrics_listeners, settings, shutdown=shutdown))
    if theirs is not None:
        doors.append(partial(serve_http, theirs.app, theirs.listeners, settings, tls=theirs.tls, **both))
    ready = Ready(True, http, dealing, theirs.url if theirs else None, broker.pk)
    stop = partial(_drain, broker, (mcp, theirs.app) if theirs else (mcp,), shutdown)
    await _run_doors(doors, metrics, partial(announce, ready), stop)


async def _run_doors(
    doors: Sequence[Callable[..., Awaitable[None]]],
    metrics: Metrics,
    announce: Callable[[], None],
    stop: Callable[[], None],
) -> None:
    """Open the doors one after the other, say so, and keep them open until a signal says stop; then for STOP_S."""
    notifier = Notifier()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(metrics.sample_lag)
        nursery.start_soon(notifier.keep_alive)
        async with trio.open_nursery() as opened:
            for door in doors:
                await opened.start(door)
            _settle_memory()
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                announce()
                notifier.tell(READY)
                await anext(aiter(signals))
            notifier.tell(STOPPING)
            stop()
            opened.cancel_scope.deadline = trio.current_time() + STOP_S
        nursery.cancel_scope.cancel()


def _guard(
    broker: Broker, resources: Resources | None, judge: AuthorizationServer | Tokens | None
) -> tuple[Protected, Gate] | tuple[None, None]:
    """Who looks at tokens at the faces of MCP and at the other doors; nobody where none are taken."""
    if resources is None or judge is None:
        return None, None
    bearers = Bearers(broker, judge)
    return Protected(resources, bearers), Gate(bearers, resources)


def _feed(metrics: Metrics, sockets: Sockets, mcp: McpApp) -> None:
    """What the doors know for the figures."""
    metrics.feed("turret_connections", sockets.by_door)
    metrics.feed("turret_outbox_bytes", sockets.waiting_bytes)
    metrics.feed("turret_mcp_sessions", lambda: mcp.sessions.statistics().sessions)


def _settle_memory() -> None:
    """Nothing of what the start has made goes away, so the collector need not look at it again and again.

    It still comes, since there are cycles, but for its youngest only every 20,000 objects and not every 700: what an
    envelope makes is gone by then without it. (Measured by bench.dealers: 5% less CPU an envelope.)
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _drain(broker: Broker, apps: Sequence[McpApp | OperatorApp], shutdown: trio.Event) -> None:
    """Begin to stop: not ready, streams end with what was committed, doors finish what is under way."""
    log.info("stopping")
    broker.end_streams(refuse("unavailable", "the broker is restarting; come back with your last cursor"))
    for app in apps:
        app.drain()
    shutdown.set()


async def _open_operators(
    options: ServeOptions,
    broker: Broker,
    token: OperatorToken | None,
    pages: Sequence[Pages],
    proxies: tuple[Network, ...],
    tls: ssl.SSLContext | None,
) -> _Operators | None:
    """Listen for operators; None without a token. On loopback without TLS: its certificate is for another name."""
    if token is None:
        log.info(NO_OPERATORS)
        return None
    here = is_loopback(split_bind(options.operator_bind)[0])
    if not here:
        log.warning("others can reach the operators' port on %s", options.operator_bind)
    secured = None if here else tls
    listeners = await _listen(options.operator_bind)
    url = (options.operator_url or _url("https" if secured else "http", listeners)).rstrip("/")
    ours = options.operator_url if here else url
    app = operator_app(broker, token, url=ours, proxies=proxies, pages=pages)
    return _Operators(app, listeners, url, secured)


async def _listen(bind: str) -> list[trio.SocketListener]:
    host, port = split_bind(bind)
    try:
        return list(await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG))
    except OSError as error:
        raise ServeError(f"cannot listen on {bind}: {error.strerror or error}") from None


def _url(scheme: str, listeners: list[trio.SocketListener]) -> str:
    host, port = listeners[0].socket.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _announce(ready: Ready, *, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(ready).decode(), flush=True)
        return
    print(f"turret: the wire's key   {ready.pk}")
    print(f"turret: MCP, HTTP, SSE   {ready.http}  (MCP at {ready.http}/mcp)")
    print(f"turret: dealing port     {ready.dealing}")
    print(f"turret: operators        {ready.operator or 'none'}", flush=True)


def _leaves(errors: BaseExceptionGroup[Any]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in errors.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found
