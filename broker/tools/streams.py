"""Events by asking: desk_rings and wait_for_events, over the same stream and cursor as SSE and WebSocket.

Who asks by a key's proof asks for that key; who asks by an agent's token, for the agent and its keys' desks. A wait
ends with the right by which it waits.
"""

from typing import Annotated, Any

import msgspec
import trio
from msgspec import Meta

from broker.actors.calls import agent_stream, stream_name
from broker.actors.streams import PAGE_BYTES, Polled
from broker.core.desk import DeskRow
from broker.tools.access import may_listen, run_out, while_allowed
from broker.tools.context import Caller, Context, Progress, Services
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


class _Source(msgspec.Struct, frozen=True):
    """A stream, whose it is (for presence), and by whose right it is read."""

    stream: str
    reads_as: str
    caller: Caller
    code: str | None = None


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
    desk's key, a connection that proved it, or the token of the agent whose key it is. Cancelling loses nothing: ask
    again with the last cursor.
    """
    services = context.services
    by_token = _by_token(context, statement, sig)
    caller = context.caller if by_token else await reader(context, statement, sig)
    if isinstance(caller, Refusal):
        return caller
    row = await resolve(services, code)
    if row is None:
        return unknown_desk(code)
    refused = _may_ring(services, caller, row)
    if refused is not None:
        return refused
    await keep_in_use(services, row.pk)
    source = _Source(stream_name(row.pk), row.pk, caller, code)
    seconds = min(wait_ms, MAX_WAIT_MS) / 1000
    progress = context.progress

    async def wait() -> Rings | Refusal:
        with services.presence.attach(row.pk):
            if progress is None:
                return await _rings(services, source, after, seconds)
            return await _tell_rings(services, progress, source, after, seconds)

    services.presence.polled(row.pk)
    return await while_allowed(services, caller, wait)


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
    Needs a follow statement of your key, a connection that proved it, or your agent's token: then it is the agent's
    stream, its messages and its desks' calls. Cancelling loses nothing: ask again with the last cursor.
    """
    services = context.services
    source = await _own_stream(context, statement, sig)
    if isinstance(source, Refusal):
        return source
    caller = source.caller
    seconds = min(wait_ms, MAX_WAIT_MS) / 1000

    async def wait() -> Polled | Refusal:
        with services.presence.attach(source.reads_as):
            return await services.hub.poll(
                source.stream,
                after,
                limit,
                seconds,
                own=own,
                code=source.code,
                until=caller.until,
                over=run_out(caller),
            )

    services.presence.polled(source.reads_as)
    polled = await while_allowed(services, caller, wait)
    if isinstance(polled, Refusal):
        return polled
    events = [_with_kind(delivery.kind, delivery.params) for delivery in polled.deliveries]
    return Events(polled.resume, events, polled.cursor)


def _by_token(context: Context, statement: bytes | None, sig: str | None) -> bool:
    """Whether the caller asks as an agent: by its token, and with no statement beside it."""
    return statement is None and sig is None and context.caller.agent is not None


async def _own_stream(context: Context, statement: bytes | None, sig: str | None) -> _Source | Refusal:
    """The caller's own stream: its agent's, else its key's."""
    if _by_token(context, statement, sig):
        caller = context.caller
        agent = caller.agent or ""
        return may_listen(caller) or _Source(agent_stream(agent), agent, caller)
    found = await reader(context, statement, sig)
    if isinstance(found, Refusal):
        return found
    assert found.pk is not None  # reader() gives a caller with a key
    await keep_in_use(context.services, found.pk)
    return _Source(stream_name(found.pk), found.pk, found, found.code)


def _may_ring(services: Services, caller: Caller, row: DeskRow) -> Refusal | None:
    """Whether a caller may hear what rings a desk: by its key, or by the token of its key's agent."""
    if row.pk == caller.pk and caller.code in (None, row.code):
        return None
    if caller.agent is not None and services.standing.holder(row.pk) == caller.agent:
        return may_listen(caller)
    return refuse("not_a_party", "the code does not resolve to your key")


async def _rings(services: Services, source: _Source, after: str | None, seconds: float) -> Rings | Refusal:
    caller = source.caller
    polled = await services.hub.poll(
        source.stream,
        after,
        500,
        seconds,
        kinds=("ring",),
        code=source.code,
        until=caller.until,
        over=run_out(caller),
    )
    if isinstance(polled, Refusal):
        return polled
    return Rings(polled.resume, [msgspec.Raw(each.params) for each in polled.deliveries], polled.cursor)


async def _tell_rings(
    services: Services, progress: Progress, source: _Source, after: str | None, seconds: float
) -> Rings | Refusal:
    """Each ring as it comes, until the time is over or a page is full; the result has them all."""
    deadline = trio.current_time() + seconds
    found: Rings | None = None
    while True:
        left = max(0.0, deadline - trio.current_time())
        page = await _rings(services, source, after, left)
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
