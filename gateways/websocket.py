"""`/ws` on the public port: the dealing port's own connection, behind the checks of every HTTP door.

Host and Origin are judged before (gateways.wrappers); from the upgrade on nothing of HTTP is left.
"""

from collections.abc import Sequence
from functools import partial

import trio

from broker.app import Broker
from broker.clock import Clock
from gateways.bodies import Rooms
from gateways.cycle import TAKE
from gateways.dealing import carry
from gateways.gate import Gate
from gateways.handshake import shake_hands
from gateways.listen import App, Bounds, Network, Receive, Scope, Send
from gateways.session import SYSTEM
from gateways.sockets import Sockets


def ws_app(
    broker: Broker,
    *,
    shutdown: trio.Event,
    proxies: Sequence[Network] = (),
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
    clock: Clock = SYSTEM,
    gate: Gate | None = None,
    sockets: Sockets | None = None,
) -> App:
    """The ASGI callable for `/ws`. After `shutdown` each connection finishes what is under way, then closes with 1012.

    An upgrade may carry `Authorization: Turret …` (wire.md, Plain HTTP), or `Bearer …` where `gate` takes tokens. What
    is no good upgrade is refused over HTTP, and its connection closed. Cancelling cuts a connection at once.
    """

    carried = partial(
        carry,
        broker,
        shutdown=shutdown,
        bounds=bounds,
        clock=clock,
        gate=gate,
        rooms=Rooms(),
        sockets=sockets or Sockets(),
    )

    async def ws(scope: Scope, receive: Receive, send: Send) -> None:
        stream, read = scope["extensions"][TAKE]()
        try:
            opened = None
            with trio.move_on_after(bounds.header_s):
                opened = await shake_hands(broker, stream, scope["client"], proxies, None, read, gate=gate)
            if opened is not None:
                await carried(stream, opened)
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # gone; nobody is left to be told

    return ws
