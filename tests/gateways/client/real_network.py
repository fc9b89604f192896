"""The real broker behind its real doors, all in memory and on virtual time: tokens run out in a moment there."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from broker.config import Settings
from broker.wire.keys import SigningKey
from gateways.client import socket
from gateways.client.agent import Agent, open_agent
from gateways.client.clockwork import Backoff, WireClock
from gateways.gate import Gate
from gateways.metrics import Metrics
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import SigningKeys
from gateways.oauth.metadata import Resources
from gateways.oauth.server import AuthorizationServer
from gateways.outbound import Outbound
from gateways.web import web_app
from tests.support.broker import Bench, open_bench
from tests.support.ws import Port, open_port

ORIGIN = "https://wire.test"


class RealNetwork:
    """The broker (`bench`), its WebSocket door (`port`), and agents that reach both."""

    def __init__(self, bench: Bench, port: Port, transport: httpx.AsyncBaseTransport) -> None:
        self.bench = bench
        self.connections: list[trio.abc.Stream] = []
        """Those that clients have opened, oldest first."""
        self._port = port
        self._transport = transport

    def agent(
        self, key: SigningKey, agent_id: str | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Agent]:
        """open_agent() at this broker."""
        options.setdefault("clock", WireClock(self.bench.clock.now_ms))
        options.setdefault("backoff", Backoff(chance=lambda: 0.5))
        return open_agent(ORIGIN, key, agent_id, self.bench.broker.pk, transport=self._transport, **options)

    async def open_stream(self, url: str, ssl_context: object) -> trio.abc.Stream:
        """Stands in for the client's opener of TCP connections."""
        stream: trio.abc.Stream = await self._port.connect()
        self.connections.append(stream)
        return stream

    async def cut(self) -> None:
        """Break every connection."""
        for stream in self.connections:
            await trio.aclose_forcefully(stream)


@asynccontextmanager
async def real_network(
    directory: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings | None = None
) -> AsyncIterator[RealNetwork]:
    """A broker whose tokens' keys are kept in `directory`. Ask for `autojump_clock` with it."""
    async with open_bench(settings) as bench:
        broker, clock = bench.broker, bench.clock
        resources = Resources(issuer=ORIGIN, origins=(ORIGIN,))
        keys = SigningKeys.open(directory, clock.now_ms())
        sign_in = AuthorizationServer(broker, clock, keys, resources, Documents(Outbound(), clock))
        gate = Gate(Bearers(broker, sign_in), resources)
        app = web_app(broker, Metrics(broker), resources=resources, sign_in=sign_in, gate=gate)
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)  # type: ignore[arg-type]  # ASGI
        async with open_port(broker, gate=gate) as port:
            network = RealNetwork(bench, port, transport)
            monkeypatch.setattr(socket, "_open_stream", network.open_stream)
            yield network
