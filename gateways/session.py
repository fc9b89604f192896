"""One dealer's connection over WebSocket, whatever carries its frames (wire.md, WebSocket and Streams).

1. Every frame is answered: what is no request gets -32600 with id null. Nothing is dropped in silence.
2. Answers and events leave through one outbox, which one writer empties. While it is full nothing is begun and
   nothing put: a peer that reads slowly is served slowly, and nobody else waits for it. A stream that falls behind
   meanwhile is closed as slow (4008) and resumed by cursor.
3. Who the peer is (peer.py) and what it follows (feeds.py) changes in the order of its frames; tools run side by side,
   but for what is sent in one conversation. A frame that is large is read beside the loop.
4. With the right to speak the connection ends: 4001, and nothing that waits is handed out any more.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import trio
from msgspec import UNSET, Meta, UnsetType

from broker.apart import LARGE, apart
from broker.app import Again, Broker, Caller
from broker.clock import Clock, SystemClock
from broker.store.port import Unavailable
from broker.wire import canonical
from broker.wire.ids import MAX_SAFE, ChannelParam, CodeParam
from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc, render, requestid
from gateways.caller import Bearing
from gateways.feeds import Feeds
from gateways.outbox import Outbox
from gateways.peer import Peer
from gateways.quick import Started, quick_reader
from gateways.underway import Job, Underway

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


class _Authenticate(msgspec.Struct, forbid_unknown_fields=True):
    statement: msgspec.Raw | UnsetType = UNSET
    sig: str | UnsetType = UNSET
    token: str | UnsetType = UNSET


class _Follow(msgspec.Struct, forbid_unknown_fields=True):
    code: CodeParam | None = None
    channel: ChannelParam | None = None
    after: str | None = None
    after_seq: Annotated[int, Meta(ge=0, le=MAX_SAFE)] | None = None
    """Of a channel: the last message that the peer has."""
    statement: msgspec.Raw | UnsetType = UNSET
    sig: str | UnsetType = UNSET


class _Unfollow(msgspec.Struct, forbid_unknown_fields=True):
    code: CodeParam | None = None
    channel: ChannelParam | None = None


class _Watch(msgspec.Struct, forbid_unknown_fields=True):
    codes: list[CodeParam]


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Session:
    """The protocol of one connection. The carrier calls `greet` once, then `receive` for what it reads.

    `nursery` is the connection's own: it holds requests, streams and the watch, and ends with the connection.
    `clock` is the broker's. `bearing` judges tokens; without it none are taken. `widen` is called once the peer bears
    one: larger frames may come from then on. Call `close` at the very end.
    """

    def __init__(
        self,
        broker: Broker,
        caller: Caller,
        outbox: Outbox,
        nursery: trio.Nursery,
        *,
        clock: Clock = SYSTEM,
        bearing: Bearing | None = None,
        widen: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._broker = broker
        self._bearing = bearing
        self._outbox = outbox
        self._challenge = secrets.token_hex(16)
        self._request = requestid.current()
        """The connection's id: what is taken from the socket runs in whatever task is at hand."""
        self._underway = Underway(nursery, self._answer, self._begin)
        self._quick = quick_reader(broker)
        self._large = trio.Event()
        """Set while no large request is under way."""
        self._large.set()
        self._stopped = False
        self._lost = False
        self._feeds = Feeds(outbox, nursery)
        self._widen = widen
        self._peer = Peer(broker, caller, nursery, clock, self._lose)
        if caller.principal is not None:
            widen(caller.principal)

    def greet(self) -> None:
        """Put the first frame: hello {challenge, wire, limits, time, version}; time in ms."""
        info = self._broker.wire_info()
        hello = {name: info[name] for name in ("wire", "limits", "time", "version") if name in info}
        self._outbox.put(jsonrpc.notification("hello", {"challenge": self._challenge, **hello}))

    def take(self, frames: Sequence[Frame]) -> int:
        """Handle frames of one read, in order, until one of them has to wait; how many were handled.

        Each is then answered or under way. The rest is for `receive`. After `drain` none is handled.
        """
        outbox, underway, quick, now = self._outbox, self._underway, self._quick, self._peer.now
        for count, data in enumerate(frames):
            if self._stopped or underway.full or outbox.full:
                return count
            if data is None:
                outbox.put(_BINARY.reply())
            elif len(data) > LARGE:
                return count
            elif (started := quick.read(data)) is not None:
                underway.begin(started, now())
            elif not self._handle(jsonrpc.read(data)):
                return count
        return len(frames)

    def _handle(self, message: jsonrpc.Request | jsonrpc.Response | jsonrpc.Malformed) -> bool:
        """Answer a message, or have it under way; False: it is for `_change`."""
        if isinstance(message, jsonrpc.Request) and message.has_id:
            if message.method in self._broker.tools:
                if len(message.params) > LARGE:
                    self._large = trio.Event()
                self._underway.begin(message, self._peer.now())
            elif message.method in _METHODS:
                return False
            else:
                text = f"there is no method {message.method[:64]!r}"
                self._outbox.put(jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, text))
        elif isinstance(message, jsonrpc.Malformed):
            self._outbox.put(message.reply())
        else:
            self._outbox.put(_NO_REQUEST.reply())
        return True

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
            data = frames[done] or b""
            large = len(data) > LARGE
            if large:  # one of a connection at a time, so that they don't pile up
                await self._large.wait()
            message = await apart(jsonrpc.read, data) if large else jsonrpc.read(data)
            if isinstance(message, jsonrpc.Request) and message.has_id and message.method in _METHODS:
                await self._change(message)
                done += 1
            elif large and not self._stopped:
                self._handle(message)
                done += 1
            await trio.lowlevel.checkpoint()

    @property
    def reads_large(self) -> bool:
        """Whether a large request is under way."""
        return not self._large.is_set()

    def leave(self) -> None:
        """The peer is gone: stop its streams and its watch. Requests under way go on (`drain`)."""
        self._feeds.stop()

    async def drain(self) -> None:
        """Take no more requests and wait for those under way, but for those of a peer that has lost its right; the
        caller bounds it. Cancelling is safe."""
        self._stopped = True
        if not self._lost:
            await self._underway.wait_none()

    def close(self) -> None:
        """Give up what holds it. Cancelled or not, the carrier calls this when it has ended."""
        self._peer.close()

    def _lose(self, close: render.Close) -> None:
        """The peer may speak no more: nothing is begun, nothing that waits is sent, its streams stop."""
        self._stopped = self._lost = True
        self._feeds.stop()
        self._outbox.end(close, at_once=True)

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
            with requestid.bound(self._request):
                number = render.incident(fault, request.tool.name)
            self._outbox.put(render.jsonrpc_fault(request.id, number))
        self._underway.ended(job)

    async def _answer(self, request: jsonrpc.Request, caller: Caller) -> None:
        """Run one tool. Here alone a tool's crash is contained: the peer gets -32603, the rest goes on."""
        requestid.bind(self._request)
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
        if len(request.params) > LARGE:
            self._large.set()
        if outbox.full:  # what others have put meanwhile
            await outbox.wait_room()
        outbox.put(answer)

    async def _change(self, request: jsonrpc.Request) -> None:
        """Run a method of the connection itself, while nothing more is read. After `drain` it is dropped."""
        if self._stopped:
            return
        kind, run = _METHODS[request.method]
        try:
            large = len(request.params) > LARGE
            read = partial(_read_params, kind, request.params)
            params = await apart(read) if large else read()
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
            return await self._bear(params.token, params)
        proof = _proof(params)
        if proof is None:
            return refuse(
                "bad_request", "authenticate needs 'statement' and 'sig', or 'token'", path="statement"
            )
        if isinstance(proof, Refusal):
            return proof
        admitted = await self._broker.admit(self._peer.now(), *proof, challenge=self._challenge)
        if isinstance(admitted, Refusal):
            return admitted
        self._peer.prove(admitted)
        return {"pk": admitted.pk}

    async def _bear(self, token: str, params: _Authenticate) -> dict[str, Any] | Refusal:
        """Take a token, or a later one in its place. What it replaces stays good where it is refused."""
        if params.statement is not UNSET or params.sig is not UNSET:
            return refuse("bad_request", "a statement or a token, one after the other", path="token")
        if self._bearing is None:
            return refuse("unauthenticated", "this broker takes no tokens: sign the challenge")
        found = await self._bearing(self._peer.now(), token)
        if isinstance(found, Refusal):
            return found
        refused = self._peer.bear(found)
        if refused is not None:
            return refused
        self._widen(found.principal or "")
        agent = {"agent_id": found.agent} if found.agent is not None else {}
        return {"principal": found.principal, **agent, "scopes": sorted(found.scopes), "until": found.until}

    async def _follow(self, id: jsonrpc.Id, params: _Follow) -> Refusal | None:
        if params.channel is not None:
            return await self._follow_channel(id, params.channel, params)
        if params.after_seq is not None:
            return refuse("bad_request", "after_seq is for a channel", path="after_seq")
        caller, proof = self._peer.now(), _proof(params)
        if proof is not None:  # whoever signs says whose stream is meant, whatever token was shown
            bare = Caller(address=caller.address, loopback=caller.loopback)
            admitted = proof if isinstance(proof, Refusal) else await self._broker.admit(bare, *proof)
            if isinstance(admitted, Refusal):
                return admitted
            caller = admitted
        if caller.identity is None:
            return refuse(
                "unauthenticated",
                "authenticate first (statement or token), or send a follow statement and its sig",
            )
        reader = await self._broker.follow(caller, code=params.code, after=params.after)
        return reader if isinstance(reader, Refusal) else self._feeds.follow(id, reader, params.code)

    async def _follow_channel(self, id: jsonrpc.Id, channel: str, params: _Follow) -> Refusal | None:
        if params.code is not None or _proof(params) is not None:
            return refuse("bad_request", "a channel is followed by a member's token alone", path="channel")
        reader = await self._broker.follow_channel(
            self._peer.now(), channel, after=params.after, after_seq=params.after_seq
        )
        return reader if isinstance(reader, Refusal) else self._feeds.follow(id, reader, channel=channel)

    async def _unfollow(self, _id: jsonrpc.Id, params: _Unfollow) -> dict[str, Any]:
        return {"ended": self._feeds.unfollow(params.code, params.channel)}

    async def _watch(self, id: jsonrpc.Id, params: _Watch) -> Refusal | None:
        watch = await self._broker.watch(self._peer.caller, params.codes)
        if isinstance(watch, Refusal):
            return watch
        self._feeds.watch(id, watch)
        return None

    async def _ping(self, _id: jsonrpc.Id, _params: _Nothing) -> dict[str, Any]:
        return {"time": self._clock.now_ms()}


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
