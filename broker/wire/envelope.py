"""The envelope: eight members, read strictly, and its canonical text (wire.md, Envelope; order of checks, step 2).

1. Judged here is what the envelope alone can tell: JSON, shape, canonical rules, the body's size, from ≠ to.
   Desks, turns, heads, clocks and signatures are others' business.
2. The text that counts is the canonical one. A fault names the member by its `path`.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from broker.wire.canonical import encode, parse, quick
from broker.wire.grammar import MAX_DEPTH, shown
from broker.wire.ids import CODE, CONV, MAX_SAFE, PK, SIG, TYPE
from broker.wire.refusals import Refusal, refuse

MAX_BODY: Final = 8192
"""Bytes of a body in canonical form (wire.md, Limits; the seed's 8 KiB)."""
TIMED: Final = frozenset({"HIT", "ACCEPT", "CONFIRM"})
"""Types that take up what the other party said: too late after its valid_until_ms."""


class Envelope(msgspec.Struct, frozen=True):
    """An envelope as read. `sender` is the member `from`; `ts` in Unix seconds; `canonical` the RFC 8785 text."""

    conv: str
    n: int
    type: str
    sender: str
    to: str
    ts: int
    prev_sig: str
    body: dict[str, Any]
    canonical: bytes

    @property
    def digest(self) -> bytes:
        """sha256 of the canonical text, 32 bytes. Computed at each asking: keep it."""
        return hashlib.sha256(self.canonical).digest()

    @property
    def body_wire(self) -> str | None:
        """The wire that a CALL names in body.wire, or None where it names none (or no string)."""
        wire = self.body.get("wire")
        return wire if isinstance(wire, str) else None

    @property
    def valid_until_ms(self) -> int | None:
        """Until when, by the wire's clock in ms, this may be taken up; None where the body does not say."""
        until = self.body.get("valid_until_ms")
        return until if type(until) is int else None


def bootstrap(conv: str) -> str:
    """prev_sig of n = 0: hex of sha256("cdp:" + conv), 64 characters. Also chain[0]."""
    return hashlib.sha256(b"cdp:" + conv.encode()).hexdigest()


_TAIL: Final = re.compile(
    r',"conv":"([0-9a-f]{16})","from":"([0-9a-f]{64})","n":(0|[1-9][0-9]{0,15}),'
    r'"prev_sig":"([0-9a-f]{64}(?:[0-9a-f]{64})?)","to":"([0-9a-f]{64})","ts":(0|[1-9][0-9]{0,15}),'
    r'"type":"([A-Z][A-Z0-9_]{0,31})"\}'
)
"""All of a canonical envelope that stands after its body, since names are sorted and only the body is free."""
_HEAD: Final = b'{"body":'
_CONV: Final = b',"conv":"'


def read_envelope(raw: bytes) -> Envelope | Refusal:
    """Read an envelope's JSON text. Next: the params, then the conversation (order of checks, step 3 on).

    bad_request: not JSON. bad_envelope with `path`: shape or canonical rules. too_large{limit, size}: the body.
    """
    if raw.startswith(b'{"body":{'):
        found = _canonical(raw)
        if found is not None:
            return found
    parsed = parse(raw)
    if isinstance(parsed, Refusal):
        return parsed
    value, canonical = parsed
    return _shape(value) or _build(value, canonical)


def _canonical(raw: bytes) -> Envelope | None:
    """The fast path: a text that is canonical and in shape, proven without reading it member by member."""
    seam = raw.rfind(_CONV)
    match = _TAIL.fullmatch(raw[seam:].decode("latin-1")) if seam > 0 else None
    if match is None:
        return None
    text = raw[8:seam]
    found = quick(text, MAX_DEPTH - 1)
    if found is None or found[1] != text:
        return None
    conv, sender, n, prev_sig, to, ts, kind = match.groups()
    number, seconds = int(n), int(ts)
    if len(prev_sig) != (128 if number else 64) or number > MAX_SAFE or seconds > MAX_SAFE:
        return None
    if len(text) > MAX_BODY or sender == to:
        return None
    return Envelope(conv, number, kind, sender, to, seconds, prev_sig, found[0], raw)


def _build(value: dict[str, Any], canonical: bytes) -> Envelope | Refusal:
    size = canonical.rfind(_CONV) - len(_HEAD)
    refusal = _limits(size, value["from"] == value["to"])
    if refusal is not None:
        return refusal
    return Envelope(
        value["conv"],
        value["n"],
        value["type"],
        value["from"],
        value["to"],
        value["ts"],
        value["prev_sig"],
        value["body"],
        canonical,
    )


def _limits(size: int, same: bool) -> Refusal | None:
    if size > MAX_BODY:
        return refuse("too_large", "the body is too large", limit=MAX_BODY, size=size)
    if same:
        return refuse("bad_envelope", "from and to are the same key", path="to")
    return None


def _form(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_SAFE


_MEMBERS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "conv": (_form(CONV), "16 lowercase hex characters"),
    "n": (_count, "an integer from 0"),
    "type": (_form(TYPE), "a capital letter, then at most 31 of A-Z, 0-9 and _"),
    "from": (_form(PK), "64 lowercase hex characters"),
    "to": (_form(PK), "64 lowercase hex characters"),
    "ts": (_count, "whole Unix seconds"),
    "prev_sig": (_form(re.compile(rf"{PK.pattern}|{SIG.pattern}")), "64 or 128 lowercase hex characters"),
    "body": (lambda value: type(value) is dict, "a JSON object"),
}


def _shape(value: Any) -> Refusal | None:
    """The first member that is unknown, missing or of the wrong form."""
    if type(value) is not dict:
        return refuse("bad_envelope", "an envelope is a JSON object", path="")
    for name in value:
        if name not in _MEMBERS:
            return refuse("bad_envelope", "no member of an envelope", path=shown(name))
    for name, (holds, form) in _MEMBERS.items():
        if name not in value:
            return refuse("bad_envelope", "this member is missing", path=name)
        if not holds(value[name]):
            return refuse("bad_envelope", f"must be {form}", path=name)
    if len(value["prev_sig"]) != (128 if value["n"] else 64):
        form = (
            "the previous envelope's sig (128 characters)" if value["n"] else "the bootstrap (64 characters)"
        )
        return refuse("bad_envelope", f"must be {form}", path="prev_sig")
    return None


def build(
    *,
    conv: str,
    n: int,
    type: str,
    sender: str,
    to: str,
    ts: int,
    prev_sig: str,
    body: Mapping[str, Any],
) -> bytes:
    """The canonical text of an envelope, for its signer. Raises ValueError where the wire would refuse it."""
    value = {
        "body": dict(body),
        "conv": conv,
        "from": sender,
        "n": n,
        "prev_sig": prev_sig,
        "to": to,
        "ts": ts,
        "type": type,
    }
    text = encode(value)
    checked = read_envelope(text)
    if isinstance(checked, Refusal):
        raise ValueError(f"{checked.message} ({checked.detail.get('path', checked.code)})")
    return text


def call_codes(envelope: Envelope) -> tuple[str, str] | Refusal:
    """code_from and code_to of a CALL's body, or bad_envelope with the path (wire.md, Life of a call)."""
    for name in ("code_from", "code_to"):
        code = envelope.body.get(name)
        if not isinstance(code, str) or CODE.fullmatch(code) is None:
            return refuse("bad_envelope", "must be a desk's code: four capital letters", path=f"body.{name}")
    return envelope.body["code_from"], envelope.body["code_to"]


def answers_late(type: str, valid_until_ms: int | None, at_ms: int) -> bool:
    """Whether an envelope of this type, accepted at `at_ms`, takes up something whose time has passed."""
    return type in TIMED and valid_until_ms is not None and at_ms > valid_until_ms
