"""One WebSocket connection to the wire, from the first byte to the last: requests, answers, notifications.

1. One writer: whoever has something to say puts it into the protocol and wakes the writer; all that waits
   goes out in one send.
2. A connection is never mended. What goes wrong ends it, and every waiting request with it (Disconnected).
3. Notifications are handed over in the order of their arrival, by a plain call: the next is not read before
   the last is dealt with.

Built on the sans-I/O core of the websockets library over a Trio stream (RFC 6455).
"""

import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import msgspec
import trio
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidState, InvalidURI
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State
from websockets.uri import parse_uri

from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc
from gateways.client.errors import Disconnected, Refused, WireFault, collapse
from gateways.client.reasons import reason_of

CONNECT_S: Final = 10.0
"""Seconds for TCP, TLS and the upgrade together."""
SEND_S: Final = 10.0
"""Seconds that the other end may take no bytes before the connection counts as dead."""
SILENCE_S: Final = 12.0
"""Seconds without a byte before we ask with a ping of ours."""
PONG_S: Final = 10.0
"""Seconds that the answer to our ping may take."""
GOODBYE_S: Final = 1.0
"""Seconds for the closing handshake: the server closes TCP first."""
MAX_FRAME: Final = 4 * 1024 * 1024
"""The largest message taken from the wire, bytes: a full page of read_conv stays well below."""
_HINT: Final = re.compile(r"retry_(?:in|after)_ms\D{0,4}(\d{1,7})")
"""The hint in the reason of a close: {"retry_in_ms":…}."""

_COMMON: Final = ("code", "status", "message", "retryable")

codec_log = logging.getLogger(f"{__name__}.codec")
codec_log.setLevel(logging.WARNING)  # the codec writes frames at DEBUG, and tokens stand in them

Notify = Callable[[str, bytes], None]
"""Called with each notification's method and params (JSON text); what it raises ends the connection."""


class _Slot:
    """Where a request waits for its answer."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.answer: bytes | Exception | None = None

    def put(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.done.set()


class Socket:
    """An open connection; made by `open_socket`."""

    def __init__(self, stream: trio.abc.Stream, protocol: ClientProtocol, notify: Notify) -> None:
        self._stream = stream
        self._protocol = protocol
        self._notify = notify
        self._slots: dict[int, _Slot] = {}
        self._last_id = 0
        self._wake = trio.Event()
        self._upgraded = trio.Event()
        self._message: list[bytes] = []
        self._heard = 0
        self._dead: Disconnected | None = None
        self._lost: Disconnected | None = None

    async def request(self, method: str, params: bytes, timeout_s: float) -> bytes:
        """Ask and wait for the result's JSON text; `params` is an object's JSON text.

        Raises Refused, or Disconnected when the connection breaks or no answer comes in `timeout_s` seconds:
        the outcome is then unknown. So it is after cancelling.
        """
        if self._lost is not None:
            raise Disconnected(str(self._lost), self._lost.retry_after_s)
        self._last_id += 1
        id, slot = self._last_id, _Slot()
        self._slots[id] = slot
        try:
            self._send(jsonrpc.request(id, method, params))
            with trio.move_on_after(timeout_s):
                await slot.done.wait()
        finally:
            del self._slots[id]
        if slot.answer is None:
            raise Disconnected(f"no answer to {method} in {timeout_s:g} s")
        if isinstance(slot.answer, Exception):
            raise slot.answer
        return slot.answer

    def _send(self, message: bytes) -> None:
        try:
            self._protocol.send_text(message)
        except InvalidState:
            raise Disconnected("the connection is closing") from None
        self._wake.set()

    async def upgrade(self) -> None:
        """The opening handshake; `read` and `write` must be running. Raises Disconnected."""
        self._protocol.send_request(self._protocol.connect())
        self._wake.set()
        await self._upgraded.wait()

    async def write(self) -> None:
        """Send what waits, for ever. A send that hangs or fails closes the stream: `read` then tells why."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            pieces = self._protocol.data_to_send()
            try:
                with trio.fail_after(SEND_S):
                    if data := b"".join(pieces):
                        await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                await trio.aclose_forcefully(self._stream)
                return

    async def watch(self) -> None:
        """Ask with a ping after a silence; no sign of life after that closes the stream.

        It wakes on its own time instead of bounding each read: a read of TLS is better not cut short.
        """
        while True:
            heard = self._heard
            await trio.sleep(SILENCE_S)
            if self._heard != heard or self._protocol.state is not State.OPEN:
                continue
            self._protocol.send_ping(b"")
            self._wake.set()
            await trio.sleep(PONG_S)
            if self._heard == heard:
                self._dead = Disconnected(f"no sign of life in {SILENCE_S + PONG_S:g} s")
                await trio.aclose_forcefully(self._stream)
                return

    async def read(self) -> None:
        """Read until the connection is over. Always ends by raising Disconnected, or the fault it met."""
        try:
            while data := await self._stream.receive_some():
                self._heard += 1
                self._protocol.receive_data(data)
                self._handle(self._protocol.events_received())
                self._wake.set()
            self._protocol.receive_eof()
            lost = self._why_closed()
        except Disconnected as why:
            lost = why
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            lost = self._why_closed()
        self._lose(lost)
        raise lost

    def _handle(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Response):
                if self._protocol.state is not State.OPEN:
                    raise Disconnected(f"no WebSocket there: HTTP {event.status_code}", _retry_after(event))
                self._upgraded.set()
            elif not isinstance(event, Frame):
                continue
            elif event.opcode in (Opcode.TEXT, Opcode.CONT):
                self._message.append(bytes(event.data))
                if event.fin:
                    message, self._message = b"".join(self._message), []
                    self._take(message)
            elif event.opcode is Opcode.BINARY:
                raise WireFault("the wire sent a binary frame")
            elif event.opcode is Opcode.CLOSE:
                raise self._why_closed()

    def _take(self, message: bytes) -> None:
        match jsonrpc.read(message):
            case jsonrpc.Request(has_id=False) as note:
                self._notify(note.method, note.params)
            case jsonrpc.Response(id=int() as id) as response:
                if (slot := self._slots.get(id)) is not None:
                    slot.put(read_answer(response))
            case jsonrpc.Response(id=None) as response:
                raise WireFault(f"the wire could not read a frame of ours: {response.error!r}")
            case other:
                raise WireFault(
                    f"the wire sent what is no answer and no notification: {type(other).__name__}"
                )

    def _why_closed(self) -> Disconnected:
        if self._dead is not None:
            return self._dead
        if (close := self._protocol.close_rcvd) is not None:
            hint = _HINT.search(close.reason)
            words = f"{int(close.code)} {close.reason}".rstrip()
            hint_s = int(hint[1]) / 1000 if hint else None
            words = f"the wire closed the connection: {words}"
            return Disconnected(words, hint_s, close_code=int(close.code))
        if self._protocol.handshake_exc is not None:
            return Disconnected(f"no WebSocket there: {self._protocol.handshake_exc!s}")
        return Disconnected("the connection broke")

    def _lose(self, lost: Disconnected) -> None:
        self._lost = lost
        for slot in self._slots.values():
            slot.put(Disconnected(str(lost), lost.retry_after_s))

    async def close(self) -> None:
        """The closing handshake (RFC 6455, 7), if there is room for it; nothing more is handed over.

        Bounded to GOODBYE_S, also when cancelled. `read` and `write` must have ended.
        """
        with (
            trio.move_on_after(GOODBYE_S, shield=True),
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(1000)
            await self._stream.send_all(b"".join(self._protocol.data_to_send()))
            while self._dead is None and await self._stream.receive_some():
                pass
        await trio.aclose_forcefully(self._stream)


@asynccontextmanager
async def open_socket(
    url: str, notify: Notify, *, ssl_context: ssl.SSLContext | None = None
) -> AsyncIterator[Socket]:
    """Connect, upgrade, and keep reading and writing while the block runs. Raises Disconnected.

    When the connection ends, the block is cancelled and Disconnected (or the fault of `notify`) is raised.
    """
    socket = Socket(await _open_stream(url, ssl_context), _protocol(url), notify)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(socket.write)
            nursery.start_soon(socket.read)
            nursery.start_soon(socket.watch)
            try:
                with trio.fail_after(CONNECT_S):
                    await socket.upgrade()
            except trio.TooSlowError:
                raise Disconnected(f"no answer to the upgrade in {CONNECT_S:g} s") from None
            yield socket
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise collapse(group) from None
    finally:
        await socket.close()


def _protocol(url: str) -> ClientProtocol:
    try:
        return ClientProtocol(parse_uri(url), max_size=MAX_FRAME, logger=codec_log)
    except InvalidURI as fault:
        raise Disconnected(str(fault)) from None


async def _open_stream(url: str, ssl_context: ssl.SSLContext | None) -> trio.abc.Stream:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)
    try:
        with trio.fail_after(CONNECT_S):
            plain = await trio.open_tcp_stream(host, port)
            if parts.scheme != "wss":
                return plain
            context = ssl_context or ssl.create_default_context()
            secure = trio.SSLStream(plain, context, server_hostname=host, https_compatible=True)
            try:
                await secure.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(plain)
                raise
            return secure
    except (OSError, trio.BrokenResourceError, trio.TooSlowError) as fault:
        raise Disconnected(f"cannot connect to {host}:{port}: {_why(fault)}") from None


def _why(fault: Exception) -> str:
    return f"no answer in {CONNECT_S:g} s" if isinstance(fault, trio.TooSlowError) else reason_of(fault)


def _retry_after(response: Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def read_answer(response: jsonrpc.Response) -> bytes | Exception:
    """The result's text, or what to raise: a refusal, a malformed frame of ours, an unexpected fault there.

    -32603 tells nothing about the outcome, so it counts as no answer at all.
    """
    if response.result is not None:
        return response.result
    try:
        error = msgspec.json.decode(response.error or b"null", type=_Error)
    except (msgspec.MsgspecError, RecursionError):
        return WireFault("the wire sent an error that is none")
    body = error.data.get("refusal", error.data) if isinstance(error.data, dict) else {}
    if (refusal := read_refusal(body)) is not None:
        return Refused(refusal)
    if error.code == jsonrpc.INTERNAL_ERROR:
        return Disconnected(f"the wire met a fault of its own: {error.message}")
    return Refused(refuse("bad_request", error.message))


class _Error(msgspec.Struct):
    code: int
    message: str
    data: msgspec.Raw | dict[str, object] | None = None


def read_refusal(body: object) -> Refusal | None:
    """The refusal behind the object that every gateway shows (wire.md, Refusals); None for anything else."""
    if not isinstance(body, dict) or not isinstance(code := body.get("code"), str):
        return None
    detail = {name: value for name, value in body.items() if name not in _COMMON}
    return Refusal(code, str(body.get("message", "")), detail)
