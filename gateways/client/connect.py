"""`async with connect(url, key) as desk`: the door to the dealer's client.

1. The URL names the link: ws or wss, http(s)://…/mcp, or the plain address of a broker (its /ws is used).
2. The wire is known before anything is signed: given, pinned before, or pinned now from what the address
   publishes, as ssh does with host keys (pins.py).
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import trio

from broker.wire.ids import PK, Pk
from broker.wire.keys import SigningKey
from gateways.client.asking import websocket_url
from gateways.client.clockwork import Backoff, WireClock
from gateways.client.dealer import Desk, Watcher
from gateways.client.errors import collapse
from gateways.client.link import Link, WebSocketLink
from gateways.client.mcp_link import McpLink, http_client
from gateways.client.pins import Pins, address, known_wires_path, pinned_wire
from gateways.client.signer import Signer
from gateways.keyfile import load_key


@asynccontextmanager
async def connect(
    url: str,
    key: SigningKey | str | Path,
    wire: str | None = None,
    *,
    after: str | None = None,
    known_wires: Path | None = None,
    ssl_context: ssl.SSLContext | None = None,
    clock: WireClock | None = None,
    backoff: Backoff | None = None,
    on_event: Watcher | None = None,
) -> AsyncIterator[Desk]:
    """A desk on the wire, while the block runs.

    `key`: a signing key, or the path of a key file. `wire`: the wire's pk; without it the one pinned for this
    address in `known_wires` (default ~/.config/turret/known_wires), else the one that
    /.well-known/turret.json there names, which is pinned now. `after`: the cursor to go on from ("0": the
    oldest event kept; None: from now). `on_event` is called with each event of the stream, from the first on.

    Raises Disconnected when the first attempt fails (later breaks are mended), Refused, WireFault when the
    wire shows another key or anything that can't be true, KeyFileError, ValueError for a URL that is none.
    Leaving hangs up what is still open and closes the connection; cancelling does the same, bounded.
    """
    signing = key if isinstance(key, SigningKey) else load_key(Path(key))
    pk = await find_wire(url, wire, known_wires=known_wires, ssl_context=ssl_context)
    signer = Signer(signing, pk, clock or WireClock())
    link = make_link(url, signer, after=after, ssl_context=ssl_context, backoff=backoff)
    scope = trio.CancelScope()
    try:
        async with trio.open_nursery() as nursery:
            desk = Desk(link, nursery, on_event)
            await nursery.start(_keep, link, desk, scope)
            # From here the link outlives a cancelled block, so that its calls can be hung up; `Call.hang_up`
            # bounds that, and the scope is cancelled in any case.
            scope.shield = True
            try:
                yield desk
            finally:
                scope.cancel()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise collapse(group) from None


async def _keep(
    link: Link,
    desk: Desk,
    scope: trio.CancelScope,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with scope:
        await link.run(desk, task_status=task_status)


def make_link(
    url: str,
    signer: Signer,
    *,
    after: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    backoff: Backoff | None = None,
) -> Link:
    """The link that a URL names. Raises ValueError for one that names none."""
    parts = urlsplit(url)
    address(url)
    if parts.scheme in ("http", "https") and parts.path.rstrip("/"):
        return McpLink(url, signer, after=after, ssl_context=ssl_context, backoff=backoff)
    return WebSocketLink(websocket_url(url), signer, after=after, ssl_context=ssl_context, backoff=backoff)


async def find_wire(
    url: str,
    wire: str | None,
    *,
    known_wires: Path | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> Pk:
    """The pk of the wire at an address: the given one, else by pins.py. Raises ValueError for no pk."""
    if wire is not None:
        if not PK.fullmatch(wire):
            raise ValueError("a wire's pk is 64 lowercase hex characters")
        return Pk(wire)
    pins = Pins(known_wires or known_wires_path())
    if (known := pins.get(url)) is not None:
        return known
    async with http_client(url, ssl_context) as client:
        return await pinned_wire(url, pins, client)
