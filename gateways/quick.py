"""Requests of tools that start without waiting, read in one pass, arguments and all.

What is taken here is what the strict way (jsonrpc.read, then the tool) takes: `registry.Quick` says why a text of
exactly the length of its parts holds nothing else. Whatever else a frame is, it is read the strict way.
"""

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from broker.app import Broker, Tool
from broker.wire.ids import MAX_SAFE

_SHELL: Final = len(b'{"jsonrpc":"2.0","id":,"method":"","params":}')


class Started(msgspec.Struct):
    """A request whose arguments are known; its frame is kept for the case that the tool has to be run."""

    id: int | str
    tool: Tool
    arguments: Any
    frame: bytes


class QuickReader:
    """Reads the frames of one broker's tools."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._kinds = [_Kind(tool) for tool in tools.values() if tool.quick is not None]

    def read(self, frame: bytes) -> Started | None:
        """The request, or None: the strict way has to judge."""
        for kind in self._kinds:
            if kind.mark in frame:
                return kind.read(frame)
        return None


_readers: Final[WeakKeyDictionary[Broker, QuickReader]] = WeakKeyDictionary()


def quick_reader(broker: Broker) -> QuickReader:
    """The one of a broker, shared by all its connections."""
    reader = _readers.get(broker)
    if reader is None:
        reader = _readers[broker] = QuickReader(broker.tools)
    return reader


class _Kind:
    """One tool's requests."""

    def __init__(self, tool: Tool) -> None:
        assert tool.quick is not None
        fields = [("jsonrpc", str), ("id", int | str), ("method", str), ("params", tool.quick.type)]
        self.mark = b'"method":"%b"' % tool.name.encode()
        self._tool = tool
        self._size = tool.quick.size
        self._shell = _SHELL + len(tool.name)
        kind: Any = msgspec.defstruct("Frame", fields, gc=False)
        self._decode = msgspec.json.Decoder(kind).decode

    def read(self, frame: bytes) -> Started | None:
        try:
            found = self._decode(frame)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        id, arguments = found.id, found.params
        size = len(id) + 2 if isinstance(id, str) else len(str(id))
        if self._shell + size + self._size(arguments) != len(frame) or not frame.isascii():
            return None
        if found.method != self._tool.name or found.jsonrpc != "2.0":
            return None
        if isinstance(id, int) and not -MAX_SAFE <= id <= MAX_SAFE:
            return None
        return Started(id, self._tool, arguments, frame)
