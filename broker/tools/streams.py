"""Events by asking: desk_rings and wait_for_events, over the same stream and cursor as SSE and WebSocket."""

from typing import Annotated, Any

import msgspec
import trio
from msgspec import Meta

from broker.actors.calls import stream_name
from broker.actors.streams import PAGE_BYTES
from broker.tools.context import Context, Progress, Services
from broker.tools.lookup import SigParam, StatementParam, keep_in_use, resolve, unknown_desk
from broker.tools.proof import reader
from broker.tools.registry import tool
from broker.wire.events import Resume
from broker.wire.ids import CodeParam
from broker.wire.refusals import Refusal, refuse

MAX_WAIT_MS = 25_000
"""Below the time-out of every common client (peers B59)."""
After = Annotated[
    str | None,
    Meta(description='the cursor of the last event that you have; "0" from the oldest; none: from now'),
]
WaitMs = Annotated[
    int, Meta(ge=0, description="wait up to this many milliseconds for the first (at most 25,000)")
]
Limit = Annotated[int, Meta(ge=1, le=500, description="at most this many")]
Own = Annotated[
    bool | None,
    Meta(
        description="false: only what others wrote; true: only what you wrote; none: both. The cursor passes over "
        "the rest"
    ),
]
Item = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"}, description="one event's members")]
Items = list[Item]


class Rings(msgspec.Struct, frozen=True):
    """Rings after a cursor. Each: cursor, conv, n, sig, envelope, chain, accepted_at, own."""

    resume: Resume
    rings: Items
    cursor: str
    """Ask again with this."""


class Events(msgspec.Struct, frozen=True):
    """Events after a cursor. Each has `event` (ring, env, end, …) and that event's members."""

    resume: Resume
    events: Items
    cursor: str
    """Ask again with this."""


@tool(face="wire", title="Wait for rings", read_only=True, streams=True)
async def desk_rings(
    context: Context,
    code: CodeParam,
    after: After = None,
    wait_ms: WaitMs = 0,
    statement: StatementParam | None = None,
    sig: SigParam | None = None,
) -> Rings | Refusal:
    """Subscribe to the calls that ring your desk: what waits after the cursor, or the first within wait_ms.

    Over a door that streams, each ring comes as progress until wait_ms is over. Needs a follow statement of the
    desk's key (or a connection that proved it). Cancelling loses nothing: ask again with the last cursor.
    """
    caller = await reader(context, statement, sig)
    if isinstance(caller, Refusal):
        return caller
    services = context.services
    row = await resolve(services, code)
    if row is None:
        return unknown_desk(code)
    if row.pk != caller.pk or caller.code not in (None, code):
        return refuse("not_a_party", "the code does not resolve to your key")
    await keep_in_use(services, row.pk)
    services.presence.polled(row.pk)
    seconds = min(wait_ms, MAX_WAIT_MS) / 1000
    stream = stream_name(row.pk)
    with services.presence.attach(row.pk):
        if context.progress is None:
            return await _rings(services, stream, after, seconds, code, caller.until)
        return await _tell_rings(context, context.progress, stream, after, seconds, code, caller.until)


@tool(face="wire", title="Wait for events", read_only=True)
async def wait_for_events(
    context: Context,
    after: After = None,
    wait_ms: WaitMs = 0,
    limit: Limit = 100,
    statement: StatementParam | None = None,
    sig: SigParam | None = None,
    own: Own = None,
) -> Events | Refusal:
    """Your next events of every kind: what is stored after the cursor, or the first within wait_ms.

    The cursor is the same on WebSocket, SSE and MCP. With own = false a wait goes on past what you sent yourself.
    Needs a follow statement of your key, or a connection that proved it. Cancelling loses nothing: ask again with
    the last cursor.
    """
    caller = await reader(context, statement, sig)
    if isinstance(caller, Refusal):
        return caller
    services = context.services
    assert caller.pk is not None  # reader() gives a caller with a key
    await keep_in_use(services, caller.pk)
    services.presence.polled(caller.pk)
    seconds = min(wait_ms, MAX_WAIT_MS) / 1000
    with services.presence.attach(caller.pk):
        polled = await services.hub.poll(
            stream_name(caller.pk), after, limit, seconds, own=own, code=caller.code, until=caller.until
        )
    if isinstance(polled, Refusal):
        return polled
    events = [_with_kind(delivery.kind, delivery.params) for delivery in polled.deliveries]
    return Events(polled.resume, events, polled.cursor)


async def _rings(
    services: Services, stream: str, after: str | None, seconds: float, code: str, until: int | None
) -> Rings | Refusal:
    polled = await services.hub.poll(stream, after, 500, seconds, kinds=("ring",), code=code, until=until)
    if isinstance(polled, Refusal):
        return polled
    return Rings(polled.resume, [msgspec.Raw(each.params) for each in polled.deliveries], polled.cursor)


async def _tell_rings(
    context: Context,
    progress: Progress,
    stream: str,
    after: str | None,
    seconds: float,
    code: str,
    until: int | None,
) -> Rings | Refusal:
    """Each ring as it comes, until the time is over or a page is full; the result has them all."""
    deadline = trio.current_time() + seconds
    found: Rings | None = None
    while True:
        left = max(0.0, deadline - trio.current_time())
        page = await _rings(context.services, stream, after, left, code, until)
        if isinstance(page, Refusal):
            return page
        found = page if found is None else Rings(found.resume, [*found.rings, *page.rings], page.cursor)
        after = page.cursor
        for ring in page.rings:
            await progress(bytes(ring))
        full = sum(len(bytes(ring)) for ring in found.rings) > PAGE_BYTES
        if full or (not page.rings and trio.current_time() >= deadline):
            return found


def _with_kind(kind: str, params: bytes) -> Any:
    return msgspec.Raw(b'{"event":"%s",%s' % (kind.encode(), params[1:]))
