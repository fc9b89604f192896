"""The actor of one task (network.md, A2A).

1. Each change is one commit: the row, the mark by which it is found, what its own stream is told (position by
   position, so that who follows it loses nothing, also over a restart), and an event `task` for each of the two agents.
2. What an agreement allows is looked at when the letter is taken. Without it nobody begins, adds or answers; taking
   back and reading need none.
3. What is asked of another counts in the loop guard, a question of the target's too. The result does not: it is what
   was asked for, and who then begins another task does so by itself.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from broker.actors.agentdocs import present, read_agent
from broker.actors.calls import agent_stream
from broker.actors.once import Once
from broker.actors.pairdocs import permission, tell_stopped
from broker.actors.push import RemovePush
from broker.actors.receipts import Receipts, Stopped
from broker.actors.record import Index, RecordActor, Told
from broker.config import Network
from broker.core import task as core
from broker.core.agreement import DAY_MS, pair_key
from broker.core.conversation import Due
from broker.core.loops import Receipt, Trace
from broker.core.machine import Now
from broker.core.task import Change, TaskRow
from broker.store.port import Put, Store
from broker.store.stored import read_row
from broker.wire.refusals import Refusal, refuse
from broker.wire.task import OPEN, State, Status, View

NOT_AGREED: Final = refuse(
    "agreement_required",
    "you have no agreement with this agent that allows tasks; ask for one with request_contact",
    scope="task",
)


class TaskMark(msgspec.Struct, frozen=True):
    """By what a task is found (kind "taskmark", id = `<task_id>.<revision>`): a new one with each change, so that
    the last one changed is the newest."""

    task_id: str
    context_id: str
    state: State
    updated_at: int


class Do(msgspec.Struct, frozen=True):
    """A command of the core, and by whom. Answer: View, or a Refusal."""

    command: core.Begin | core.Add | core.Report | core.Finish | core.Cancel
    by: str
    once: Once | None = None


class Forget(msgspec.Struct, frozen=True):
    """Let a finished task go: newer ones need its room. Answer: None."""


def task_stream(task_id: str) -> str:
    """The stream of what becomes of a task."""
    return f"task:{task_id}"


def lane_name(requester: str, target: str) -> str:
    """The tasks from one to another."""
    return f"{requester}>{target}"


async def read_task(store: Store, task_id: str) -> TaskRow | None:
    """A task as stored, or None."""
    return await read_row(store, TaskRow, "task", task_id)


class TaskActor(RecordActor[TaskRow]):
    """One task."""

    kind = "task"
    type = TaskRow

    def __init__(
        self,
        key: str,
        *,
        settings: Network,
        receipts: Receipts,
        rouse: Callable[[str, str, Any], None],
        **parts: Any,
    ) -> None:
        """`rouse`: the house's, by which the pushes of a task that is forgotten end."""
        super().__init__(key, **parts)
        self._rouse = rouse
        self._keep_ms = round(settings.task_days * DAY_MS)
        self._receipts = receipts

    def index_of(self, row: TaskRow) -> Index:
        return (("due", row.due),)

    async def do(self, command: Any) -> Any:
        match command:
            case Do():
                return await self._act(command)
            case Due():
                return await self._due()
            case Forget():
                row = self.row
                return None if row is None or row.state in OPEN else await self._forget(row)
        raise TypeError(type(command))

    async def _act(self, wanted: Do) -> Any:
        command, row = wanted.command, self.row
        about = command.row if isinstance(command, core.Begin) else row
        if about is None or wanted.by not in (about.requester, about.target):
            return core.missing()
        asks = isinstance(command, core.Begin | core.Add | core.Cancel)
        if wanted.by != (about.requester if asks else about.target):
            whose = "the one who gave it" if asks else "the one to whom it was given"
            return refuse("not_a_party", f"of the task's two agents this is for {whose}")
        now = Now(self.clock.now_ms(), self.clock.monotonic())
        if not isinstance(command, core.Cancel) and not await self._agreed(about, now.wall_ms):
            return NOT_AGREED
        change = core.decide(row, command, now.wall_ms, self._keep_ms)
        if isinstance(change, Refusal):
            return change
        if isinstance(command, core.Begin | core.Add):
            trace = self._judge(about, command.said.message_id, now)
            if isinstance(trace, Stopped):
                events = tell_stopped(trace, about.requester, about.target, now.wall_ms)
                return await self.write(row, trace.refusal, events=events)
            change = msgspec.structs.replace(change, row=msgspec.structs.replace(change.row, trace=trace))
        answer = await self._commit(change, wanted.by, wanted.once)
        if not isinstance(answer, Refusal):
            self._note(command, change.row, now)
        return answer

    async def _agreed(self, about: TaskRow, now: int) -> bool:
        """Whether the two may deal with each other in tasks now."""
        agreed = await permission(self.store, about.requester, about.target, "task", now)
        return agreed is not None and await present(self.store, about.requester, now) is not None

    def _judge(self, about: TaskRow, message_id: str, now: Now) -> Trace | Stopped:
        replied = None
        if self.row is not None and self.row.state == "input-required":
            replied = Receipt(about.target, now.mono, self.row.trace)
        return self._receipts.judge(
            message_id,
            sender=about.requester,
            to=about.target,
            place=pair_key(about.requester, about.target),
            now=now,
            replied=replied,
            agents=(about.requester, about.target),
        )

    def _note(self, command: Any, row: TaskRow, now: Now) -> None:
        """Who has heard something, for the loop guard."""
        both, place = (row.requester, row.target), pair_key(row.requester, row.target)
        if isinstance(command, core.Begin | core.Add):
            self._receipts.heard(row.target, row.requester, row.trace, now, place=place, agents=both)
        elif row.state == "input-required":
            self._receipts.heard(row.requester, row.target, row.trace, now, place=place, agents=both)

    async def _commit(self, change: Change, by: str, once: Once | None) -> Any:
        row = change.row
        told: dict[str, Any] = {"what": change.what, "by": by, "task": core.summary(row)}
        if change.parts:
            told["parts"] = change.parts
        events = [
            Told(
                task_stream(row.task_id),
                "task_status" if isinstance(each, Status) else "task_artifact",
                each,
            )
            for each in change.events
        ]
        events += [Told(agent_stream(each), "task", told) for each in (row.target, row.requester)]
        puts = (put_mark(row), *(() if self.row is None else (_drop_mark(self.row),)))
        view: View = core.view(row)
        return await self.write(row, view, once=once, puts=puts, events=events)

    async def _due(self) -> Any:
        row, now = self.row, self.clock.now_ms()
        if row is None or (now < row.due and (row.state not in OPEN or not await self._is_alone(row, now))):
            return None
        if row.state not in OPEN:
            return await self._forget(row)
        change = core.decide(row, core.Lapse(), now, self._keep_ms)
        assert isinstance(change, Change)  # an open task may always lapse
        answer = await self._commit(change, "network", None)
        return answer if isinstance(answer, Refusal) else None

    async def _is_alone(self, row: TaskRow, now: int) -> bool:
        """Whether one of the two is gone: nobody answers it then, or nobody waits for that."""
        both = [await read_agent(self.store, each, now) for each in (row.requester, row.target)]
        return None in both

    async def _forget(self, row: TaskRow) -> Any:
        pushes = await self.store.find("push", "stream", task_stream(self.key))
        answer = await self.write(None, None, puts=(_drop_mark(row),))
        if not isinstance(answer, Refusal):
            for each in pushes:
                self._rouse("push", each.id, RemovePush(None))
        return answer


def put_mark(row: TaskRow) -> Put:
    """Found by each side, by each side and its state, in its lane, and there among the open or the finished."""
    lane = lane_name(row.requester, row.target)
    index: tuple[tuple[str, str | int], ...] = (
        ("in", row.target),
        ("out", row.requester),
        (f"in.{row.state}", row.target),
        (f"out.{row.state}", row.requester),
        ("lane", lane),
        ("open" if row.state in OPEN else "done", lane),
    )
    mark = TaskMark(row.task_id, row.context_id, row.state, row.updated_at)
    return Put("taskmark", _mark_id(row), 0, msgspec.json.encode(mark), index)


def _drop_mark(row: TaskRow) -> Put:
    return Put("taskmark", _mark_id(row), 1, None)


def _mark_id(row: TaskRow) -> str:
    return f"{row.task_id}.{row.revision}"
