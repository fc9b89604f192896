"""What `turret check` finds in tasks: each is found by one mark that says what it says, and no mark lies alone."""

from collections.abc import Iterator

import msgspec

from broker.actors.task import TaskMark, put_mark
from broker.core.task import TaskRow
from broker.store.port import Fault, Snapshot, Step


def check_tasks(snapshot: Snapshot) -> Iterator[Step]:
    """What is wrong with tasks, and one for each that was looked at. Raises what reading raises."""
    marks = {document.id: document.doc for document in snapshot.documents("taskmark")}
    for document in snapshot.documents("task"):
        try:
            row = msgspec.json.decode(document.doc, type=TaskRow)
        except msgspec.MsgspecError as error:
            yield Fault("document", document.id, f"is no task's: {error}")
            continue
        yield from _task(snapshot, document.id, row, marks)
        yield 1
    for mark_id in sorted(marks):
        yield Fault("document", mark_id, "is the mark of no task")


def _task(snapshot: Snapshot, id: str, row: TaskRow, marks: dict[str, bytes]) -> Iterator[Fault]:
    if row.task_id != id:
        yield Fault("document", id, f"says that it is {row.task_id}")
        return
    if snapshot.marks("task", id) != {("due", row.due)}:
        yield Fault("document", id, "is not due when it says")
    mark = put_mark(row)
    found = marks.pop(mark.id, None)
    if found is None:
        yield Fault("document", id, "has no mark")
        return
    try:
        same = msgspec.json.decode(found, type=TaskMark) == msgspec.json.decode(
            mark.doc or b"", type=TaskMark
        )
    except msgspec.MsgspecError:
        same = False
    if not same or snapshot.marks("taskmark", mark.id) != set(mark.index):
        yield Fault("document", id, "is not found by what it says")
