"""MCP over two byte streams, one message a line: both eras over one pair of pipes.

1. Nothing goes out but JSON-RPC messages, each on a line of its own (MCP, stdio transport).
2. The era is the request's own, as on HTTP: a protocol version in `_meta` is 2026-07-28, all else the handshake
   era. There are no headers, so that nothing has to agree with them.
3. In both eras notifications/cancelled ends a request, and nothing more is sent for it.

Source: MCP 2025-11-25 and 2026-07-28, Transports (stdio), Cancellation, Versioning.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import trio

from broker.app import Caller
from broker.wire.ids import Pk
from broker.wire.refusals import refuse
from gateways import jsonrpc
from gateways.mcp import headers
from gateways.mcp.dispatch import Dispatch, Params, read_meta, read_params, value_of
from gateways.mcp.revisions import (
    BARE,
    CAPABILITIES_KEY,
    METHODS,
    MODERN,
    VERSION_KEY,
    Fault,
    row_of,
    unsupported,
)
from gateways.mcp.sessions import Session
from gateways.mcp.surface import Ask, Denied, Result

MOST_LINE: Final = 1024 * 1024
"""The longest message taken, bytes: a body may have 8 KiB, and clients write it with escapes."""
MOST_AT_ONCE: Final = 64
"""Requests under way; a client that wants more is told overloaded."""
MOST_WAITING: Final = 16_384
"""Messages that may wait for a client that does not read; beyond it the client counts as gone."""
GRACE_S: Final = 0.5
"""Seconds that what is under way may still take when no more input comes."""

Receive = Callable[[], Awaitable[bytes]]
"""Some bytes; none at the end."""
Send = Callable[[bytes], Awaitable[None]]
"""Writes all of it. Raises BrokenPipeError or trio.BrokenResourceError when nobody reads."""


class Lines:
    """Bytes into messages, without line ends and without empty ones; None stands for one that is too long."""

    def __init__(self, most: int = MOST_LINE) -> None:
        self._most = most
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The messages that are whole now."""
        found: list[bytes | None] = []
        *whole, last = data.split(b"\n")
        for part in whole:
            self._add(part)
            found += self.end()
        self._add(last)
        return found

    def end(self) -> list[bytes | None]:
        """What came after the last line end: a message too, where the input ends without one."""
        text = bytes(self._rest).strip(b" \t\r")
        found: list[bytes | None] = [None] if self._skipping else [text] if text else []
        self._rest.clear()
        self._skipping = False
        return found

    def _add(self, part: bytes) -> None:
        if self._skipping or len(self._rest) + len(part) > self._most:
            self._rest.clear()
            self._skipping = True
        else:
            self._rest += part


class Stdio:
    """One client on two pipes. `pk`: who it deals as."""

    def __init__(self, dispatch: Dispatch, pk: Pk, receive: Receive, send: Send) -> None:
        self._dispatch = dispatch
        self._caller = Caller(pk=pk)
        self._receive = receive
        self._send = send
        self._out, self._messages = trio.open_memory_channel[bytes](MOST_WAITING)
        self._flights = Session("stdio", pk, BARE, {})
        """Finds what a cancellation names, in both eras."""
        self._session: Session | None = None
        """The handshake, once there was one."""
        self._under_way = 0
        self._idle = trio.Event()

    async def serve(self) -> None:
        """Until the input ends or nobody reads the output; then what is under way gets GRACE_S and is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write_all)
                async with trio.open_nursery() as requests:
                    await self._read_all(requests)
                    with trio.move_on_after(GRACE_S):
                        while self._under_way:
                            self._idle = trio.Event()
                            await self._idle.wait()
                    requests.cancel_scope.cancel()
                self._out.close()
                nursery.cancel_scope.deadline = trio.current_time() + GRACE_S
        except* (BrokenPipeError, trio.BrokenResourceError):
            pass  # the client is gone: there is nobody to tell

    async def _read_all(self, requests: trio.Nursery) -> None:
        """Never waits for the output, so that a client that stopped reading can still end us by closing."""
        lines = Lines()
        while data := await self._receive():
            for line in lines.feed(data):
                self._take(requests, line)
                await trio.lowlevel.checkpoint()
        for line in lines.end():
            self._take(requests, line)

    async def _write_all(self) -> None:
        """One writer, so that a request that is cancelled can't leave half a message behind."""
        async for message in self._messages:
            waiting = [message]
            with suppress(trio.WouldBlock, trio.EndOfChannel):
                while len(waiting) < MOST_AT_ONCE:
                    waiting.append(self._messages.receive_nowait())
            await self._send(b"".join(waiting))

    def _take(self, requests: trio.Nursery, line: bytes | None) -> None:
        if line is None:
            words = f"a message beyond {MOST_LINE} bytes"
            self._reply(jsonrpc.error(None, jsonrpc.INVALID_REQUEST, words))
            return
        match jsonrpc.read(line):
            case jsonrpc.Malformed() as malformed:
                self._reply(malformed.reply())
            case jsonrpc.Response() as response:
                if self._session is not None:
                    self._session.answered(response)
            case jsonrpc.Request(has_id=False) as note:
                self._note(note)
            case jsonrpc.Request() as request:
                self._begin(requests, request)

    def _note(self, note: jsonrpc.Request) -> None:
        if note.method == "notifications/cancelled":
            params = read_params(note.params)
            if not isinstance(params, Fault) and "requestId" in params:
                self._flights.cancel(value_of(params["requestId"]))

    def _begin(self, requests: trio.Nursery, request: jsonrpc.Request) -> None:
        assert request.id is not None  # it has one
        ready = self._ready(request)
        if isinstance(ready, Fault):
            self._reply(jsonrpc.error(request.id, ready.code, ready.message, ready.data))
        elif isinstance(ready, dict):
            self._reply(jsonrpc.result(request.id, ready))
        elif self._under_way >= MOST_AT_ONCE:
            no = refuse("overloaded", "too many requests under way", retry_after_ms=1000)
            self._reply(jsonrpc.error(request.id, jsonrpc.REFUSED, no.message, no.body()))
        else:
            self._under_way += 1
            requests.start_soon(self._carry_out, request.id, request.method, *ready)

    def _ready(self, request: jsonrpc.Request) -> tuple[Ask, Params] | dict[str, Any] | Fault:
        """The rungs before the method; a handshake is answered here, in its place among the messages."""
        params = read_params(request.params)
        if isinstance(params, Fault):
            return params
        meta = read_meta(params)
        if isinstance(meta, Fault):
            return meta
        if VERSION_KEY in meta:
            fault = _check_modern(request.method, meta)
            return fault or (self._ask(request.id, MODERN, meta, None, meta[CAPABILITIES_KEY]), params)
        if request.method == "initialize":
            return self._initialize(params)
        session = self._session
        revision, can = (session.revision, session.capabilities) if session is not None else (BARE, {})
        return self._ask(request.id, revision, meta, session, can), params

    def _initialize(self, params: Params) -> dict[str, Any] | Fault:
        outcome = self._dispatch.initialize(params)
        if not isinstance(outcome, Fault):
            can = self._dispatch.client_capabilities(params)
            self._session = Session("stdio", self._caller.pk, outcome["protocolVersion"], can)
        return outcome

    def _ask(
        self,
        id: jsonrpc.Id | None,
        revision: str,
        meta: dict[str, Any],
        session: Session | None,
        capabilities: dict[str, Any],
    ) -> Ask:
        return Ask(
            id=id,
            caller=self._caller,
            revision=revision,
            meta=meta,
            session=session,
            notify=self._write,
            capabilities=capabilities,
        )

    async def _carry_out(self, id: jsonrpc.Id, method: str, ask: Ask, params: Params) -> None:
        """The method, and its answer unless it was cancelled before it had one."""
        outcome: Result | None = None
        try:
            with self._flights.cancellable(id):
                outcome = await self._dispatch.answer(ask, method, params)
            assert not isinstance(outcome, Denied)  # our own tools ask for no token
            if isinstance(outcome, Fault):
                await self._write(jsonrpc.error(id, outcome.code, outcome.message, outcome.data))
            elif outcome is not None:
                await self._write(jsonrpc.result(id, outcome))
        finally:
            self._under_way -= 1
            self._idle.set()

    async def _write(self, message: bytes) -> None:
        """Have a message written, whole or, when cancelled, not at all. Raises trio.BrokenResourceError: see _reply."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._reply(message)

    def _reply(self, message: bytes) -> None:
        """Have a message written. Raises trio.BrokenResourceError where the client has long stopped reading."""
        if not message.isascii():  # some readers of lines take these for line ends
            message = message.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
        try:
            self._out.send_nowait(message + b"\n")
        except trio.WouldBlock:
            raise trio.BrokenResourceError("the client does not read") from None


def _check_modern(method: str, meta: dict[str, Any]) -> Fault | None:
    """2026-07-28: a method of another era, then `_meta`, then the revision."""
    if method in METHODS and isinstance(gone := row_of(method, MODERN), Fault):
        return gone
    if (fault := headers.check_meta(meta)) is not None:
        return fault
    return None if meta[VERSION_KEY] == MODERN else unsupported(meta[VERSION_KEY])
