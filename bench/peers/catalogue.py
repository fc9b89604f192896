"""The peers: what each is, which packages it needs, how it is started."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from bench.kit.machine import disk_directory
from bench.kit.server import running, turret

EXTRA: Final = "compare"
UVICORN: Final = ("uvicorn", "uvloop", "httptools")


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate. `client` is a name of bench.peers.clients; `beside` the form of Turret it is compared with."""

    name: str
    title: str
    client: str
    beside: str = "turret"
    modules: tuple[str, ...] = ()
    server: str = ""
    """A module that takes the data folder; "" for Turret itself."""
    helpers: int = 0
    """Turret's setting verify.helpers."""


class Running(msgspec.Struct, frozen=True):
    """A peer that serves: `url` for its client, the process, and the folder of its store."""

    url: str
    pid: int
    data: Path


PEERS: Final = {
    each.name: each
    for each in (
        Peer(name="turret", title="Turret, dealing port", client="turret"),
        Peer(
            name="turret-helper", title="Turret, dealing port, one helper process", client="turret", helpers=1
        ),
        Peer(name="turret-mcp", title="Turret, MCP", client="turret-mcp", beside="turret-mcp"),
        Peer(
            name="starlette",
            title="Starlette WebSocket service on uvicorn, SQLite",
            client="starlette",
            modules=("starlette", *UVICORN),
            server="starlette_server",
        ),
        Peer(
            name="nats",
            title="NATS JetStream behind a verifying service",
            client="nats",
            modules=("nats", "uvloop"),
            server="nats_server",
        ),
        Peer(
            name="sdk",
            title="official MCP SDK's server, SQLite",
            client="sdk",
            beside="turret-mcp",
            modules=("mcp", "uvicorn"),
            server="sdk_server",
        ),
        Peer(
            name="nostr",
            title="nostr-relay, its own events",
            client="nostr",
            modules=("nostr_relay", "coincurve", *UVICORN),
            server="nostr_server",
        ),
    )
}


def lacking(peer: Peer) -> str | None:
    """What has to be installed for a peer, as a sentence; None when all is there."""
    absent = [name for name in peer.modules if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return f"not installed: {', '.join(absent)}; pip install 'turret[{EXTRA}]'"


@contextmanager
def started(peer: Peer) -> Iterator[Running]:
    """A peer's server with an empty store, for the length of the block. Raises RuntimeError where it does not run."""
    if not peer.server:
        with turret(helpers=peer.helpers or None) as broker:
            url = broker.dealing if peer.client == "turret" else broker.http
            yield Running(url, broker.pid, broker.data)
        return
    with (
        TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as data,
        running([f"bench.peers.{peer.server}", data]) as server,
    ):
        yield Running(server.ready["url"], server.pid, Path(data))
