"""What a request's HTTP headers must say (pure): what it takes, what it sends, and that they repeat the body.

1. Names are case-insensitive, values are not; outer white space is stripped.
2. A routing header that stands twice is refused: two readers would route by two values.
3. A wrong header is answered before anything is looked up.

Source: MCP 2026-07-28, Transports (standard request headers; value encoding); RFC 9110 12.5.1 (Accept).
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from gateways import jsonrpc
from gateways.mcp.revisions import (
    CAPABILITIES_KEY,
    HEADER_MISMATCH,
    MODERN,
    VERSION_KEY,
    Fault,
    Row,
    unsupported,
)

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
SESSION: Final = "mcp-session-id"
PARAM: Final = "mcp-param-"
"""Begins the header that repeats an argument whose schema says so."""
MIRRORED: Final = "x-mcp-header"
"""The member of an argument's schema that names its header."""
_ROUTING: Final = (VERSION, METHOD, NAME)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WHOLE: Final = re.compile(r"(-?[0-9]{1,20})(?:\.0+)?")
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)


class Headers:
    """A request's headers by lower-case name, with every value kept in order."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in raw:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1").strip(" \t")
            )

    def get(self, name: str) -> str | None:
        """The value, or the first of several; None where there is none."""
        values = self._values.get(name)
        return values[0] if values else None

    def joined(self, name: str) -> str:
        """All values as one comma-separated list (RFC 9110 5.3); empty where there is none."""
        return ", ".join(self._values.get(name, ()))

    def doubled(self, *names: str) -> str | None:
        """The first of these names that stands more than once."""
        return next((name for name in names if len(self._values.get(name, ())) > 1), None)


class Accept(msgspec.Struct, frozen=True):
    """What the client takes. `stream_named`: it wrote text/event-stream and not just a wildcard."""

    json: bool
    stream: bool
    stream_named: bool


@lru_cache(maxsize=256)  # a client sends the same each time
def read_accept(value: str) -> Accept:
    """Tolerant: no header takes all, case and order don't matter, q=0 excludes, one type is enough."""
    if not value.strip():
        return Accept(True, True, False)
    weights: dict[str, bool] = {}
    for part in value.lower().split(","):
        media, *params = (each.strip() for each in part.split(";"))
        weights[media] = not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", param) for param in params)
    anything = weights.get("*/*", False)
    json = weights.get("application/json", weights.get("application/*", anything))
    stream = weights.get("text/event-stream", weights.get("text/*", anything))
    return Accept(json, stream, weights.get("text/event-stream", False))


def decode(value: str) -> str | None:
    """A header's value, with `=?base64?…?=` undone. None where the base64 is not canonical or not UTF-8."""
    found = _ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        data = base64.b64decode(found[1], validate=True)
        text = data.decode()
    except (binascii.Error, ValueError):
        return None
    return text if base64.b64encode(data).decode() == found[1] else None


def doubled_header(headers: Headers) -> Fault | None:
    """Rung 1 of 2026-07-28."""
    if (name := headers.doubled(*_ROUTING)) is not None:
        return Fault(HEADER_MISMATCH, f"the header {name} stands more than once")
    return None


def check_meta(meta: Any) -> Fault | None:
    """Rung 2: the members of `_meta` that each request carries."""
    if not isinstance(meta, dict):
        return Fault(
            jsonrpc.INVALID_PARAMS,
            f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}",
        )
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        return Fault(jsonrpc.INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    if not isinstance(meta[VERSION_KEY], str) or not isinstance(meta[CAPABILITIES_KEY], dict):
        return Fault(jsonrpc.INVALID_PARAMS, f"{VERSION_KEY} must be a string, {CAPABILITIES_KEY} an object")
    return None


def check_agreement(
    headers: Headers, meta: dict[str, Any], method: str, row: Row | None, params: dict[str, msgspec.Raw]
) -> Fault | None:
    """Rung 3: headers repeat the body; rung 4: the revision is one of ours."""
    if headers.get(VERSION) != meta[VERSION_KEY]:
        return _mismatch("MCP-Protocol-Version", f"_meta {VERSION_KEY}")
    if headers.get(METHOD) != method:
        return _mismatch("Mcp-Method", "method")
    if row is not None and row.named_by is not None:
        name, header = _text(params.get(row.named_by)), headers.get(NAME)
        if isinstance(name, str) and (header is None or decode(header) != name):
            return _mismatch("Mcp-Name", f"params.{row.named_by}")
    if meta[VERSION_KEY] != MODERN:
        return unsupported(meta[VERSION_KEY])
    return None


class Mirror(msgspec.Struct, frozen=True):
    """An argument that a header repeats: the header's name, and where the argument stands."""

    header: str
    path: tuple[str, ...]
    type: str


def mirrors(schema: Mapping[str, Any]) -> tuple[Mirror, ...]:
    """The arguments of an input schema that headers repeat.

    Raises ValueError for an annotation that clients must refuse a tool for: a name that is no token or stands
    twice, or an argument that is no string, integer or boolean.
    """
    found = tuple(_mirrors(schema, ()))
    names = [each.header for each in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two arguments share a header: {sorted(names)}")
    return found


def _mirrors(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Mirror]:
    """Along `properties` alone: an annotation behind anything else can't be read off a request."""
    for name, member in schema.get("properties", {}).items():
        here = (*path, name)
        if MIRRORED in member:
            header, kind = member[MIRRORED], member.get("type")
            if not _TOKEN.fullmatch(header) or kind not in ("string", "integer", "boolean"):
                raise ValueError(f"{'.'.join(here)}: {MIRRORED} {header!r} can't be on a {kind}")
            yield Mirror(PARAM + header.lower(), here, kind)
        yield from _mirrors(member, here)


def check_mirrors(headers: Headers, wanted: Iterable[Mirror], arguments: Any) -> Fault | None:
    """Rung 5: each of these arguments and its header are both there and agree, or are both absent.

    A header without its argument is refused too: somebody on the way may have routed by it.
    """
    for mirror in wanted:
        value = arguments
        for step in mirror.path:
            value = value.get(step) if isinstance(value, dict) else None
        header = headers.get(mirror.header)
        if headers.doubled(mirror.header) or not _mirrors_value(mirror, value, header):
            return _mismatch(mirror.header, f"argument {'.'.join(mirror.path)}")
    return None


def _mirrors_value(mirror: Mirror, value: Any, header: str | None) -> bool:
    if value is None or isinstance(value, dict | list):  # what can't be written in a header is not in one
        return header is None
    text = None if header is None else decode(header)
    if text is None:
        return False
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        whole = _WHOLE.fullmatch(text)
        return (
            whole is not None and int(whole[1]) == value if mirror.type == "integer" else text == str(value)
        )
    return bool(text == value)


def _mismatch(header: str, member: str) -> Fault:
    return Fault(HEADER_MISMATCH, f"the header {header} must repeat the body's {member}")


def _text(raw: msgspec.Raw | None) -> Any:
    try:
        return None if raw is None else msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
