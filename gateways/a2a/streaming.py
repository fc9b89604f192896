"""A2A's methods that stream: a task as it stands, then what becomes of it, as text/event-stream.

1. The status is decided before the first byte: what is refused is a JSON-RPC error, not a broken stream.
2. Each event has its cursor as `id`. Who comes back with the last one it has as Last-Event-ID gets what follows it and
   nothing else, also after a restart, and also where the task is over meanwhile. Where that can't be (the place is kept
   no more), it begins with the task again.
3. The stream ends when the task is over, when the right to read ends, and when the broker stops; whoever comes back
   gets the rest.

Source: A2A specification 1.0, 3.1.2, 3.1.6, 3.5.2, 9.4.2; WHATWG HTML, Last-Event-ID.
"""

from functools import partial
from typing import Final

import trio

from broker.app import Delivery, Ended, Followed, Slow
from broker.store.port import Unavailable
from broker.wire import a2a
from broker.wire.refusals import Refusal
from broker.wire.task import OPEN, View
from gateways import eventstream, jsonrpc, render
from gateways.a2a import errors
from gateways.a2a.calls import Call, own, read, state_told
from gateways.a2a.errors import Fault
from gateways.a2a.methods import begin
from gateways.listen import Receive, Send
from gateways.streaming import HEADERS, RETRY_MS, until_left

STREAMING: Final = frozenset({"SendStreamingMessage", "SubscribeToTask"})


async def open_stream(
    call: Call, method: str, params: bytes, last_id: str | None
) -> Followed | Fault | Refusal:
    """What a streaming method follows, or why it may not. Enter or close the reader."""
    if method == "SendStreamingMessage":
        request = read(params, a2a.SendMessage)
        view = await begin(call, request) if isinstance(request, a2a.SendMessage) else request
        last_id = None
    else:
        wanted = read(params, a2a.TaskId)
        view = await own(call, wanted.id) if isinstance(wanted, a2a.TaskId) else wanted
    if not isinstance(view, View):
        return view
    followed = await call.broker.follow_task(call.caller, view.task.task_id, after=last_id)
    if isinstance(followed, Refusal) or method == "SendStreamingMessage":
        return followed
    resume = followed.reader.resume
    resumed = last_id is not None and resume.recovered
    if followed.view.task.state not in OPEN and not (resumed and resume.from_ != resume.head):
        followed.reader.close()
        return errors.OVER
    return followed


async def stream(
    followed: Followed, id: jsonrpc.Id, fresh: bool, receive: Receive, send: Send, comment_s: float
) -> None:
    """Send until the task is over or the client has left. `fresh`: it begins with the task."""
    async with followed.reader:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await until_left(receive, partial(_pump, followed, id, fresh, send, comment_s))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _pump(followed: Followed, id: jsonrpc.Id, fresh: bool, send: Send, comment_s: float) -> None:
    reader, view = followed.reader, followed.view
    chunk = eventstream.encode(retry_ms=RETRY_MS)
    if fresh:
        text = jsonrpc.result(id, {"task": a2a.task(view)})
        chunk = eventstream.encode(text, id=reader.resume.from_, retry_ms=RETRY_MS)
    over = fresh and view.task.state not in OPEN
    while True:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if over:
            return
        chunk = eventstream.comment("ping")
        try:
            with trio.move_on_after(comment_s):
                batch = await reader.receive()
                chunk = b"".join(_encoded(event, id) for event in batch)
                over = any(_ends(event) for event in batch)
        except (Slow, Ended, Unavailable):
            return  # a stream without its end: whoever wants the rest comes back with the last id
        except Exception as fault:
            render.incident(fault, "a stream over A2A")
            return


def _encoded(event: Delivery, id: jsonrpc.Id) -> bytes:
    made = a2a.event(event.kind, event.params)
    return b"" if made is None else eventstream.encode(jsonrpc.result(id, made), id=event.cursor)


def _ends(event: Delivery) -> bool:
    state = state_told(event)
    return state is not None and state not in OPEN
