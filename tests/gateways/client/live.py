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
from gateways.gate import Gate
from gateways.listen import App, Receive, Scope, Send
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.metrics import Metrics
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import SigningKeys
from gateways.oauth.metadata import Resources
from gateways.oauth.server import AuthorizationServer
from gateways.outbound import Outbound
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
    """A broker on a memory store, on the system's clock, with its sign-in, until the block is left."""
    clock = SystemClock()
    keyring = Keyring((WireKey(SigningKey.generate(), clock.now_ms()),))
    doors: list[App] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await doors[0](scope, receive, send)

    async with (
        open_broker(settings or Settings(), MemoryStore(), clock, keyring) as broker,
        serving(app) as served,
        trio.open_nursery() as nursery,
    ):
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        host, port = listeners[0].socket.getsockname()[:2]
        broker.dealing_url, broker.mcp_url = f"ws://{host}:{port}", f"{served.url}/mcp"
        shutdown = trio.Event()
        gate = _add_doors(doors, broker, served.url, clock, shutdown)

        async def deal(task_status: trio.TaskStatus[None]) -> None:
            await serve_dealing(broker, listeners, shutdown=shutdown, gate=gate, task_status=task_status)

        await nursery.start(deal)
        yield Live(broker, served.url, broker.dealing_url)
        shutdown.set()
        nursery.cancel_scope.cancel()


def _add_doors(doors: list[App], broker: Broker, url: str, clock: SystemClock, shutdown: trio.Event) -> Gate:
    """The application of the public port, whose address has to be known first."""
    resources = Resources(issuer=url, origins=(url,))
    keys = SigningKeys.open(None, clock.now_ms())
    sign_in = AuthorizationServer(broker, clock, keys, resources, Documents(Outbound(), clock))
    bearers = Bearers(broker, sign_in)
    gate = Gate(bearers, resources)
    doors.append(
        web_app(
            broker,
            Metrics(broker),
            mcp_app=mcp_app(broker, protected=Protected(resources, bearers)),
            ws_app=ws_app(broker, shutdown=shutdown, gate=gate),
            resources=resources,
            sign_in=sign_in,
            gate=gate,
        )
    )
    return gate
