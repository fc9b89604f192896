"""`/ws` on the public port: the same session on Quart-Trio, for browsers and small bots (wire.md, WebSocket).

Frame sizes, UTF-8, pings, dead peers and stalled writes are gateways/http.py's and listen.py's; Host and Origin
are wrappers.py's.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import trio
from quart import Quart, Response, websocket
from quart.wrappers import base

from broker.app import Broker, Caller
from broker.clock import Clock
from broker.wire.refusals import Refusal
from gateways import render
from gateways.caller import identify
from gateways.listen import Network
from gateways.outbox import Outbox, open_outbox
from gateways.session import DRAIN_S, SYSTEM, Session, restart

AFTER_S: Final = 0.2
"""Seconds in which we still take what the peer sent just before it closed: the library holds ten frames back."""
ORPHAN_S: Final = 2.0
"""Seconds for requests of a peer that has closed: END and close in one breath is usual."""

LEFT: Final[type[Exception]] = getattr(base, "ClientDisconnectedError", trio.BrokenResourceError)
"""How Quart from 0.23 (Python 3.13) says that the peer has closed, once its frames were taken. Older ones cancel."""


def register(
    app: Quart,
    broker: Broker,
    *,
    shutdown: trio.Event,
    proxies: Sequence[Network] = (),
    clock: Clock = SYSTEM,
) -> None:
    """Add the route `/ws`. After `shutdown` each connection finishes what is under way, then closes with 1012.

    An upgrade may carry `Authorization: Turret …` (wire.md, Plain HTTP); a wrong one is refused over HTTP.
    """

    @app.websocket("/ws")
    async def ws() -> Response | None:
        caller = await identify(broker, dict(websocket.scope), proxies)
        if isinstance(caller, Refusal):
            status, headers, body = render.http(caller)
            return Response(body, status, {name.decode(): value.decode() for name, value in headers})
        await websocket.accept()
        await _serve(broker, caller, shutdown, clock)
        return None


async def _serve(broker: Broker, caller: Caller, shutdown: trio.Event, clock: Clock) -> None:
    """Carry one session to its end.

    The library cancels us as soon as the peer closes, with frames still held back. So the work is shielded, and
    bounded by `_bound` from the moment of that cancellation.
    """
    outbox = open_outbox(broker.settings.streams)
    work, reading = trio.CancelScope(shield=True), trio.CancelScope()
    async with trio.open_nursery() as outside:
        outside.start_soon(_bound, work, reading)
        with work:
            async with trio.open_nursery() as nursery:
                session = Session(broker, caller, outbox, nursery, clock=clock)
                session.greet()
                nursery.start_soon(_write, outbox, work)
                nursery.start_soon(_leave, session, outbox, shutdown)
                with reading, suppress(LEFT):
                    await _read(session)
                work.deadline = min(work.deadline, trio.current_time() + ORPHAN_S)
                session.leave()
                await session.drain()
                work.cancel()
        outside.cancel_scope.cancel()


async def _bound(work: trio.CancelScope, reading: trio.CancelScope) -> None:
    """Stand outside the shield; when the cancellation comes, leave what is inside a short time."""
    try:
        await trio.sleep_forever()
    finally:
        now = trio.current_time()
        reading.deadline, work.deadline = now + AFTER_S, now + ORPHAN_S


async def _read(session: Session) -> None:
    """Hand in one message after the other. Ends by cancellation, or by LEFT."""
    while True:
        data: str | bytes | None = await websocket.receive()
        await session.receive([data.encode() if isinstance(data, str) else None])


async def _write(outbox: Outbox, work: trio.CancelScope) -> None:
    """The one writer. A peer that does not read is cut by the socket's own deadline (listen.py).

    What is meant for one that has closed is dropped: its requests are still done.
    """
    while True:
        await outbox.wait_work()
        frames = outbox.take()
        with suppress(LEFT):
            for frame in frames:
                await websocket.send(frame.decode())
        if not frames and outbox.closing is not None:
            with suppress(LEFT):
                await websocket.close(outbox.closing.code, outbox.closing.reason)
            work.cancel()


async def _leave(session: Session, outbox: Outbox, shutdown: trio.Event) -> None:
    """At shutdown: finish what is under way, then close with 1012."""
    await shutdown.wait()
    with trio.move_on_after(DRAIN_S):
        await session.drain()
    outbox.end(restart())
