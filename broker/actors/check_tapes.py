"""What `turret check` finds in imported tapes: bytes that are those of the ref, and what their documents say of them.

1. A tape that is here has all its parts, and they are the tape that its ref names.
2. Of one that comes so many parts are there as its document says; of one that is gone none.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from broker.core.tapes.catalog import KIND, TapeRow, index_of, whole
from broker.store.port import Entry, Fault, Snapshot


class Log(NamedTuple):
    """A log that a tape's document names."""

    name: str
    rows: int


def check_tapes(snapshot: Snapshot) -> Iterator[tuple[Log | None, list[Fault]]]:
    """Each tape's log, if it has one, and what is wrong with the tape. Raises what reading raises."""
    indices: dict[int, str] = {}
    for document in snapshot.documents(KIND):
        try:
            row = msgspec.json.decode(document.doc, type=TapeRow)
        except msgspec.MsgspecError as error:
            yield None, [Fault("document", document.id, f"is no tape's: {error}")]
            continue
        entries = [] if row.state == "gone" else snapshot.rows(row.log)
        faults = list(_tape(document.id, row, entries))
        if row.index is not None and (other := indices.setdefault(row.index, row.ref)) != row.ref:
            faults.append(Fault("document", document.id, f"has the index {row.index} of {other}"))
        if snapshot.marks(KIND, document.id) != set(index_of(row)):
            faults.append(Fault("document", document.id, "is not found by what it says"))
        yield None if row.state == "gone" else Log(row.log, len(entries)), faults


def _tape(id: str, row: TapeRow, entries: list[Entry]) -> Iterator[Fault]:
    if row.ref != id:
        yield Fault("document", id, f"says that it is {row.ref}")
    if len(entries) != row.parts:
        yield Fault("tape", id, f"has {len(entries)} parts, and its document says {row.parts}")
    elif row.state == "here":
        tape = whole([entry.data for entry in entries], row.ref)
        if isinstance(tape, str):
            yield Fault("tape", id, tape)
        elif (tape.about, len(tape)) != (row.about, row.ticks):
            yield Fault("document", id, "says something else of the tape than its bytes")
        if row.index is None:
            yield Fault("document", id, "is here, and has no index")
