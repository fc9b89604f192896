"""What `turret check` finds in secrets: each holder's are as an actor writes them, and open with a key that is there.

1. A secret whose key is not there is no fault of the store's: the key may come back. It is counted.
2. One whose key is there, and which that does not open, was changed, or put in another's place.
3. Nothing that is found holds a value.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from broker.actors.safe import KIND, OPERATORS
from broker.core.safe import MOST, NAME, Kept, SafeRow
from broker.store.port import Fault, Snapshot
from broker.wire.safekeys import SafeKeys

_NAME: Final = re.compile(NAME)
_HEX: Final = re.compile(r"(?:[0-9a-f]{2})+")


def check_safe(snapshot: Snapshot, keys: SafeKeys | None) -> Iterator[tuple[int, int, list[Fault]]]:
    """Of each holder how many secrets it has, how many of them no key opens, and what is wrong. `keys`: None where
    there are none to look with, as beside a backup. Raises what reading raises."""
    for document in snapshot.documents(KIND):
        holder = document.id
        try:
            row = msgspec.json.decode(document.doc, type=SafeRow)
        except msgspec.MsgspecError as error:
            yield 0, 0, [Fault("document", holder, f"is no holder's of secrets: {error}")]
            continue
        faults = [Fault("document", holder, said) for said in _row(holder, row)]
        if snapshot.marks(KIND, holder) != {("all", "1")}:
            faults.append(Fault("document", holder, "is not found by what it says"))
        unreadable = 0
        for kept in row.kept:
            if keys is None:
                break
            if not keys.has(kept.key):
                unreadable += 1
            elif keys.open(holder, kept.name, kept.sealed, kept.key) is None:
                said = f"{kept.name} is not what was sealed here; set it again"
                faults.append(Fault("secret", holder, said))
        yield len(row.kept), unreadable, faults


def _row(holder: str, row: SafeRow) -> Iterator[str]:
    names = [kept.name for kept in row.kept]
    if holder != OPERATORS and not holder.startswith(("ag_", "ow_")):
        yield "is nobody who keeps secrets"
    if not 0 < len(names) <= MOST:
        yield f"has {len(names)} secrets, and a holder has 1 to {MOST}"
    if names != sorted(set(names)):
        yield "has a secret twice, or out of order"
    if wrong := [kept for kept in row.kept if not _is_whole(kept)]:
        yield f"{len(wrong)} of its secrets are no names with what was sealed"


def _is_whole(kept: Kept) -> bool:
    return bool(
        _NAME.fullmatch(kept.name) and _HEX.fullmatch(kept.sealed) and kept.created_at <= kept.updated_at
    )
