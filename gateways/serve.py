"""The composition root: configuration → store → broker → doors, in one nursery.

SIGTERM or Ctrl-C: not ready at once, no new connections, what was accepted is finished, sockets close with 1012 and
a retry hint, and the process ends within ten seconds whatever clients do (wire.md, Streams).
"""

import gc
import logging
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from broker.app import open_broker
from broker.clock import Clock, LoopClock
from broker.config import BadSetting, Settings
from broker.store.port import InUse, NotAStore, SchemaTooNew, Unavailable
from broker.store.sqlite import SqliteStore
from gateways import descriptors, logs
from gateways.caller import read_proxies
from gateways.configure import (
    OPERATOR,
    ConfigError,
    Configuration,
    ServeOptions,
    load,
)
from gateways.courier import Courier, Fetcher, Resolver
from gateways.doors import Doors, ServeError
from gateways.headfile import HeadFile
from gateways.http import tls_context
from gateways.keyfile import is_open_to_all
from gateways.notify import READY, STOPPING, Notifier
from gateways.oauth.keys import SignInKeyError
from gateways.oauth.outside import Tokens, open_tokens
from gateways.operator.token import OperatorToken, WeakToken, find_token
from gateways.outbound import Outbound
from gateways.safekey import SafeKeyError, open_safe_keys
from gateways.traces import CanNotTrace, open_traces
from gateways.wirekeys import WireKeyError, open_keyring

log = logging.getLogger("turret")
POSTS: Final = 64
"""Requests to webhooks under way."""
STOP_S: Final = 8.0
"""After this the doors are closed whatever they still do; the store then finishes its commit."""


class Ready(msgspec.Struct, frozen=True):
    """What is told once the broker takes connections."""

    ready: bool
    http: str
    dealing: str
    operator: str | None
    """The operators' address; None where there is no token for it."""
    pk: str


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
    except* (
        BadSetting, ConfigError, CanNotTrace, SafeKeyError, ServeError, SignInKeyError, WireKeyError,
    ) as errors:  # fmt: skip
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
    SignInKeyError, WireKeyError, SafeKeyError, ConfigError, BadSetting, alone or grouped."""
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
            safe_keys = await open_safe_keys(
                Path(options.data), options.secrets_key_file, store, clock.now_ms()
            )
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
                    source=Fetcher(Outbound(loopback=configuration.settings.webhooks.allow_loopback)),
                    safe_keys=safe_keys,
                ) as broker,
            ):
                doors = Doors(configuration, broker, clock, proxies=proxies, tls=tls, traces=traces)
                await _serve_doors(doors, tokens, operators, broker.pk, announce)
        except* Unavailable as errors:  # a damaged page that the opening did not come upon
            raise ServeError(f"{options.data}: {_leaves(errors)[0]}") from None


def open_courier(settings: Settings) -> Courier:
    """The way out to webhooks. From here on names are looked up in threads of their own, whoever asks."""
    trio.socket.set_custom_hostname_resolver(Resolver())
    loopback = settings.webhooks.allow_loopback
    if loopback:
        log.warning(
            "webhooks.allow_loopback: events may be sent to any port of this machine, and tapes fetched from it"
        )
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


async def _serve_doors(
    doors: Doors,
    tokens: Tokens | None,
    operators: OperatorToken | None,
    pk: str,
    announce: Callable[[Ready], None],
) -> None:
    """Bind all ports, serve them one after the other, say so, and keep them until a signal says stop; then for
    STOP_S."""
    http, dealing = await doors.open_public(tokens), await doors.open_dealing()
    figures, theirs = await doors.open_metrics(), await doors.open_operators(operators)
    notifier = Notifier()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(doors.metrics.sample_lag)
        nursery.start_soon(notifier.keep_alive)
        async with trio.open_nursery() as opened:
            for door in filter(None, (http, dealing, figures, theirs)):
                await opened.start(door.serve)
            _settle_memory()
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                announce(Ready(True, http.url, dealing.url, theirs.url if theirs else None, pk))
                notifier.tell(READY)
                await anext(aiter(signals))
            notifier.tell(STOPPING)
            doors.drain()
            opened.cancel_scope.deadline = trio.current_time() + STOP_S
        nursery.cancel_scope.cancel()


def _settle_memory() -> None:
    """Nothing of what the start has made goes away, so the collector need not look at it again and again.

    It still comes, since there are cycles, but for its youngest only every 20,000 objects and not every 700: what an
    envelope makes is gone by then without it. (Measured by bench.dealers: 5% less CPU an envelope.)
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


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
