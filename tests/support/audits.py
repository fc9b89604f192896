"""An audit log of a few rows, and everything that somebody could do to one: each with what must be said of it.

A damage is done to a plain copy (rows by number, the head's text in the store, that of the one beside it), so that the
same table is held against the verifier, a memory store, a database and an exported file.
"""

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from broker.wire.auditlog import NOTHING, AuditHead, head_text, read_row, seal
from broker.wire.keys import SigningKey

WIRE: Final = SigningKey(b"w" * 32)
THIEF: Final = SigningKey(b"t" * 32)
"""Who can write into the store, and has no key of the wire's."""
COUNT: Final = 6
AT: Final = 1_782_345_678_000


class Kept(msgspec.Struct):
    """An audit log as it lies there."""

    rows: dict[int, bytes]
    head: bytes | None
    beside: bytes | None
    older: "Kept | None" = None
    """The same three rows before: what a thief of a backup has."""


def made(count: int = COUNT, key: SigningKey = WIRE) -> Kept:
    """A log that holds."""
    rows, head = {}, None
    for n in range(1, count + 1):
        last = NOTHING if head is None else head.hash
        rows[n], head = seal(key, last, event(n), AT + n)
    text = None if head is None else head_text(head)
    return Kept(rows, text, text, made(count - 3, key) if count == COUNT else None)


def event(n: int, **changes: Any) -> dict[str, Any]:
    """The members of row `n`."""
    base = {
        "n": n,
        "id": f"au_{n}",
        "at": AT + n,
        "actor": "operator",
        "kind": "suspend_agent",
        "subject": f"ag_{n}",
    }
    return {**base, "detail": {"reason": f"reason {n}"}, **changes}


def linked(kept: Kept, first: int, events: list[dict[str, Any]], key: SigningKey = THIEF) -> None:
    """Link rows anew from `first` on, with whatever key there is."""
    before = read_row(kept.rows[first - 1]) if first > 1 else None
    last = NOTHING if before is None else before[1].hash
    for n in [n for n in kept.rows if n >= first]:
        del kept.rows[n]
    head: AuditHead | None = None
    for n, each in enumerate(events, first):
        kept.rows[n], head = seal(key, last, {**each, "n": n}, AT + n)
        last = head.hash
    assert head is not None
    kept.head = head_text(head)


def _member(n: int, name: str, value: Any) -> Callable[[Kept], None]:
    def damage(kept: Kept) -> None:
        kept.rows[n] = json.dumps({**json.loads(kept.rows[n]), name: value}).encode()

    return damage


def _removed(kept: Kept) -> None:
    del kept.rows[3]


def _removed_and_linked(kept: Kept) -> None:
    linked(kept, 3, [event(n) for n in (4, 5, 6)])


def _linked_to_the_same_length(kept: Kept) -> None:
    linked(kept, 3, [event(n, actor="nobody") for n in (3, 4, 5, 6)])
    kept.beside = kept.head


def _kept_seals(kept: Kept) -> None:
    """A new row with the old seal."""
    old = json.loads(kept.rows[3])
    linked(kept, 3, [event(3, actor="nobody"), event(4), event(5), event(6)])
    row = json.loads(kept.rows[3])
    kept.rows[3] = json.dumps(
        {**row, "sig": old["sig"], "wire": old["wire"], "sealed_at": old["sealed_at"]}
    ).encode()


def _swapped(kept: Kept) -> None:
    kept.rows[2], kept.rows[5] = kept.rows[5], kept.rows[2]


def _swapped_and_numbered(kept: Kept) -> None:
    two, five = json.loads(kept.rows[2]), json.loads(kept.rows[5])
    kept.rows[2], kept.rows[5] = json.dumps({**five, "n": 2}).encode(), json.dumps({**two, "n": 5}).encode()


def _cut(kept: Kept) -> None:
    del kept.rows[6], kept.rows[5]


def _cut_with_head(kept: Kept) -> None:
    assert kept.older is not None
    kept.rows, kept.head = {n: kept.rows[n] for n in (1, 2, 3)}, kept.older.head


def _emptied(kept: Kept) -> None:
    kept.rows.clear()


def _emptied_with_head(kept: Kept) -> None:
    kept.rows.clear()
    kept.head = None


def _forged_head(kept: Kept) -> None:
    assert kept.head is not None
    head = msgspec.json.decode(kept.head, type=AuditHead)
    kept.head = head_text(msgspec.structs.replace(head, count=5))


def _thiefs_heads(kept: Kept) -> None:
    linked(kept, 1, [event(n, actor="nobody") for n in range(1, 7)])
    kept.beside = kept.head


def _appended(kept: Kept) -> None:
    last = read_row(kept.rows[6])
    assert last is not None
    kept.rows[7], _ = seal(THIEF, last[1].hash, event(7), AT)


def _no_head(kept: Kept) -> None:
    kept.head = None


def _older_head(kept: Kept) -> None:
    assert kept.older is not None
    kept.head = kept.older.head


def _older_heads(kept: Kept) -> None:
    _older_head(kept)
    kept.beside = kept.head


def _nothing_beside(kept: Kept) -> None:
    kept.beside = None


def _junk_beside(kept: Kept) -> None:
    kept.beside = b"{}"


def _of_another_log(kept: Kept) -> None:
    other, head = {}, None
    for n in range(1, 5):
        other[n], head = seal(WIRE, NOTHING if head is None else head.hash, event(n, actor="other"), AT)
    assert head is not None
    kept.beside = head_text(head)


DAMAGES: Final[dict[str, tuple[Callable[[Kept], None], int | None, str]]] = {
    "the text of a row was changed": (_member(3, "actor", "nobody"), 3, "row 3 was changed"),
    "a member was put in": (_member(3, "more", 1), 3, "row 3 was changed"),
    "the hash of a row was changed": (_member(3, "hash", "0" * 64), 3, "row 3 was changed"),
    "the seal of a row was changed": (_member(3, "sig", "0" * 128), 3, "row 3 has no seal"),
    "a row is no row": (_member(3, "hash", 7), 3, "row 3 can't be read"),
    "a row in the middle was removed": (_removed, 3, "row 3 is missing"),
    "a row was removed and the others linked anew": (_removed_and_linked, 3, "row 3 has no seal"),
    "all from one row on was written anew, and both heads": (
        _linked_to_the_same_length,
        3,
        "row 3 has no seal",
    ),
    "a row was written anew under its old seal": (_kept_seals, 3, "row 3 has no seal"),
    "two rows were swapped": (_swapped, 2, "row 2 says that it is row 5"),
    "two rows were swapped and renumbered": (_swapped_and_numbered, 2, "row 2 was changed"),
    "the tail was cut off": (_cut, 5, "rows 5 to 6 are gone"),
    "the tail was cut off, the head with it": (_cut_with_head, 4, "the head beside the store knows 6"),
    "the table was emptied": (_emptied, 1, "rows 1 to 6 are gone"),
    "the table was emptied, the head with it": (_emptied_with_head, 1, "rows 1 to 6 are gone"),
    "the head was changed": (_forged_head, None, "the head in the store is not signed"),
    "everything was written anew by somebody": (_thiefs_heads, 1, "row 1 has no seal"),
    "a row was put behind the last one": (_appended, 7, "row 7 has no seal"),
    "the head is missing": (_no_head, None, "the head in the store is missing"),
    "the head in the store is an older one": (_older_head, 4, "the head in the store knows 3 rows"),
    "both heads are older ones": (_older_heads, 4, "the head in the store knows 3 rows"),
    "the head beside the store is missing": (_nothing_beside, None, "the head beside the store is missing"),
    "the head beside the store is none": (_junk_beside, None, "the head beside the store is not signed"),
    "the head beside the store is another log's": (
        _of_another_log,
        4,
        "the head beside the store is of another",
    ),
}
"""Name → what was done to a log of six rows, the first row that must be named, and how the words about it begin."""
