"""`GET /rings/<code>` and `GET /channels/<id>`: a desk's stream, a channel's, as text/event-stream (wire.md, Plain HTTP
and Streams; network.md, Channels).

1. The status is decided before the first byte: who may not read gets the refusal, not a broken stream.
2. Every event carries its cursor as `id`, so that Last-Event-ID resumes without a gap.
3. The stream says why it ends: event `closed` with {reason, refusal?}.
4. A desk's is read by a key's follow statement, or by the token of the agent whose key the desk has; a channel's by a
   member's token.

Raw ASGI beside Quart: the reader must be closed at every way out, also when the client leaves in between.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import msgspec
import trio

from broker.app import Broker, Caller, Delivery, Ended, Reader, Slow
from broker.store.port import Unavailable
from broker.wire.events import Resume
from broker.wire.ids import CHANNEL, CODE
from broker.wire.refusals import CODES, Refusal, refuse
from gateways import eventstream, render
from gateways.caller import identify
from gateways.gate import Gate, refused
from gateways.listen import App, Network, Receive, Scope, Send, values_of
from gateways.streaming import HEADERS, RETRY_MS, until_left

PREFIX: Final = "/rings/"
CHANNELS: Final = "/channels/"
RESTART_MS: Final = (500, 5_500)
"""Between these after a restart, at random, so that not all come back at once."""
LONGEST_CURSOR: Final = 128
LONGEST_SEQ: Final = 15


def rings_app(broker: Broker, *, proxies: Sequence[Network] = (), gate: Gate | None = None) -> App:
    """The ASGI callable for /rings/<code>. The stream ends when the client leaves, when the right to read ends,
    when the reader is too slow, and when the broker ends its streams."""

    async def rings(caller: Caller, code: str, place: _Place) -> Reader | Refusal:
        if place.seq is not None:
            return refuse("bad_request", "after_seq is for a channel", path="after_seq")
        return await broker.follow(caller, code=code, after=place.after)

    said = "streams are /rings/<code>, the code being four capital letters"
    return _app(broker, _Door(PREFIX, CODE, said, rings), proxies, gate)


def channels_app(broker: Broker, *, proxies: Sequence[Network] = (), gate: Gate | None = None) -> App:
    """The ASGI callable for /channels/<id>, as `rings_app`; `?after_seq=` says the last message that the client has."""

    async def channels(caller: Caller, channel_id: str, place: _Place) -> Reader | Refusal:
        return await broker.follow_channel(caller, channel_id, after=place.after, after_seq=place.seq)

    return _app(
        broker, _Door(CHANNELS, CHANNEL, "streams are /channels/<channel_id>", channels), proxies, gate
    )


class _Place(NamedTuple):
    """After what a stream goes on: a cursor, or a channel's seq."""

    after: str | None = None
    seq: int | None = None


class _Door(NamedTuple):
    """A kind of stream: what stands before its name, the name's form and what is said of another, how it is read."""

    prefix: str
    form: re.Pattern[str]
    said: str
    follow: Callable[[Caller, str, _Place], Awaitable[Reader | Refusal]]


def _app(broker: Broker, door: _Door, proxies: Sequence[Network], gate: Gate | None) -> App:
    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        reader = await _follow(broker, door, scope, proxies, gate)
        if isinstance(reader, Refusal):
            await _refuse(send, reader, scope, gate)
            return
        async with reader:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await _stream(reader, receive, send, broker.settings.streams.comment_s)

    return stream


async def _follow(
    broker: Broker, door: _Door, scope: Scope, proxies: Sequence[Network], gate: Gate | None
) -> Reader | Refusal:
    if scope["method"] != "GET":
        return refuse("bad_request", "a stream is read by GET", status=405)
    name = scope["path"].removeprefix(door.prefix).removesuffix("/")
    if not door.form.fullmatch(name):
        return refuse("not_found", door.said)
    bearer = gate.admit if gate is not None else None
    caller = await identify(broker, scope, proxies, query=True, bearer=bearer)
    if isinstance(caller, Refusal):
        return caller
    place = _place(scope)
    return place if isinstance(place, Refusal) else await door.follow(caller, name, place)


def _place(scope: Scope) -> _Place | Refusal:
    """Last-Event-ID stands before what the query says: a reconnecting EventSource keeps its first URL."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    given = [value for value in values_of(scope, b"last-event-id") if value]
    after = given[0].decode("latin-1") if given else query.get("after", [None])[0]
    if after is not None and len(after) > LONGEST_CURSOR:
        return refuse("bad_request", "this is no cursor", path="after")
    seq = None if given else query.get("after_seq", [None])[0]
    if seq is None:
        return _Place(after)
    if not (seq.isascii() and seq.isdigit() and len(seq) <= LONGEST_SEQ):
        return refuse("bad_request", "after_seq is a message's number", path="after_seq")
    return _Place(after, int(seq))


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

    await until_left(receive, pump)
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
                chunk = b"".join(map(_encoded, batch))
    except Slow:
        return closed("slow")
    except Ended as ended:
        return closed(ended.refusal.code, refusal=ended.refusal.body())
    except Unavailable:
        return closed(render.NO_STORE.code, refusal=render.NO_STORE.body())
    except Exception as fault:
        return closed("internal", incident=render.incident(fault, "a stream over SSE"))


def _encoded(event: Delivery) -> bytes:
    """An event as text, made once for all who follow the stream here."""
    made = event.made
    if made is None or made[0] is not _encoded:
        text = eventstream.encode(event.params, event=event.kind, id=event.cursor)
        made = event.made = (_encoded, text)
    return made[1]


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
