"""A dealer's way to the wire: what every link does, and the one over WebSocket.

1. A link keeps one principal's stream: it comes back by cursor after every break, and says when the wire
   could not give all that came in between.
2. `request` asks once. Asking again until the outcome is known is `settle`, with the identical bytes.
3. Before a statement is signed the other end has shown the pinned wire's key.

Source: wire.md, WebSocket, Streams and Retries.
"""

import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
import trio

from broker.wire.events import Resume
from gateways.client.clockwork import Backoff
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.pins import another_wire
from gateways.client.signer import Signer, join_params
from gateways.client.socket import Socket, open_socket

ANSWER_S: Final = 10.0
"""Seconds to wait for an answer before asking again: twice what a commit of the wire may take."""
_WAIT: Final = frozenset({"rate_limited", "overloaded"})
_ASK_AGAIN: Final = frozenset({"unavailable", "in_doubt"})
PASSING: Final = _WAIT | _ASK_AGAIN
"""Refusals after which the same is asked again."""


class Deliver(Protocol):
    """What a link hands over. Both are plain calls: they never block, and may raise WireFault."""

    def event(self, kind: str, params: bytes) -> None:
        """One event of the stream: ring, env, end, …, and its object as JSON text."""
        ...

    def gap(self, reason: str) -> None:
        """Events are missing (trimmed, epoch_changed, unknown, future): read the conversations again."""
        ...


class Asked(Protocol):
    """What can be asked once."""

    async def request(self, method: str, params: bytes) -> bytes:
        """Ask once. Waits for a connection first. Raises Refused; Disconnected when no answer came."""
        ...


class Link(Asked, Protocol):
    """One principal's connection to a wire, however it is made."""

    signer: Signer
    cursor: str | None

    async def run(
        self, deliver: Deliver, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep the stream until cancelled. Started once it is followed; a first failure is raised."""
        ...

    def proof(self) -> dict[str, Any]:
        """The params that show a read is ours, where the connection itself doesn't."""
        ...


async def settle(link: Asked, method: str, params: bytes, *, backoff: Backoff | None = None) -> bytes:
    """Ask with the identical bytes until the wire answers for good (wire.md, Retries). Raises Refused.

    It never gives up: bound it with a cancel scope. After cancelling, the outcome of a change is unknown, and
    only the same `params` may settle it.
    """
    backoff = backoff or Backoff()
    while True:
        try:
            return await link.request(method, params)
        except Disconnected as lost:
            wait = backoff.next_s(lost.retry_after_s)
        except Refused as no:
            if no.code in _WAIT:
                wait = no.retry_after_s if no.retry_after_s is not None else backoff.next_s()
            elif no.code in _ASK_AGAIN:
                wait = backoff.next_s(no.retry_after_s)
            else:
                raise
        await trio.sleep(wait)


class Hello(msgspec.Struct, frozen=True):
    """The server's first frame. `time`: the wire's clock, Unix milliseconds."""

    challenge: str
    wire: str
    time: int


class _Positioned(msgspec.Struct):
    cursor: str


class WebSocketLink:
    """A stream over one WebSocket at a time, on the public port's /ws or on the dealing port.

    `after`: the cursor to go on from ("0": the oldest kept; None: from now).
    """

    def __init__(
        self,
        url: str,
        signer: Signer,
        *,
        after: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.signer = signer
        self.cursor = after
        self.url = url
        self._ssl_context = ssl_context
        self._backoff = backoff or Backoff()
        self._socket: Socket | None = None
        self._up = trio.Event()
        self._hello: Hello | None = None
        self._greeted = trio.Event()
        self._ended = trio.Event()
        self._deliver: Deliver | None = None

    async def run(
        self, deliver: Deliver, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        self._deliver = deliver
        started = False

        def up() -> None:
            nonlocal started
            if not started:
                started = True
                task_status.started()

        while True:
            try:
                await self._connection(up)
            except Disconnected as lost:
                if not started:
                    raise
                await trio.sleep(self._backoff.next_s(lost.retry_after_s))

    async def request(self, method: str, params: bytes) -> bytes:
        while (socket := self._socket) is None:
            await self._up.wait()
        return await socket.request(method, params, ANSWER_S)

    def proof(self) -> dict[str, Any]:
        return {}

    async def _connection(self, up: Callable[[], None]) -> None:
        """One connection from greeting to end; always ends by raising."""
        self._hello, self._greeted, self._ended = None, trio.Event(), trio.Event()
        try:
            async with open_socket(self.url, self._notify, ssl_context=self._ssl_context) as socket:
                await self._authenticate(socket)
                await self._follow(socket)
                self._socket = socket
                self._up.set()
                self._backoff.reset()
                up()
                await self._stay(socket)
        except Refused as no:
            if no.code in PASSING:
                raise Disconnected(str(no), no.retry_after_s) from None
            raise
        finally:
            self._socket = None
            if self._up.is_set():  # else somebody may be waiting on it
                self._up = trio.Event()

    async def _stay(self, socket: Socket) -> None:
        """While the connection lasts; raises when it is of no use any more."""
        await self._ended.wait()
        # The wire restarts: its close with a hint follows. Else our stream alone has ended, and begins anew on a new
        # connection.
        await trio.sleep(ANSWER_S)
        raise Disconnected("the wire ended the stream")

    async def _greeting(self) -> Hello:
        """The wire's first frame; it is the wire that we mean, and its time is ours now."""
        with trio.move_on_after(ANSWER_S):
            await self._greeted.wait()
        if self._hello is None:
            raise Disconnected(f"no greeting in {ANSWER_S:g} s: is that a wire?")
        if self._hello.wire != self.signer.wire:
            raise another_wire(self._hello.wire, self.signer.wire)
        self.signer.clock.correct(self._hello.time)
        return self._hello

    async def _authenticate(self, socket: Socket) -> None:
        hello = await self._greeting()
        params = self.signer.statement("authenticate", nonce=hello.challenge)
        await socket.request("authenticate", params, ANSWER_S)

    async def _follow(self, socket: Socket) -> None:
        """Start the stream. Events may come before the answer: the cursor then stands at them already."""
        asked = self.cursor
        params = join_params({} if asked is None else {"after": asked})
        answer = await socket.request("follow", params, ANSWER_S)
        resume = read_resume(answer)
        if self.cursor == asked:
            self.cursor = resume.from_
        if asked is not None and not resume.recovered and self._deliver is not None:
            self._deliver.gap(resume.reason or "unknown")

    def _notify(self, method: str, params: bytes) -> None:
        if method == "hello":
            self._hello = read_hello(params)
            self._greeted.set()
        elif method == "ended":
            self._ended.set()
        elif self._deliver is not None:
            self._deliver.event(method, params)
            self.cursor = read_cursor_of(params) or self.cursor


def read_hello(params: bytes) -> Hello:
    """The greeting. Raises WireFault for what is none."""
    try:
        return msgspec.json.decode(params, type=Hello)
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("the wire's greeting can't be read") from None


def read_resume(answer: bytes) -> Resume:
    """The first answer on a stream; a plain resume or one inside {"resume": …}."""
    try:
        found = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(found.get("resume", answer), type=Resume)
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("the wire's resume can't be read") from None


def read_cursor_of(params: bytes) -> str | None:
    """The position of an event; None for a notification that has none."""
    try:
        return msgspec.json.decode(params, type=_Positioned).cursor
    except (msgspec.MsgspecError, RecursionError):
        return None
