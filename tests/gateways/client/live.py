"""The real broker behind its real doors on real ports, in the test's own process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from broker.app import Broker, open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from gateways.dealing import serve_dealing
from gateways.mcp.endpoint import mcp_app
from gateways.metrics import Metrics
from gateways.web import web_app
from gateways.websocket import ws_app
from tests.support.network import serving


class Live:
    """A running broker and its addresses."""

    def __init__(self, broker: Broker, http: str, dealing: str) -> None:
        self.broker = broker
        self.http = http
        self.mcp = f"{http}/mcp"
        self.dealing = dealing
        self.wire = broker.pk

    def url(self, door: str) -> str:
        """The URL of "dealing" or "mcp"."""
        return self.dealing if door == "dealing" else self.mcp


@asynccontextmanager
async def live_broker(settings: Settings | None = None) -> AsyncIterator[Live]:
    """A broker on a memory store, on the system's clock, until the block is left."""
    clock = SystemClock()
    keyring = Keyring((WireKey(SigningKey.generate(), clock.now_ms()),))
    shutdown = trio.Event()
    async with open_broker(settings or Settings(), MemoryStore(), clock, keyring) as broker:
        ws = ws_app(broker, shutdown=shutdown)
        app = web_app(broker, Metrics(broker), mcp_app=mcp_app(broker), ws_app=ws)
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        host, port = listeners[0].socket.getsockname()[:2]
        async with serving(app) as served, trio.open_nursery() as nursery:
            broker.dealing_url, broker.mcp_url = f"ws://{host}:{port}", f"{served.url}/mcp"

            async def deal(task_status: trio.TaskStatus[None]) -> None:
                await serve_dealing(broker, listeners, shutdown=shutdown, task_status=task_status)

            await nursery.start(deal)
            yield Live(broker, served.url, broker.dealing_url)
            shutdown.set()
            nursery.cancel_scope.cancel()
