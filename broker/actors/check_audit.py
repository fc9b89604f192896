"""What `turret check` and an export find in the audit log: its rows, its heads, and what rows are found by.

The head beside the store belongs to a directory that is served; a backup has none, and a restore says so itself.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from broker.actors.auditor import HEAD, KEY, ROW, number_of, row_id
from broker.core.audit import index_of
from broker.core.conversation import Restored
from broker.store.port import Fault, Snapshot, Step
from broker.wire.auditlog import RESTORED, Verdict, Verifier, read_row
from broker.wire.safekeys import SafeKeys

PAGE: Final = 500


class Beside(msgspec.Struct, frozen=True):
    """What stands beside a store that is served: the head's text (None: there is none), the wire's keys, and those of
    secrets (None: not here)."""

    head: bytes | None
    wires: tuple[str, ...]
    safe_keys: SafeKeys | None = None


class _Keys(msgspec.Struct):
    pks: tuple[str, ...]


class Rows:
    """The audit log of a snapshot, as far as it can be read. Without `beside` the wire's keys are those that the store
    says that it was served with: somebody who writes into it can say anything there."""

    def __init__(self, snapshot: Snapshot, beside: Beside | None) -> None:
        self._snapshot = snapshot
        self.head = kept_head(snapshot)
        self.wires = kept_wires(snapshot) if beside is None else beside.wires
        self.restored = _is_untold(snapshot)
        self.verifier = Verifier(
            frozenset(self.wires),
            self.head,
            None if beside is None else beside.head,
            apart=beside is not None,
            restored=self.restored,
        )

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """All rows by the numbers that they are kept under, given to the verifier on the way."""
        for document in self._snapshot.documents(ROW):
            number = number_of(document.id)
            if number is None:
                self.verifier.stray(str(document.id))
            else:
                self.verifier.row(number, document.doc)
                yield number, document.doc

    def verdict(self) -> Verdict:
        """After all rows."""
        return self.verifier.end()


def kept_head(snapshot: Snapshot) -> bytes | None:
    """The text of the head that is kept with the rows. Raises what reading raises."""
    document = snapshot.document(HEAD, KEY)
    return None if document is None else document.doc


def kept_wires(snapshot: Snapshot) -> tuple[str, ...]:
    """The keys with which the store says that it was served. Raises what reading raises."""
    document = snapshot.document("wire", "keys")
    return () if document is None else msgspec.json.decode(document.doc, type=_Keys).pks


def check_audit(snapshot: Snapshot, beside: Beside | None) -> Iterator[Step]:
    """Look through the audit log; yields faults, and how many more rows were looked at."""
    rows, seen = Rows(snapshot, beside), 0
    for n, text in rows:
        found = read_row(text)
        marks = snapshot.marks(ROW, row_id(n))
        if found is not None and marks != set(index_of(found[0])):
            yield Fault("audit", "index", "is not found by what it says", n)
        seen += 1
        if seen % PAGE == 0:
            yield PAGE
    yield seen % PAGE
    for fault in rows.verdict().faults:
        yield Fault("audit", "" if fault.n is None else "row", fault.message, fault.n)


def _is_untold(snapshot: Snapshot) -> bool:
    """Whether the store was made of a backup that no row tells of."""
    document = snapshot.document("wire", "restored")
    if document is None:
        return False
    at = msgspec.json.decode(document.doc, type=Restored).restored_at
    last: int | None = None
    for each in snapshot.documents(ROW):
        row = read_row(each.doc) if b'"restored"' in each.doc else None
        if row is not None and row[0].get("kind") == RESTORED:
            last = row[0].get("detail", {}).get("restored_at")
    return last != at
