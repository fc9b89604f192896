"""JSON-RPC 2.0 between bytes and messages, strictly, for WebSocket, MCP and the dealer's client.

1. `read` gives a Request, a Response or a Malformed: nothing is repaired and nothing else is raised.
2. Presence of `id` decides between request and notification; an id is a string or an integer.
3. `params` and `result` stay JSON text: what they may hold is judged by those who know their schema.

A batch is refused (JSON-RPC batches hide what a limit counts). Source: jsonrpc.org/specification; wire.md,
Canonical form and Refusals (a malformed frame is -32700 or -32600, never a refusal).
"""

import json
from typing import Any, Final

import msgspec

from broker.wire import canonical
from broker.wire.ids import MAX_SAFE
from broker.wire.refusals import Refusal

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REFUSED: Final = -32000
"""A refusal of the broker; the error's `data` is the refusal itself."""

Id = str | int
_KNOWN: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})


class Request(msgspec.Struct, frozen=True):
    """A request, or a notification when `has_id` is False. `params` is the JSON text of an object."""

    id: Id | None
    has_id: bool
    method: str
    params: bytes


class Response(msgspec.Struct, frozen=True):
    """An answer: exactly one of `result` and `error` is JSON text. `id` is None where it was null."""

    id: Id | None
    result: bytes | None
    error: bytes | None


class Malformed(msgspec.Struct, frozen=True):
    """Not a JSON-RPC message: the error's code and words, and the id where it could be read."""

    code: int
    message: str
    id: Id | None = None

    def reply(self) -> bytes:
        """The error response that answers it."""
        return error(self.id, self.code, self.message)


def read(data: bytes) -> Request | Response | Malformed:
    """One message. Grammar faults anywhere, bytes that are not UTF-8 and a byte-order mark are -32700."""
    if (request := _quick(data)) is not None:
        return request
    members = canonical.members(data)
    if isinstance(members, Refusal):
        return _diagnose(data, members)
    if len(members) > 3 and members.keys() - _KNOWN and (fault := _stray(members)) is not None:
        return Malformed(INVALID_REQUEST, fault.message, _read_id(members["id"]) if "id" in members else None)
    has_id = "id" in members
    id = _read_id(members["id"]) if has_id else None
    if (version := members.get("jsonrpc")) is None or _value(version) != "2.0":
        return Malformed(INVALID_REQUEST, 'jsonrpc must be "2.0"', id)
    if "method" not in members:
        return _response(members, id)
    if "result" in members or "error" in members:
        return Malformed(INVALID_REQUEST, "a message is a request or a response, not both", id)
    if has_id and id is None:
        return Malformed(INVALID_REQUEST, "id must be a string or an integer within ±(2^53-1)")
    method = _value(members["method"])
    if type(method) is not str:
        return Malformed(INVALID_REQUEST, "method must be a string", id)
    params = bytes(members["params"]) if "params" in members else b"{}"
    if not params.startswith(b"{"):
        return Malformed(INVALID_REQUEST, "params must be an object", id)
    return Request(id, has_id, method, params)


class _Frame(msgspec.Struct, gc=False):
    """A request with nothing left out and nothing beside it."""

    jsonrpc: str
    id: int | str
    method: str
    params: msgspec.Raw


_frame: Final = msgspec.json.Decoder(_Frame).decode
_SHELL: Final = len(b'{"jsonrpc":"2.0","id":,"method":"","params":}')


def _quick(data: bytes) -> Request | None:
    """A request with exactly its four members, or None where the slow way has to judge.

    One with nothing between the members, no escapes and no other form of a number has exactly the length that its
    parts have together; a member given twice has not.
    """
    try:
        frame = _frame(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    id, params = frame.id, bytes(frame.params)
    size = len(id) + 2 if isinstance(id, str) else len(str(id))
    whole = _SHELL + size + len(frame.method) + len(params) == len(data) and data.isascii()
    if not whole or frame.jsonrpc != "2.0" or params[:1] != b"{":
        return None
    if isinstance(id, int) and not -MAX_SAFE <= id <= MAX_SAFE:
        return None
    return Request(id, True, frame.method, params)


def result(id: Id | None, value: Any) -> bytes:
    """A response with a result; `value` is JSON text (bytes) or anything that msgspec encodes."""
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (_encode(id), _text(value))


def error(id: Id | None, code: int, message: str, data: Any = None) -> bytes:
    """A response with an error; `data` as in `result`, left out when None."""
    tail = b"" if data is None else b',"data":%s' % _text(data)
    head = b'{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s' % (_encode(id), code, _encode(message))
    return head + tail + b"}}"


def notification(method: str, params: Any) -> bytes:
    """A message that asks for no answer; `params` is an object's JSON text, or a value to encode."""
    return b'{"jsonrpc":"2.0","method":%s,"params":%s}' % (_encode(method), _text(params))


def request(id: Id, method: str, params: Any) -> bytes:
    """A request, as the dealer's client writes it; `params` as in `notification`."""
    return b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}' % (
        _encode(id),
        _encode(method),
        _text(params),
    )


_encode = msgspec.json.Encoder().encode


def _text(value: Any) -> bytes:
    return value if type(value) is bytes else _encode(value)


def _value(raw: msgspec.Raw) -> Any:
    """The value behind one frame member; None for what no member of the frame may be."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _stray(members: dict[str, msgspec.Raw]) -> Refusal | None:
    """What is forbidden inside a member that nobody asked for; such members are passed over, but not unseen."""
    strays = (canonical.scan(bytes(members[name]), at=name) for name in members.keys() - _KNOWN)
    return next((fault for fault in strays if fault is not None), None)


def _read_id(raw: msgspec.Raw) -> Id | None:
    value = _value(raw)
    if type(value) is str or (type(value) is int and -MAX_SAFE <= value <= MAX_SAFE):
        return value
    return None


def _response(members: dict[str, msgspec.Raw], id: Id | None) -> Response | Malformed:
    outcome, failure = members.get("result"), members.get("error")
    if (outcome is None) == (failure is None):
        return Malformed(INVALID_REQUEST, "method is missing", id)
    if "id" not in members or (id is None and (failure is None or bytes(members["id"]) != b"null")):
        return Malformed(INVALID_REQUEST, "id must be a string or an integer within ±(2^53-1)")
    return Response(
        id, None if outcome is None else bytes(outcome), None if failure is None else bytes(failure)
    )


def _diagnose(data: bytes, refusal: Refusal) -> Malformed:
    """Why the frame was refused, and its id; off the fast path. A fault of grammar has no path."""
    if "path" not in refusal.detail:
        return Malformed(PARSE_ERROR, refusal.message)
    if data.lstrip(b" \t\r\n")[:1] == b"[":
        return Malformed(INVALID_REQUEST, "batches are not taken: send one message a frame")
    return Malformed(INVALID_REQUEST, refusal.message, _salvage_id(data))


class _Pairs(list[tuple[str, Any]]):
    """An object's members with duplicates kept."""


def _salvage_id(data: bytes) -> Id | None:
    """The id of a frame whose other members are at fault, if it stands there once and is one."""
    try:
        top = json.loads(data.decode(), object_pairs_hook=_Pairs)
        ids = [value for name, value in top if name == "id"] if isinstance(top, _Pairs) else []
        return _read_id(msgspec.Raw(_encode(ids[0]))) if len(ids) == 1 else None
    except (ValueError, TypeError, RecursionError):
        return None
