"""`GET /rings/<code>`: a desk's stream as text/event-stream (wire.md, Plain HTTP and Streams).

1. The status is decided before the first byte: who may not read gets the refusal, not a broken stream.
2. Every event carries its cursor as `id`, so that Last-Event-ID resumes without a gap.
3. The stream says why it ends: event `closed` with {reason, refusal?}.
4. It is read by a key's follow statement, or by the token of the agent whose key the desk has.

Raw ASGI beside Quart: the reader must be closed at every way out, also when the client leaves in between.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
import trio

from broker.app import Broker, Ended, Reader, Slow
from broker.store.port import Unavailable
from broker.wire.events import Resume
from broker.wire.ids import CODE
from broker.wire.refusals import CODES, Refusal, refuse
from gateways import eventstream, render
from gateways.caller import identify
from gateways.gate import Gate, refused
from gateways.listen import App, Network, Receive, Scope, Send

PREFIX: Final = "/rings/"
RETRY_MS: Final = 2_000
"""How long a client waits before it reconnects in ordinary times."""
RESTART_MS: Final = (500, 5_500)
"""Between these after a restart, at random, so that not all come back at once."""
LONGEST_CURSOR: Final = 128
HEADERS: Final[render.Headers] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def rings_app(broker: Broker, *, proxies: Sequence[Network] = (), gate: Gate | None = None) -> App:
    """The ASGI callable for /rings/<code>. The stream ends when the client leaves, when the right to read ends,
    when the reader is too slow, and when the broker ends its streams."""

    async def rings(scope: Scope, receive: Receive, send: Send) -> None:
        reader = await _follow(broker, scope, proxies, gate)
        if isinstance(reader, Refusal):
            await _refuse(send, reader, scope, gate)
            return
        async with reader:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await _stream(reader, receive, send, broker.settings.streams.comment_s)

    return rings


async def _follow(
    broker: Broker, scope: Scope, proxies: Sequence[Network], gate: Gate | None
) -> Reader | Refusal:
    if scope["method"] != "GET":
        return refuse("bad_request", "a stream is read by GET", status=405)
    code = scope["path"].removeprefix(PREFIX).removesuffix("/")
    if not CODE.fullmatch(code):
        return refuse("not_found", "streams are /rings/<code>, the code being four capital letters")
    bearer = gate.admit if gate is not None else None
    caller = await identify(broker, scope, proxies, query=True, bearer=bearer)
    if isinstance(caller, Refusal):
        return caller
    after = _after(scope)
    if after is not None and len(after) > LONGEST_CURSOR:
        return refuse("bad_request", "this is no cursor", path="after")
    return await broker.follow(caller, code=code, after=after)


def _after(scope: Scope) -> str | None:
    """Last-Event-ID stands before `?after=`: a reconnecting EventSource keeps its first URL."""
    for name, value in scope["headers"]:
        if name.lower() == b"last-event-id" and value:
            return str(value.decode("latin-1"))
    given = parse_qs(scope["query_string"].decode("latin-1")).get("after")
    return given[0] if given else None


async def _refuse(send: Send, refusal: Refusal, scope: Scope, gate: Gate | None) -> None:
    status, headers, body = refused(refusal, scope, gate)
    if status == 405:
        headers = [*headers, (b"allow", b"GET")]
    headers = [*headers, (b"cache-control", b"no-store"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _stream(reader: Reader, receive: Receive, send: Send, comment_s: float) -> None:
    """Send until the stream or the client ends. The last bytes are sent outside of what may be cancelled."""
    last: bytes | None = None

    async def pump() -> None:
        nonlocal last
        last = await _pump(reader, send, comment_s)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pump)
        while (await receive())["type"] != "http.disconnect":
            pass
        nursery.cancel_scope.cancel()
    if last is not None:
        await send({"type": "http.response.body", "body": last, "more_body": False})


async def _pump(reader: Reader, send: Send, comment_s: float) -> bytes:
    """Send resume, then events as they come and a comment in every silence; returns what is to be said last."""
    chunk = resumed(reader.resume)
    try:
        while True:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            chunk = eventstream.comment("ping")
            with trio.move_on_after(comment_s):
                batch = await reader.receive()
                chunk = b"".join(
                    [eventstream.encode(each.params, event=each.kind, id=each.cursor) for each in batch]
                )
    except Slow:
        return closed("slow")
    except Ended as ended:
        return closed(ended.refusal.code, refusal=ended.refusal.body())
    except Unavailable:
        return closed(render.NO_STORE.code, refusal=render.NO_STORE.body())
    except Exception as fault:
        return closed("internal", incident=render.incident(fault, "GET /rings"))


def resumed(resume: Resume) -> bytes:
    """The first event; its id is the cursor after which reading goes on."""
    return eventstream.encode(msgspec.json.encode(resume), event="resume", id=resume.from_, retry_ms=RETRY_MS)


def closed(reason: str, **members: Any) -> bytes:
    """The last event, without an id; with a wait by chance where coming back makes sense."""
    least, most = RESTART_MS
    again = CODES[reason].retryable if reason in CODES else True
    return eventstream.encode(
        msgspec.json.encode({"reason": reason, **members}),
        event="closed",
        retry_ms=least + secrets.randbelow(most - least) if again else None,
    )
