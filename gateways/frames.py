"""From the bytes of a WebSocket connection to whole messages (RFC 6455, 5 and 8.1; wire.md, WebSocket).

1. A whole text frame, which is nearly all that a dealer sends, is read here: half a dozen tests and one unmasking.
2. Everything else (control frames, fragments, binary, what is too large, what breaks the rules) goes to websockets'
   sans-I/O core, frame by frame, so that it alone judges it. It stands at a frame's beginning whenever it is asked.
3. Fragments are put together here; their number is bounded, as the core bounds their bytes.
"""

from collections.abc import Callable
from typing import Final

from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.speedups import apply_mask

from gateways import render
from gateways.session import Frame

FRAGMENTS: Final = 4_096
"""Fragments of one message: 64 KiB in pieces of 16 bytes; empty ones would otherwise be endless."""
_TEXT: Final = 0x81
"""FIN and the opcode of text, nothing reserved."""
_MASKED: Final = 0x80
_DATA: Final = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})
_LAST: Final = b"\x80\x80\x00\x00\x00\x00"
"""A last fragment without a payload, from a client."""


class Messages:
    """What one connection's peer has sent, as messages. `most`: bytes of a message, as the codec was told."""

    def __init__(self, protocol: ServerProtocol, most: int) -> None:
        self.judged = False
        """Whether the codec was asked since this was last set back: it may have something to send, or have failed."""
        self._protocol = protocol
        self._most = self._small = most
        self._room: Callable[[], bool] = lambda: True
        self._rest = b""
        """The beginning of a frame whose end has not come; shorter than `most` and a head."""
        self._message: bytearray | None = None
        self._fragments = 0
        self._binary = False

    def widen(self, most: int, room: Callable[[], bool]) -> None:
        """From now on a message may have so many bytes, if `room` says that there is a place for what is large."""
        self._most = self._protocol.max_message_size = most
        self._room = room

    @property
    def coming(self) -> bool:
        """Whether a message has begun, and not ended, that needs its place among what is large."""
        body, end = _extent(self._rest, 0)
        return end - body > self._small or len(self._message or b"") > self._small

    def read(self, data: bytes) -> list[Frame]:
        """The messages that are complete with these bytes; None stands for a binary one.

        A violation fails the connection in the codec, which then owes a close; what came before it is returned.
        """
        if self._rest:
            data = self._rest + data
        found: list[Frame] = []
        start, size = 0, len(data)
        protocol, most, small = self._protocol, self._most, self._small
        while start < size and protocol.state is State.OPEN:
            body, end = _extent(data, start)
            fits = end - body <= most
            if end - body > small and fits and not self._room():
                self._fail("overloaded")
                break
            if body == 0 or (end > size and fits):
                break
            plain = data[start] == _TEXT and data[start + 1] & _MASKED
            if not plain or not fits or self._message is not None:
                self._judge(data[start:end], found)
            else:
                text = apply_mask(data[body:end], data[body - 4 : body])
                if not _is_utf8(text):
                    self._fail("not_utf8")
                    break
                found.append(text)
            start = end
        if protocol.state is State.OPEN:
            self._rest = data[start:]
        else:
            self.judged = True
            self._rest = b""
            protocol.receive_data(
                data[start:]
            )  # after a close the codec drops what comes, but for the peer's close
            protocol.events_received()
        return found

    def _judge(self, data: bytes, found: list[Frame]) -> None:
        """Have the codec read a frame, or the beginning of one that is too large."""
        self.judged = True
        if self._message is not None and data[0] & 0x0F == Opcode.CLOSE:
            # A close may come amid fragments (RFC 6455, 5.4); the codec takes it between messages alone.
            self._message = None
            self._protocol.receive_data(_LAST)
            self._protocol.events_received()
        self._protocol.receive_data(data)
        for frame in self._protocol.events_received():
            if not isinstance(frame, WireFrame) or frame.opcode not in _DATA:
                continue
            whole = self._collect(frame)
            if whole is None:
                continue
            if self._binary:
                found.append(None)
            elif _is_utf8(whole):
                found.append(whole)
            else:
                self._fail("not_utf8")

    def _collect(self, frame: WireFrame) -> bytes | None:
        """Add a fragment; the message once it is whole. The codec counts the bytes and checks the order."""
        if frame.opcode is not Opcode.CONT:
            self._message, self._fragments = bytearray(), 0
            self._binary = frame.opcode is Opcode.BINARY
        assert self._message is not None  # the codec refuses a continuation of nothing
        self._message += frame.data
        self._fragments += 1
        if self._fragments > FRAGMENTS:
            self._fail("too_large")
            return None
        if len(self._message) > self._small and not self._room():
            self._fail("overloaded")
            return None
        if not frame.fin:
            return None
        whole, self._message = bytes(self._message), None
        return whole

    def _fail(self, why: str) -> None:
        close = render.CLOSE[why]
        self.judged = True
        self._protocol.fail(close.code, close.reason)


def _extent(data: bytes, start: int) -> tuple[int, int]:
    """Where the payload of the frame at `start` begins and ends; (0, 0) while the head is not there whole."""
    left = len(data) - start
    if left < 2:
        return 0, 0
    size, body = data[start + 1] & 0x7F, start + 2
    if size == 126:
        if left < 4:
            return 0, 0
        size, body = int.from_bytes(data[start + 2 : start + 4], "big"), start + 4
    elif size == 127:
        if left < 10:
            return 0, 0
        size, body = int.from_bytes(data[start + 2 : start + 10], "big"), start + 10
    if data[start + 1] & _MASKED:
        body += 4
    return body, body + size


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
