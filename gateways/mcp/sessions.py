"""Sessions of the handshake era: who opened one, what is under way in it, and when it is forgotten.

1. A session belongs to the principal that opened it; to everybody else it does not exist. One that nobody in
   particular opened becomes that of the first who shows who it is: clients sign in when a call asks for it.
2. Nothing is routed by an id that a client chose. Such an id only finds what its own session may cancel.
3. A session that is in use (a call, a stream) is neither expired nor pushed out.

Most clients never say goodbye, so that idle sessions go after a time, and the one idle longest makes room.
"""

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import trio

from broker.app import Caller
from gateways import jsonrpc

IDLE_S: Final = 1800.0
"""Seconds without a request or an open stream after which a session is forgotten."""
MOST: Final = 16_384
"""Sessions in all; some kilobytes each."""
MOST_OF_ONE: Final = 1_024
"""Sessions of one principal, or of one address without a principal."""
MOST_SUBSCRIPTIONS: Final = 64
"""Resources that one session, or one listen, may watch."""
STREAM_BACKLOG: Final = 256
"""Messages that may wait for a session's stream; beyond it the stream is ended and the client reconnects."""


Opener = Callable[[Caller], Awaitable[object]]
"""Opens the changes of a resource, as a caller may see them."""


class Stream:
    """A session's GET stream, newest wins. Messages in by `push`, out by `receive`."""

    def __init__(self) -> None:
        self._in, self._out = trio.open_memory_channel[bytes](STREAM_BACKLOG)
        self._watched: set[str] = set()
        self._ended = False
        self._lot = trio.lowlevel.ParkingLot()

    def push(self, message: bytes) -> None:
        """Queue a message; one that finds the queue full ends the stream."""
        try:
            self._in.send_nowait(message)
        except trio.WouldBlock:
            self.end()
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            pass

    def end(self) -> None:
        """No more messages: the reader gets what is queued, then EndOfChannel."""
        self._in.close()
        self._ended = True
        self._lot.unpark_all()

    def watched(self, uri: str) -> None:
        """From now on the stream tells of each change of this resource, or never will."""
        self._watched.add(uri)
        self._lot.unpark_all()

    def unwatched(self, uri: str) -> None:
        """It no longer does."""
        self._watched.discard(uri)

    async def wait_watched(self, uri: str) -> None:
        """Wait until `watched` was said of a resource, or the stream has ended. Cancelling is safe."""
        while not (self._ended or uri in self._watched):
            await self._lot.park()

    async def receive(self) -> bytes:
        """The next message. Raises trio.EndOfChannel at the end. Cancelling loses nothing."""
        return await self._out.receive()


class Asking:
    """A request of ours that the client has not answered yet."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.response: jsonrpc.Response | None = None


class Session:
    """One handshake. `principal` is the caller's identity: its token's principal, the key that it proved, or None."""

    def __init__(self, id: str, principal: str | None, revision: str, capabilities: dict[str, Any]) -> None:
        self.id: Final = id
        self.principal = principal
        self.revision: Final = revision
        self.capabilities: Final = capabilities
        self.stream: Stream | None = None
        self.subscriptions: dict[str, Opener] = {}
        """By uri: how its changes are opened, as a caller may see them."""
        self.subscribed = trio.Event()
        """Set, and replaced by a new one, when `subscriptions` changes."""
        self.log_level = "info"
        """The least severe level that the client wants to hear of (logging/setLevel)."""
        self.touched = 0.0
        self._asked = 0
        self._asking: dict[int, Asking] = {}
        self._under_way: dict[tuple[type, jsonrpc.Id], list[trio.CancelScope]] = {}
        self._uses = 0

    @property
    def busy(self) -> bool:
        """Whether a call or a stream holds it."""
        return self._uses > 0

    @contextmanager
    def using(self) -> Iterator[None]:
        """Count as in use meanwhile."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    @contextmanager
    def cancellable(self, id: jsonrpc.Id) -> Iterator[trio.CancelScope]:
        """A scope that `cancel` with this id ends. Several requests may carry one id at the same time."""
        key = (type(id), id)
        with trio.CancelScope() as scope:
            self._under_way.setdefault(key, []).append(scope)
            try:
                yield scope
            finally:
                scopes = self._under_way[key]
                scopes.remove(scope)
                if not scopes:
                    del self._under_way[key]

    def cancel(self, id: Any) -> None:
        """End the request with this id. Of two it can't be told which is meant: neither is ended."""
        scopes = self._under_way.get((type(id), id), []) if type(id) in (int, str) else []
        if len(scopes) == 1:
            scopes[0].cancel()

    async def request(
        self, send: Callable[[bytes], Awaitable[None]], method: str, params: dict[str, Any]
    ) -> jsonrpc.Response:
        """Ask the client something on a stream of its own, and wait for its answer, which comes by a POST.

        Cancelling gives up: an answer that still comes is dropped.
        """
        self._asked += 1
        id, asking = self._asked, Asking()
        self._asking[id] = asking
        try:
            await send(jsonrpc.request(id, method, params))
            await asking.answered.wait()
        finally:
            del self._asking[id]
        assert asking.response is not None  # it was set before the event
        return asking.response

    def answered(self, response: jsonrpc.Response) -> bool:
        """Take the client's answer to a request of ours; False where nobody waits for it (any more)."""
        asking = self._asking.get(response.id) if type(response.id) is int else None
        if asking is None or asking.response is not None:
            return False
        asking.response = response
        asking.answered.set()
        return True

    def take(self, principal: str) -> None:
        """It is this principal's from now on. A stream that was opened before is not: the client opens another."""
        self.principal = principal
        if self.stream is not None:
            self.stream.end()

    def open_stream(self) -> Stream:
        """A new GET stream; the one before it ends (its connection may have died unseen behind a proxy)."""
        if self.stream is not None:
            self.stream.end()
        self.stream = Stream()
        return self.stream

    def subscribe(self, uri: str, source: Opener) -> bool:
        """Have the session's stream tell of a resource's changes; False beyond MOST_SUBSCRIPTIONS."""
        if uri not in self.subscriptions and len(self.subscriptions) >= MOST_SUBSCRIPTIONS:
            return False
        self.subscriptions.setdefault(uri, source)
        self._tell_subscribed()
        return True

    def unsubscribe(self, uri: str) -> None:
        """No more of it. What was not subscribed is no fault."""
        self.subscriptions.pop(uri, None)
        self._tell_subscribed()

    def _tell_subscribed(self) -> None:
        changed, self.subscribed = self.subscribed, trio.Event()
        changed.set()

    def close(self) -> None:
        """End its stream and all that is under way."""
        if self.stream is not None:
            self.stream.end()
        for scopes in self._under_way.values():
            for scope in scopes:
                scope.cancel()


class Statistics(msgspec.Struct, frozen=True):
    """How many sessions stand, and how many of them are in use."""

    sessions: int
    busy: int


class Sessions:
    """All sessions of one endpoint. No method blocks. `now`: monotonic seconds."""

    def __init__(
        self,
        *,
        now: Callable[[], float] = trio.current_time,
        idle_s: float = IDLE_S,
        most: int = MOST,
        most_of_one: int = MOST_OF_ONE,
    ) -> None:
        self._now = now
        self._idle_s = idle_s
        self._most = most
        self._most_of_one = most_of_one
        self._all: OrderedDict[str, Session] = OrderedDict()
        self._owners: dict[str, OrderedDict[str, None]] = {}
        self._owner_of: dict[str, str] = {}

    def open(
        self, owner: str, principal: str | None, revision: str, capabilities: dict[str, Any]
    ) -> Session | None:
        """A new session, or None when every place is in use. `owner` is whose places it takes."""
        self._expire()
        own = self._owners.get(owner, OrderedDict())
        if len(own) >= self._most_of_one and not self._push_out(own):
            return None
        if len(self._all) >= self._most and not self._push_out(self._all):
            return None
        session = Session(secrets.token_hex(24), principal, revision, capabilities)
        session.touched = self._now()
        self._all[session.id] = session
        self._owners.setdefault(owner, OrderedDict())[session.id] = None
        self._owner_of[session.id] = owner
        return session

    def find(self, id: str, principal: str | None) -> Session | None:
        """The principal's session of this id, or nobody's, which becomes its own; it counts as used now."""
        self._expire()
        session = self._all.get(id)
        if session is not None and session.principal is None and principal is not None:
            session.take(principal)
        if session is None or session.principal != principal:
            return None
        session.touched = self._now()
        self._all.move_to_end(id)
        self._owners[self._owner_of[id]].move_to_end(id)
        return session

    def close(self, session: Session) -> None:
        """Forget it, and end what it holds. A second time does nothing."""
        if self._all.pop(session.id, None) is None:
            return
        owner = self._owner_of.pop(session.id)
        del self._owners[owner][session.id]
        if not self._owners[owner]:
            del self._owners[owner]
        session.close()

    def end_streams(self) -> None:
        """End every GET stream: the process is about to stop."""
        for session in self._all.values():
            if session.stream is not None:
                session.stream.end()

    def statistics(self) -> Statistics:
        """A snapshot."""
        return Statistics(len(self._all), sum(session.busy for session in self._all.values()))

    def _expire(self) -> None:
        """Forget those idle too long. Ordered by last use, so that it stops at the first that stays."""
        horizon = self._now() - self._idle_s
        while self._all:
            session = next(iter(self._all.values()))
            if session.touched > horizon:
                return
            if session.busy:
                session.touched = self._now()
                self._all.move_to_end(session.id)
            else:
                self.close(session)

    def _push_out(self, ids: OrderedDict[str, Any]) -> bool:
        """Forget the one of these that is idle longest."""
        for id in ids:
            if not self._all[id].busy:
                self.close(self._all[id])
                return True
        return False
