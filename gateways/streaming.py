"""What all streams of events over HTTP have in common: how their answers begin, and how they end with their client.

What is said on them, and what they say last, is each door's own (gateways.sse, gateways.a2a.streaming,
gateways.mcp.exchange, gateways.console.live).
"""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from gateways import render
from gateways.listen import Receive

HEADERS: Final[render.Headers] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
"""The last one is nginx's: what it holds back is no stream."""
RETRY_MS: Final = 2_000
"""How long a client waits before it reconnects in ordinary times."""


async def wait_left(receive: Receive) -> None:
    """Return when the client has disconnected. Cancelling is safe once the body was read whole."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def until_left(receive: Receive, work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` until it is done or the client has left, which cancels it. Raises what it raises, grouped."""

    async def done() -> None:
        await work()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(done)
        await wait_left(receive)
        nursery.cancel_scope.cancel()
