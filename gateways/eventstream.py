"""text/event-stream, both ends: an encoder that can't be injected into, and a strict incremental decoder.

1. A field never carries a line end or NUL: for `event` and `id`, which are ours, that is a fault.
2. `data` is JSON text. The line ends that only some readers know (U+0085, U+2028, U+2029) can stand inside
   its strings alone and are written as escapes, so that every reader sees one event.
3. The decoder takes any cut of the bytes and bounds what it keeps.

Source: WHATWG HTML, Server-sent events (9.2.5 parsing, 9.2.6 interpreting).
"""

import re
from typing import Final

import msgspec

_BREAKS: Final = re.compile(rb"\r\n|\r|\n")
_ODD_BREAKS: Final = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")
_ESCAPES: Final = {b"\xc2\x85": rb"\u0085", b"\xe2\x80\xa8": rb"\u2028", b"\xe2\x80\xa9": rb"\u2029"}
_BARRED: Final = re.compile(r"[\r\n\0]")
_BOM: Final = b"\xef\xbb\xbf"


def encode(
    data: bytes | None = None, *, event: str | None = None, id: str | None = None, retry_ms: int | None = None
) -> bytes:
    """One event's bytes. Raises ValueError when `event` or `id` holds CR, LF or NUL.

    Without `data` no reader fires an event, yet `id` and `retry` count.
    """
    lines: list[bytes] = []
    if event is not None:
        lines.append(b"event: " + _field(event))
    if id is not None:
        lines.append(b"id: " + _field(id))
    if retry_ms is not None:
        lines.append(b"retry: %d" % retry_ms)
    if data is not None:
        lines += _data_lines(data)
    return b"\n".join([*lines, b"", b""])


def comment(text: str = "") -> bytes:
    """A line that readers skip: a sign of life for proxies and for the far end."""
    lines = _BREAKS.split(text.replace("\0", "").encode())
    return b"".join(b": " + line + b"\n" for line in lines) + b"\n"


def _field(text: str) -> bytes:
    if _BARRED.search(text):
        raise ValueError("a field of an event can't hold a line end or NUL")
    return text.encode()


def _data_lines(data: bytes) -> list[bytes]:
    if not data.isascii():
        data = _ODD_BREAKS.sub(lambda found: _ESCAPES[found[0]], data)
    if b"\n" not in data and b"\r" not in data:
        return [b"data: " + data]
    return [b"data: " + line for line in _BREAKS.split(data)]


class Event(msgspec.Struct, frozen=True):
    """One event as a reader sees it. `id` is the last one given so far, also by an earlier event."""

    event: str
    data: str
    id: str


class Oversize(ValueError):
    """An event grew beyond the decoder's bound."""


class Decoder:
    """Bytes in, events out. Raises UnicodeDecodeError or Oversize, and is then of no further use."""

    def __init__(self, max_bytes: int = 4 * 1024 * 1024) -> None:
        self.retry_ms: int | None = None
        """The wait before reconnecting that the server last asked for, milliseconds."""
        self.last_id = ""
        self._max = max_bytes
        self._rest = bytearray()
        self._searched = 0
        self._started = False
        self._after_cr = False
        self._size = 0
        self._event = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete. What stands unfinished at the stream's end is never given."""
        self._rest += chunk
        if not self._started and not self._skip_bom():
            return []
        events = [event for line in self._lines() if (event := self._line(line)) is not None]
        if self._size + len(self._rest) > self._max:
            raise Oversize(f"an event beyond {self._max} bytes")
        return events

    def _skip_bom(self) -> bool:
        """Whether the first bytes are known not to be a part of a byte-order mark."""
        if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
            return False
        if self._rest.startswith(_BOM):
            del self._rest[: len(_BOM)]
        self._started = True
        return True

    def _lines(self) -> list[bytes]:
        """Whole lines so far. A CR ends its line at once; an LF after it belongs to it."""
        if self._after_cr and self._rest:
            if self._rest[0] == 0x0A:
                del self._rest[0]
            self._after_cr = False
        lines: list[bytes] = []
        start = 0
        for found in _BREAKS.finditer(self._rest, self._searched):
            lines.append(bytes(self._rest[start : found.start()]))
            start = found.end()
        self._after_cr = start > 0 and start == len(self._rest) and self._rest[-1] == 0x0D
        del self._rest[:start]
        self._searched = len(self._rest)
        return lines

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            return None
        self._size += len(line)
        if self._size > self._max:
            raise Oversize(f"an event beyond {self._max} bytes")
        name, _, value = line.decode().partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
        return None

    def _dispatch(self) -> Event | None:
        self.last_id = self._id
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        if not data:
            return None
        return Event(event or "message", "\n".join(data), self.last_id)
