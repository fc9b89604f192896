"""One dealer's connection over WebSocket, whatever carries its frames (wire.md, WebSocket and Streams).

1. Every frame is answered: what is no request gets -32600 with id null. Nothing is dropped in silence.
2. Answers and events leave through one outbox, which one writer empties. While it is full nothing is begun and
   nothing put: a peer that reads slowly is served slowly, and nobody else waits for it. A stream that falls behind
   meanwhile is closed as slow (4008) and resumed by cursor.
3. Who the peer is and what it follows changes in the order of its frames; tools run side by side, but for what is
   sent in one conversation.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import trio
from msgspec import UNSET, UnsetType

from broker.app import Again, Broker, Caller, Delivery, Ended, Reader, Slow, Watch
from broker.clock import Clock, SystemClock
from broker.store.port import Unavailable
from broker.wire import canonical
from broker.wire.events import read_cursor
from broker.wire.ids import CodeParam
from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc, render
from gateways.outbox import Outbox
from gateways.quick import Started, quick_reader
from gateways.underway import Job, Underway

STREAMS: Final = 16
"""Streams that one connection may follow: a bot of many desks, not a fan-out of its own."""
FAIR: Final = 64
"""Frames of one read that are handled before other connections get their turn."""
CLOSE_S: Final = 3.0
"""Seconds that a peer has for its half of the close handshake (RFC 6455, 7.1.1); then it is cut."""
DRAIN_S: Final = 4.0
"""Seconds at shutdown for requests under way; with CLOSE_S well below the 10 s of wire.md, Streams."""
RETRY_MS: Final = (500, 5_500)
"""Between these a client is told to come back after a restart, at random, so that not all come at once."""

SYSTEM: Final = SystemClock()
Frame = bytes | None
"""What a carrier hands in: a text frame's payload, or None for a binary frame."""


class _Running:
    """A stream or a watch that feeds the outbox. After `stop` nothing of it is put any more."""

    def __init__(self, code: str | None = None) -> None:
        self.code = code
        self.live = True
        self.scope = trio.CancelScope()

    def stop(self) -> None:
        self.live = False
        self.scope.cancel()


class _Authenticate(msgspec.Struct, forbid_unknown_fields=True):
    statement: msgspec.Raw | UnsetType = UNSET
    sig: str | UnsetType = UNSET
    token: str | UnsetType = UNSET


class _Follow(msgspec.Struct, forbid_unknown_fields=True):
    code: CodeParam | None = None
    after: str | None = None
    statement: msgspec.Raw | UnsetType = UNSET
    sig: str | UnsetType = UNSET


class _Unfollow(msgspec.Struct, forbid_unknown_fields=True):
    code: CodeParam | None = None


class _Watch(msgspec.Struct, forbid_unknown_fields=True):
    codes: list[CodeParam]


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Session:
    """The protocol of one connection. The carrier calls `greet` once, then `receive` for what it reads.

    `nursery` is the connection's own: it holds requests, streams and the watch, and ends with the connection.
    `clock` is the broker's.
    """

    def __init__(
        self,
        broker: Broker,
        caller: Caller,
        outbox: Outbox,
        nursery: trio.Nursery,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._clock = clock
        self._broker = broker
        self._caller = caller
        self._outbox = outbox
        self._nursery = nursery
        self._challenge = secrets.token_hex(16)
        self._underway = Underway(nursery, self._answer, self._begin)
        self._quick = quick_reader(broker)
        self._stopped = False
        self._streams: dict[str, _Running] = {}
        self._watching: _Running | None = None

    def greet(self) -> None:
        """Put the first frame: hello {challenge, wire, limits, time, version}; time in ms."""
        info = self._broker.wire_info()
        hello = {name: info[name] for name in ("wire", "limits", "time", "version") if name in info}
        self._outbox.put(jsonrpc.notification("hello", {"challenge": self._challenge, **hello}))

    def take(self, frames: Sequence[Frame]) -> int:
        """Handle frames of one read, in order, until one of them has to wait; how many were handled.

        Each is then answered or under way. The rest is for `receive`. After `drain` none is handled.
        """
        outbox, tools, underway, quick = self._outbox, self._broker.tools, self._underway, self._quick
        for count, data in enumerate(frames):
            if self._stopped or underway.full or outbox.full:
                return count
            if data is not None and (started := quick.read(data)) is not None:
                underway.begin(started, self._who())
                continue
            message = jsonrpc.read(data) if data is not None else _BINARY
            if isinstance(message, jsonrpc.Request) and message.has_id:
                if message.method in tools:
                    underway.begin(message, self._who())
                elif message.method in _METHODS:
                    return count
                else:
                    text = f"there is no method {message.method[:64]!r}"
                    outbox.put(jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, text))
            elif isinstance(message, jsonrpc.Malformed):
                outbox.put(message.reply())
            else:
                outbox.put(_NO_REQUEST.reply())
        return len(frames)

    async def receive(self, frames: Sequence[Frame]) -> None:
        """Handle frames as `take` does, and wait where it would: while too much is under way or waits to be sent,
        and for what changes who the peer is or what it follows.

        Returns when each frame is answered or under way (after `drain`: dropped). Cancelling drops what was
        not begun; requests under way live as long as the nursery.
        """
        done = 0
        while True:
            done += self.take(frames[done : done + FAIR])
            if done >= len(frames) or self._stopped:
                return
            await self._underway.wait_room()
            await self._outbox.wait_room()
            message = jsonrpc.read(frames[done] or b"")
            if isinstance(message, jsonrpc.Request) and message.method in _METHODS:
                await self._change(message)
                done += 1
            await trio.lowlevel.checkpoint()

    def leave(self) -> None:
        """The peer is gone: stop its streams and its watch. Requests under way go on (`drain`)."""
        for running in self._streams.values():
            running.stop()
        if self._watching is not None:
            self._watching.stop()

    async def drain(self) -> None:
        """Take no more requests and wait for those under way; the caller bounds it. Cancelling is safe."""
        self._stopped = True
        await self._underway.wait_none()

    def _who(self) -> Caller:
        """The peer as it stands now: a capability that the upgrade carried is dropped when its time is over."""
        until = self._caller.until
        if until is not None and self._clock.now_ms() >= until * 1000:
            self._caller = msgspec.structs.replace(self._caller, pk=None, code=None, until=None)
        return self._caller

    def _begin(self, job: Job, request: Started) -> bool:
        """Start a tool that needs no task."""
        try:
            return self._broker.begin(
                job.caller, request.tool, request.arguments, partial(self._give, job, request)
            )
        except Exception:
            return False  # `_answer` meets the same fault, and shows it

    def _give(self, job: Job, request: Started, outcome: Any) -> None:
        """Put the answer of a tool that had no task; or run it, where it turns out to need one."""
        if isinstance(outcome, Again):
            self._underway.hire(job)
            return
        try:
            self._outbox.put(_rendered(request.id, outcome))
        except Exception as fault:
            self._outbox.put(render.jsonrpc_fault(request.id, render.incident(fault, request.tool.name)))
        self._underway.ended(job)

    async def _answer(self, request: jsonrpc.Request, caller: Caller) -> None:
        """Run one tool. Here alone a tool's crash is contained: the peer gets -32603, the rest goes on."""
        outbox = self._outbox
        if outbox.full:
            await outbox.wait_room()
        try:
            outcome = await self._broker.call(caller, request.method, request.params)
            answer = _rendered(request.id, outcome)
        except Unavailable:
            answer = render.jsonrpc_error(request.id, render.NO_STORE)
        except Exception as fault:
            answer = render.jsonrpc_fault(request.id, render.incident(fault, request.method))
        if outbox.full:  # what others have put meanwhile
            await outbox.wait_room()
        outbox.put(answer)

    async def _change(self, request: jsonrpc.Request) -> None:
        """Run a method of the connection itself, while nothing more is read. After `drain` it is dropped."""
        if self._stopped:
            return
        kind, run = _METHODS[request.method]
        try:
            params = _read_params(kind, request.params)
            outcome = params if isinstance(params, Refusal) else await run(self, request.id, params)
        except Unavailable:
            outcome = render.NO_STORE
        except Exception as fault:
            number = render.incident(fault, request.method)
            self._outbox.put(render.jsonrpc_fault(request.id, number))
            return
        if isinstance(outcome, Refusal):
            self._outbox.put(render.jsonrpc_error(request.id, outcome))
        elif outcome is not None:
            self._outbox.put(jsonrpc.result(request.id, outcome))

    async def _authenticate(self, _id: jsonrpc.Id, params: _Authenticate) -> dict[str, Any] | Refusal:
        if params.token is not UNSET:
            return refuse("unauthenticated", "this broker takes no tokens: sign the challenge")
        proof = _proof(params)
        if proof is None:
            return refuse("bad_request", "authenticate needs 'statement' and 'sig'", path="statement")
        if isinstance(proof, Refusal):
            return proof
        admitted = await self._broker.admit(self._caller, *proof, challenge=self._challenge)
        if isinstance(admitted, Refusal):
            return admitted
        self._caller = admitted
        return {"pk": admitted.pk}

    async def _follow(self, id: jsonrpc.Id, params: _Follow) -> Refusal | None:
        caller, proof = self._who(), _proof(params)
        if proof is not None:
            admitted = proof if isinstance(proof, Refusal) else await self._broker.admit(caller, *proof)
            if isinstance(admitted, Refusal):
                return admitted
            caller = admitted
        if caller.pk is None:
            return refuse("unauthenticated", "authenticate first, or send a follow statement and its sig")
        reader = await self._broker.follow(caller, code=params.code, after=params.after)
        if isinstance(reader, Refusal):
            return reader
        cursor = read_cursor(reader.resume.head)
        stream = cursor.tag if cursor is not None else ""
        if stream not in self._streams and len(self._streams) >= STREAMS:
            reader.close()
            return refuse("bad_request", f"one connection follows at most {STREAMS} streams")
        if (old := self._streams.get(stream)) is not None:
            old.stop()
        running = self._streams[stream] = _Running(params.code)
        self._outbox.put(jsonrpc.result(id, reader.resume))
        self._nursery.start_soon(self._feed, stream, running, reader)
        return None

    async def _unfollow(self, _id: jsonrpc.Id, params: _Unfollow) -> dict[str, Any]:
        ending = [
            (stream, running)
            for stream, running in self._streams.items()
            if params.code is None or running.code == params.code
        ]
        for stream, running in ending:
            running.stop()
            del self._streams[stream]
        return {"ended": len(ending)}

    async def _watch(self, id: jsonrpc.Id, params: _Watch) -> Refusal | None:
        watch = await self._broker.watch(self._caller, params.codes)
        if isinstance(watch, Refusal):
            return watch
        if self._watching is not None:
            self._watching.stop()
        self._watching = _Running()
        self._outbox.put(jsonrpc.result(id, {"desks": watch.snapshot}))
        self._nursery.start_soon(self._report, self._watching, watch)
        return None

    async def _ping(self, _id: jsonrpc.Id, _params: _Nothing) -> dict[str, Any]:
        return {"time": self._clock.now_ms()}

    async def _feed(self, stream: str, running: _Running, reader: Reader) -> None:
        """Put a stream's events until it ends, is replaced, or the peer falls behind."""
        outbox = self._outbox
        try:
            async with reader:
                with running.scope:
                    reader.push_to(partial(self._push, running))
                    while True:
                        for event in await reader.receive():
                            if outbox.full:
                                await outbox.wait_room()
                            if not running.live:
                                return
                            outbox.put_frame(_framed(event, outbox))
        except Slow:
            if running.live:
                self._outbox.end(render.CLOSE["slow"], at_once=True)
        except Ended as end:
            self._tell_end(running, end.refusal)
        except Unavailable:
            self._tell_end(running, render.NO_STORE)
        except Exception as fault:
            self._fail(fault, "a stream")
        finally:
            if self._streams.get(stream) is running:
                del self._streams[stream]

    def _push(self, running: _Running, events: Sequence[Delivery]) -> bool:
        """Take events where they were committed, while the feed has nothing else to do and there is room."""
        outbox = self._outbox
        if outbox.full or not running.live:
            return False
        for event in events:
            outbox.put_frame(_framed(event, outbox))
        return True

    def _tell_end(self, running: _Running, refusal: Refusal) -> None:
        """Say why a stream ends, where the peer has not ended it itself."""
        if running.live:
            params = {"code": running.code, "refusal": refusal.body()}
            self._outbox.put(jsonrpc.notification("ended", params))

    async def _report(self, running: _Running, watch: Watch) -> None:
        """Put the changes of presence until another watch takes this one's place."""
        try:
            async with watch:
                with running.scope:
                    while True:
                        await self._outbox.wait_room()
                        changes = await watch.receive()
                        if not running.live:
                            return
                        self._outbox.put(jsonrpc.notification("presence", {"desks": changes}))
        except Exception as fault:
            self._fail(fault, "presence")

    def _fail(self, fault: Exception, where: str) -> None:
        """A follower crashed: without it the connection would be silent, so it is closed; the peer resumes."""
        render.incident(fault, where)
        self._outbox.end(render.CLOSE["fault"])


_METHODS: Final[dict[str, tuple[type[msgspec.Struct], Callable[..., Awaitable[Any]]]]] = {
    "authenticate": (_Authenticate, Session._authenticate),
    "follow": (_Follow, Session._follow),
    "unfollow": (_Unfollow, Session._unfollow),
    "watch": (_Watch, Session._watch),
    "ping": (_Nothing, Session._ping),
}
"""What a connection has beside the tools: method → params, and what runs."""

_BINARY: Final = jsonrpc.Malformed(jsonrpc.INVALID_REQUEST, "a binary frame: send JSON text")
_NO_REQUEST: Final = jsonrpc.Malformed(
    jsonrpc.INVALID_REQUEST, "a request needs an id; the wire takes no other"
)


def _rendered(id: jsonrpc.Id | None, outcome: Any) -> bytes:
    if isinstance(outcome, Refusal):
        return render.jsonrpc_error(id, outcome)
    return jsonrpc.result(id, outcome)


def _framed(event: Delivery, outbox: Outbox) -> bytes:
    """An event as a frame, made once for all connections that have the same way of framing."""
    made = event.made
    if made is None or made[0] is not outbox.frame:
        text = b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (event.kind.encode(), event.params)
        made = event.made = (outbox.frame, outbox.frame(text))
    return made[1]


def restart() -> render.Close:
    """The close at shutdown: 1012 and, as JSON, after how many ms to come back, by chance."""
    least, most = RETRY_MS
    wait_ms = least + secrets.randbelow(most - least)
    return render.Close(render.CLOSE["restart"].code, msgspec.json.encode({"retry_in_ms": wait_ms}).decode())


def _read_params(kind: type[msgspec.Struct], text: bytes) -> Any:
    """The params of a method of the connection, strictly at every depth: bad_request names the path.

    What stands in `statement` is the broker's to judge, as a statement.
    """
    members = canonical.members(text)
    if isinstance(members, Refusal):
        return refuse("bad_request", members.message, **members.detail)
    for name, value in members.items():
        if name != "statement" and (fault := canonical.scan(bytes(value), at=name)) is not None:
            return fault
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        path = re.search(r"`\$\.([^`]*)`", str(error))
        return refuse("bad_request", str(error), **({"path": path[1]} if path else {}))


def _proof(params: _Authenticate | _Follow) -> tuple[bytes, str] | Refusal | None:
    """The statement's JSON text and its sig; None where neither is given."""
    statement, sig = params.statement, params.sig
    if statement is UNSET and sig is UNSET:
        return None
    if statement is UNSET or sig is UNSET:
        path = "sig" if sig is UNSET else "statement"
        return refuse("bad_request", "statement and sig go together", path=path)
    text = bytes(statement)
    if not text.startswith(b"{"):
        return refuse("bad_request", "statement must be an object", path="statement")
    return text, sig
