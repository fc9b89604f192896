"""Signed statements: what is no envelope but needs a key's proof (wire.md, Signed statements).

1. Exactly the members of the table; an unknown or missing one is refused with its path.
2. Every fault is bad_statement, except a text that is not JSON.
3. A reader checks the shape alone. Next, in the wire's order: `check_wire`, the replay, the signature, the nonce,
   `check_time`; after them who the key is.
"""

import hashlib
import re
from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from broker.wire.canonical import encode, parse
from broker.wire.grammar import shown
from broker.wire.ids import CODE, MAX_SAFE, NONCE, PK, Sig
from broker.wire.keys import SigningKey, is_acceptable_pk
from broker.wire.refusals import Refusal, refuse

FOLLOW_S: Final = 86_400
"""The longest life of a follow statement, seconds after its ts."""
MAX_SCREENED: Final = 256
"""Keys in one list of screen_desk."""
MODES: Final = ("all", "known", "nobody")
"""Whose calls ring: everybody's; those of counterparties that the desk has talked to; nobody's (do not disturb)."""


class Statement(msgspec.Struct, frozen=True):
    """A statement as read. `members`: those of its row of the table; `ts` in Unix seconds."""

    do: str
    pk: str
    nonce: str
    ts: int
    wire: str
    members: dict[str, Any]
    canonical: bytes

    @property
    def digest(self) -> bytes:
        """sha256 of the canonical text, 32 bytes."""
        return hashlib.sha256(self.canonical).digest()


class Form(msgspec.Struct, frozen=True):
    """The form of one member. `holds` judges a value; `text` says what was expected."""

    holds: Callable[[Any], bool]
    text: str
    optional: bool = False


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_SAFE


def _keys(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_SCREENED and all(_PK.holds(each) for each in value)


def _sound_key(value: Any) -> bool:
    # It signs nothing here, so that no failing signature would ever tell that it can sign nothing.
    return isinstance(value, str) and is_acceptable_pk(value)


_PK: Final = Form(_matches(PK), "64 lowercase hex characters")
_KEY: Final = Form(_sound_key, "an Ed25519 public key, 64 lowercase hex characters")
_CODE: Final = Form(_matches(CODE), "a desk's code: four capital letters")
_COUNT: Final = Form(_count, "whole Unix seconds")
_KEYS: Final = Form(_keys, f"a list of at most {MAX_SCREENED} keys")
_MODE: Final = Form(lambda value: value in MODES, "one of " + ", ".join(MODES))
_NAME: Final = Form(
    lambda value: isinstance(value, str) and 1 <= len(value) <= 64 and value.isprintable(),
    "1 to 64 printable characters",
)
_AGENT: Final = Form(
    _matches(re.compile(r"ag_[0-9A-HJKMNP-TV-Z]{26}")), "ag_ and the 26 characters of a ULID"
)


def _optional(form: Form) -> Form:
    return Form(form.holds, form.text, optional=True)


TABLE: Final[dict[str, dict[str, Form]]] = {
    "open_desk": {"code": _CODE, "recovery_pk": _optional(_KEY)},
    "move_desk": {"code": _CODE, "new_pk": _KEY},
    "close_desk": {"code": _CODE},
    "authenticate": {},
    "follow": {"code": _optional(_CODE), "until": _COUNT},
    "cancel_move": {"code": _CODE},
    "register_agent": {"name": _NAME},
    "screen_desk": {"code": _CODE, "allow": _KEYS, "deny": _KEYS, "mode": _MODE},
    "bind_key": {"agent_id": _AGENT},
}
"""do → its own members. All have also `do`, `nonce`, `pk`, `ts`, `wire`."""

_COMMON: Final[dict[str, Form]] = {
    "nonce": Form(_matches(NONCE), "32 lowercase hex characters"),
    "pk": _PK,
    "ts": _COUNT,
    "wire": _PK,
}


def _bad(message: str, path: str) -> Refusal:
    return refuse("bad_statement", message, path=path)


def read_statement(raw: bytes, *, do: str | Collection[str] | None = None) -> Statement | Refusal:
    """Read a statement's JSON text; `do`: the one, or the ones, that this place takes (None: any).

    bad_request: not JSON. bad_statement with `path`: anything else.
    """
    parsed = parse(raw, code="bad_statement")
    if isinstance(parsed, Refusal):
        return parsed
    value, canonical = parsed
    if type(value) is not dict:
        return _bad("a statement is a JSON object", "")
    wanted = (do,) if isinstance(do, str) else TABLE if do is None else do
    verb = value.get("do")
    if not isinstance(verb, str) or verb not in TABLE or verb not in wanted:
        return _bad("must be " + " or ".join(wanted), "do")
    own = TABLE[verb]
    refusal = _shape(value, {**_COMMON, **own})
    if refusal is not None:
        return refusal
    if verb == "follow" and value["until"] > value["ts"] + FOLLOW_S:
        return _bad(f"at most {FOLLOW_S} s after ts", "until")
    members = {name: value[name] for name in own if name in value}
    return Statement(verb, value["pk"], value["nonce"], value["ts"], value["wire"], members, canonical)


def _shape(value: dict[str, Any], forms: dict[str, Form]) -> Refusal | None:
    for name in value:
        if name != "do" and name not in forms:
            return _bad("no member of this statement", shown(name))
    for name, form in forms.items():
        if name not in value:
            if form.optional:
                continue
            return _bad("this member is missing", name)
        if not form.holds(value[name]):
            return _bad(f"must be {form.text}", name)
    return None


def check_wire(statement: Statement, wires: Collection[str]) -> Refusal | None:
    """The statement must name one of this wire's keys, so that it can't be used at another wire."""
    return None if statement.wire in wires else _bad("signed for another wire", "wire")


def check_time(statement: Statement, now_s: int, skew_s: int = 300) -> Refusal | None:
    """ts within `skew_s` of now. A follow statement is good before its `until`, whatever its ts."""
    if statement.do == "follow":
        over = statement.members["until"] <= now_s
        return _bad("its time has passed; sign a new one", "until") if over else None
    skew = statement.ts - now_s
    if abs(skew) <= skew_s:
        return None
    return refuse("bad_statement", "ts is too far from the wire's clock", path="ts", wire_ts=now_s, skew=skew)


def build_statement(
    do: str, key: SigningKey, wire: str, ts: int, nonce: str, **members: Any
) -> tuple[bytes, Sig]:
    """The canonical text and its sig. Members given as None are left out.

    Raises ValueError where the wire would refuse it.
    """
    given = {name: value for name, value in members.items() if value is not None}
    text = encode({**given, "do": do, "nonce": nonce, "pk": key.pk, "ts": ts, "wire": wire})
    checked = read_statement(text, do=do)
    if isinstance(checked, Refusal):
        raise ValueError(f"{checked.message} ({checked.detail.get('path', checked.code)})")
    return text, key.sign(text)
