"""How a task is followed: the reader that the broker's verb `follow_task` opens (network.md, A2A).

What stands in the task is what its stream has told up to the place that the task names. So who reads the task, and
follows its stream from there, gets each change once, whatever happens in between.
"""

from typing import NamedTuple

import msgspec

from broker.actors.streams import Reader
from broker.actors.task import read_task, task_stream
from broker.core.task import TaskRow, missing, view
from broker.tools.access import allowed, me, open_reader
from broker.tools.context import Context
from broker.wire.events import Cursor, stream_tag
from broker.wire.refusals import Refusal
from broker.wire.task import View

SCOPE = "task"


class Followed(NamedTuple):
    """A task, and a reader of what becomes of it: from the task on, or from the cursor that was given. `view` is then
    how it stands, for who asks whether more will come."""

    view: View
    reader: Reader
    """Its `resume.from_` is the cursor at which it begins."""


async def follow_task(context: Context, task_id: str, after: str | None) -> Followed | Refusal:
    """A task that the caller's agent gave, followed after a cursor of its stream, or from where it stands.

    Enter or close the reader. It ends at once where the caller's right to speak ends. A cursor that can't be gone on
    from is as none: `resume.recovered` is false, and the view is what to begin with. Raises what the store raises;
    cancelling subscribes nothing.
    """
    refused = await allowed(context, SCOPE, True)
    if refused is not None:
        return refused
    row = await given(context, task_id)
    if isinstance(row, Refusal):
        return row
    reader = await _read(context, row, after)
    if isinstance(reader, Refusal):
        return reader
    lost = reader.resume
    if after is not None and not lost.recovered:
        reader.close()
        reader = await _read(context, row, None)
        if isinstance(reader, Refusal):
            return reader
        reader.resume = msgspec.structs.replace(reader.resume, recovered=False, reason=lost.reason)
    return Followed(view(row), reader)


async def given(context: Context, task_id: str) -> TaskRow | Refusal:
    """A task that the caller's agent gave; to all others it looks missing. Raises what the store raises."""
    row = await read_task(context.services.store, task_id)
    return row if row is not None and row.requester == me(context) else missing()


async def _read(context: Context, row: TaskRow, after: str | None) -> Reader | Refusal:
    stream = task_stream(row.task_id)
    if after is None:
        epoch = (await context.services.store.head(stream)).epoch
        after = Cursor(stream_tag(stream), epoch, row.told).text()
    return await open_reader(context, stream, after)
