"""RFC 8785 bytes out, strict JSON in (wire.md, Canonical form).

1. What is verified, stored and handed on is the canonical form; a sender may write the JSON any way it likes.
2. Not JSON at all is bad_request, without a path. JSON that is forbidden is `code` (bad_envelope, bad_statement,
   bad_request, as the caller says) with the path. Nothing is repaired.
3. The fast path takes a text only where it is proven that RFC 8785 prints the same; all else goes the slow way.
"""

import re
from collections.abc import Mapping
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import Any, Final

import msgspec

from broker.wire.grammar import MAX_DEPTH, Fault, bad_number, examine, join, split, too_deep
from broker.wire.ids import MAX_SAFE
from broker.wire.refusals import Refusal, refuse

_WHITE: Final = b" \t\n\r"
_DIGITS: Final = bytes.maketrans(b"123456789,[-", b"000000000:::")
_LONG: Final = b":" + b"0" * 16
_LONG_NUMBER: Final = re.compile(rb"(?:^|[:,\[])-?([0-9]{16,})")
_ASTRAL: Final = re.compile(rb"[\xf0-\xf4]")
_BMP_TOP: Final = re.compile(rb"[\xee\xef]")


class _Forbidden(Exception):
    """Raised inside a reader's hooks: not for the fast path, or not allowed at all."""


def number(value: float) -> str:
    """A finite double as ECMAScript prints it (RFC 8785, 3.2.2.3). Raises ValueError for NaN and infinities."""
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("JSON has no NaN and no infinities")
    if value == 0:
        return "0"
    text = repr(value)
    if "e" not in text and not text.endswith(".0") and (value >= 1e-4 or value <= -1e-4):
        return text
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.digits × 10^point, in ECMAScript's terms: k digits, n = point.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    # Digits on both sides of the point never come here: Python prints those as ECMAScript does.
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def encode(value: Any) -> bytes:
    """The RFC 8785 bytes of a value of dict, list, tuple, str, int, float, bool and None.

    Raises ValueError for what the wire's profile refuses: other types, names that are not strings, numbers beyond
    ±(2^53−1), NaN, lone surrogates, nesting deeper than 32.
    """
    out: list[str] = []
    _write(value, out.append, MAX_DEPTH)
    return "".join(out).encode()


def _write(value: Any, put: Any, depth: int) -> None:
    kind = type(value)
    if kind is str:
        put(encode_basestring(value))
    elif value is None or kind is bool:
        put("null" if value is None else "true" if value else "false")
    elif kind is int or kind is float:
        if not -MAX_SAFE <= value <= MAX_SAFE:
            raise ValueError("a number beyond ±(2^53−1); write amounts as strings")
        put(str(value) if kind is int else number(value))
    elif depth == 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    elif kind is dict:
        lead = "{"
        for name in _ordered(value):
            put(lead + encode_basestring(name) + ":")
            _write(value[name], put, depth - 1)
            lead = ","
        put("}" if lead == "," else "{}")
    elif kind is list or kind is tuple:
        lead = "["
        for item in value:
            put(lead)
            _write(item, put, depth - 1)
            lead = ","
        put("]" if lead == "," else "[]")
    else:
        raise ValueError(f"{kind.__name__} has no form in JSON")


def _ordered(value: Mapping[Any, Any]) -> list[str]:
    """Names by their UTF-16 code units (RFC 8785, 3.2.3); for ASCII that is Python's own order."""
    for name in value:
        if type(name) is not str:
            raise ValueError("names are strings")
    try:
        return sorted(value, key=None if "".join(value).isascii() else _utf16)
    except UnicodeEncodeError as error:
        raise ValueError("a lone surrogate in a name") from error


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _plain_float(token: str) -> float:
    """A float that msgspec, Python and RFC 8785 all print as it stands; any other leaves the fast path."""
    value = float(token)
    if repr(value) != token or not 1e-4 <= abs(value) <= MAX_SAFE or value.is_integer():
        raise _Forbidden
    return value


_decode: Final = msgspec.json.Decoder(float_hook=_plain_float).decode
_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def quick(data: bytes, most: int = MAX_DEPTH) -> tuple[Any, bytes] | None:
    """Value and canonical bytes of a text, where the fast reader can prove both; None: it cannot tell.

    The proof. msgspec's sorted encoding of what it decoded differs from RFC 8785 only in floats (`_plain_float`
    takes only those that all print alike), in integers beyond ±(2^53−1) and in the order of names that mix astral
    characters with U+E000 to U+FFFF. Decoding and encoding again never makes a token longer: a member lost to a
    duplicate, an escape, or a −0 makes the text shorter. So as many bytes outside white space as before means
    the same tokens. (White space inside strings is counted on neither side, and none of it is ever escaped away.)
    """
    try:
        value = _decode(data)
    except (_Forbidden, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    text = _sorted(value)
    if text != data and len(text.translate(None, _WHITE)) != len(data.translate(None, _WHITE)):
        return None
    if _LONG in b":" + text.translate(_DIGITS) and _beyond(text):
        return None
    if text.count(b"{") + text.count(b"[") > most and too_deep(text, most):
        return None
    if not text.isascii() and _ASTRAL.search(text) and _BMP_TOP.search(text):
        return None
    return value, text


def _beyond(text: bytes) -> bool:
    """Whether a number beyond ±(2^53−1) may stand in a canonical text (digits in a string may look like one)."""
    return any(len(digits) > 16 or int(digits) > MAX_SAFE for digits in _LONG_NUMBER.findall(text))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Forbidden
    return value


def _int(token: str) -> int:
    if bad_number(token):
        raise _Forbidden
    return int(token)


def _float(token: str) -> float | int:
    value = float(token)
    if not -MAX_SAFE <= value <= MAX_SAFE:
        raise _Forbidden
    # 2.0 and 2e0 are printed as 2, so they are read as 2: the value is the one its canonical text has.
    return int(value) if value.is_integer() else value


def _constant(token: str) -> Any:
    raise ValueError(f"{token} is not JSON")


_strict: Final = JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_int, parse_float=_float, parse_constant=_constant
)


def parse(
    data: bytes, *, code: str = "bad_envelope", at: str = "", most: int = MAX_DEPTH
) -> tuple[Any, bytes] | Refusal:
    """The value of a JSON text and its canonical bytes. `at`: the path of this text in the whole; `most`: depth.

    Integer-valued floats come as int, so that the same canonical text always has the same value.
    """
    found = quick(data, most)
    if found is not None:
        return found
    try:
        text = data.decode()
        if not too_deep(data, most):
            value = _strict.decode(text)
            return value, encode(value)
    except UnicodeDecodeError:
        return refuse("bad_request", "this is not UTF-8")
    except (_Forbidden, ValueError, RecursionError):
        pass
    fault = examine(text, most=most)
    if fault is None:
        # The judges must agree; a text that one refuses and the other takes is refused, never passed on.
        return refuse(code, "outside the wire's profile of JSON", path=at)
    return _refusal(fault, code, at)


def read(data: bytes, *, code: str = "bad_envelope", at: str = "", most: int = MAX_DEPTH) -> Any | Refusal:
    """The value of a JSON text, read strictly.

    Not JSON or not UTF-8 (NaN, a byte-order mark, …): bad_request, without a path. Duplicate names at any depth,
    numbers beyond ±(2^53−1) judged on the double, lone surrogates, nesting deeper than `most`: `code`, with `path`
    ("body.qty", "body.legs[2].px", "" for the root).
    """
    found = parse(data, code=code, at=at, most=most)
    return found if isinstance(found, Refusal) else found[0]


def scan(data: bytes, *, code: str = "bad_request", at: str = "", most: int = MAX_DEPTH) -> Refusal | None:
    """What `read` would refuse, for texts whose value nobody needs here."""
    found = parse(data, code=code, at=at, most=most)
    return found if isinstance(found, Refusal) else None


def canonicalize(data: bytes, *, code: str = "bad_envelope", at: str = "") -> bytes | Refusal:
    """The RFC 8785 bytes of a JSON text, read strictly as by `read`."""
    found = parse(data, code=code, at=at)
    return found if isinstance(found, Refusal) else found[1]


def without(data: bytes, name: str, *, code: str = "bad_request") -> bytes | Refusal:
    """The RFC 8785 bytes of a JSON object's text, read strictly as by `read`, less its member `name`, if it has one."""
    found = quick(data)
    if found is not None:  # what stands in the canonical form of the whole stands in that of a part
        value, text = found
        if name not in value:
            return text
        return _sorted({each: member for each, member in value.items() if each != name})
    parsed = parse(data, code=code)
    if isinstance(parsed, Refusal):
        return parsed
    return encode({each: member for each, member in parsed[0].items() if each != name})


_raws: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def members(data: bytes, *, code: str = "bad_request", at: str = "") -> dict[str, msgspec.Raw] | Refusal:
    """The members of a JSON object, one level deep, each value as its text.

    The grammar of the whole text is judged, names only at this level: give each value to `read` or `scan`.
    Not JSON: bad_request without a path. No object, a name used twice or with a lone surrogate: `code`, `path`.
    """
    try:
        found = _raws(data)
        if not data.isascii():
            data.decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _slow_members(data, code, at)
    # `{"name":value,…}` with nothing between leaves no room for a member that was lost or an escaped name.
    shell = 4 * len(found) + 1 if found else 2
    inner = "".join(found).encode() + b"".join(map(bytes, found.values()))
    if len(data) == len(inner) + shell:
        return found
    if len(data.translate(None, _WHITE)) == len(inner.translate(None, _WHITE)) + shell:
        return found
    return _slow_members(data, code, at)


def _slow_members(data: bytes, code: str, at: str) -> dict[str, msgspec.Raw] | Refusal:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return refuse("bad_request", "this is not UTF-8")
    slices = split(text)
    if isinstance(slices, Fault):
        return _refusal(slices, code, at)
    return {each.name: msgspec.Raw(text[each.start : each.end].strip().encode()) for each in slices}


def _refusal(fault: Fault, code: str, at: str) -> Refusal:
    if fault.path is None:
        return refuse("bad_request", fault.message)
    return refuse(code, fault.message, path=join(at, fault.path))
