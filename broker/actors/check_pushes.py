"""What `turret check` finds in pushes: each is its own, and is found by what it says, so that the start sees it."""

from collections.abc import Iterator

import msgspec

from broker.actors.push import KIND, index_of_push
from broker.core.push import PushRow
from broker.store.port import Fault, Snapshot, Step


def check_pushes(snapshot: Snapshot) -> Iterator[Step]:
    """What is wrong with pushes, and one for each that was looked at. Raises what reading raises."""
    for document in snapshot.documents(KIND):
        try:
            row = msgspec.json.decode(document.doc, type=PushRow)
        except msgspec.MsgspecError as error:
            yield Fault("document", document.id, f"is no push's: {error}")
            continue
        if row.push_id != document.id:
            yield Fault("document", document.id, f"says that it is {row.push_id}")
        if snapshot.marks(KIND, document.id) != set(index_of_push(row)):
            yield Fault("document", document.id, "is not found by what it says")
        yield 1
