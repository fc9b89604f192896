"""Tasks as an agent's client has them: given to others, and those that others have given it.

    task = await me.tasks.give("ag_…", "a quote for 10 EURUSD, please")
    print(said(await me.tasks.result(task)))

    async for task in me.tasks.given():
        await me.tasks.complete(task, answer_to(said(task)))

What another agent wrote in a task is data, never an instruction. Source: network.md, A2A.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import trio

from broker.wire.task import RESTING, Part, State, View
from gateways.client.answers import Ask, pages, read
from gateways.client.contacts import now
from gateways.client.errors import Missed
from gateways.client.inbox import Events

__all__ = ["Given", "Part", "Tasks", "View", "said"]

KNOWN: Final = 1_000
"""Tasks of which is remembered what was handed out."""


def said(task: View) -> str:
    """The text of what came of a task that is completed; else of what was said last, by either of the two."""
    found = task.artifacts or (task.history[-1:] if task.said is None else (task.said,))
    texts = [part.text for each in found for part in each.parts if isinstance(part.text, str)]
    return "\n".join(texts)


class Tasks:
    """Of one agent: `agent.tasks`. What a method names by a task, it takes by the task's id too.

    All raise Refused, Disconnected, WireFault. After cancelling, a change may have been made; `get` says whether."""

    def __init__(self, ask: Ask, agent_id: str) -> None:
        self._ask = ask
        self._agent_id = agent_id

    async def give(
        self,
        to: str,
        text: str | None = None,
        *,
        parts: Sequence[Part] | None = None,
        context_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> View:
        """Give an agent a task. Raises Refused: agreement_required; quota_exceeded (`reason` tasks: too many wait
        there; loop: two agents have gone on by themselves for too long)."""
        given: dict[str, Any] = {"target_agent_id": to, "text": text, "context_id": context_id}
        return await self._task("send_task", parts, idempotency_key=idempotency_key, **given)

    async def add(self, task: View | str, text: str, *, parts: Sequence[Part] | None = None) -> View:
        """Say more to a task that we gave and that is not over: what it asks for, as a rule."""
        view = await self.get(task)
        to = view.task.target_agent_id
        return await self._task("send_task", parts, task_id=view.task.task_id, target_agent_id=to, text=text)

    async def get(self, task: View | str) -> View:
        """How a task stands now. Raises Refused (not_found)."""
        return await self._task("get_task", None, task_id=_id(task))

    async def result(self, task: View | str) -> View:
        """Wait until a task that we gave is over, or asks for something (state input-required). Cancelling is safe."""
        events = Events(self._ask, await now(self._ask))
        while (view := await self.get(task)).task.state not in RESTING:
            try:
                async for event in events:
                    if _task_of(event.data).get("task_id") == _id(task):
                        break
            except Missed:
                continue
        return view

    async def cancel(self, task: View | str) -> View:
        """Take back a task that we gave. Raises Refused (bad_request) where it is over already."""
        return await self._task("cancel_task", None, task_id=_id(task))

    def given(self, after: str | None = None) -> "Given":
        """The tasks on which we are to act, those that wait first, then as they come."""
        return Given(self._ask, self._agent_id, after)

    async def complete(
        self, task: View | str, text: str = "", *, parts: Sequence[Part] | None = None
    ) -> View:
        """Answer a task that we were given: the text and the parts are its result."""
        return await self._answer(task, "completed", text, parts)

    async def fail(self, task: View | str, why: str) -> View:
        """Say that a task has come to nothing."""
        return await self._answer(task, "failed", why, None)

    async def reject(self, task: View | str, why: str) -> View:
        """Say that we won't do a task."""
        return await self._answer(task, "rejected", why, None)

    async def ask(self, task: View | str, text: str, *, parts: Sequence[Part] | None = None) -> View:
        """Ask who gave us a task for something; the answer is handed out by `given`."""
        return await self._update(task, "input-required", text, parts)

    async def working(self, task: View | str, text: str | None = None) -> View:
        """Say that we work on a task."""
        return await self._update(task, "working", text, None)

    async def waiting(self, *states: State) -> list[View]:
        """The tasks that we were given and that stand so (none named: those on which we are to act), oldest first,
        without what was said."""
        found: list[View] = []
        for state in states or ("submitted", "working"):
            rows = await pages(self._ask, "list_tasks", "tasks", role="target", status=state)
            found += [_read(each) for each in reversed(rows)]
        return sorted(found, key=lambda each: each.task.updated_at)

    async def _answer(self, task: View | str, outcome: str, text: str, parts: Sequence[Part] | None) -> View:
        return await self._task("complete_task", parts, task_id=_id(task), outcome=outcome, text=text)

    async def _update(
        self, task: View | str, status: str, text: str | None, parts: Sequence[Part] | None
    ) -> View:
        return await self._task("update_task", parts, task_id=_id(task), status=status, text=text)

    async def _task(self, tool: str, parts: Sequence[Part] | None, **params: Any) -> View:
        if parts is not None:
            params["parts"] = msgspec.to_builtins(list(parts))
        return _read(await self._ask(tool, **params))


class Given:
    """Tasks on which the agent is to act: `async for task in me.tasks.given()`. Leave it at any time.

    A task comes when it is given, and again when its requester adds to it. One that is over meanwhile is passed over.
    """

    def __init__(self, ask: Ask, agent_id: str, after: str | None) -> None:
        self._ask = ask
        self._tasks = Tasks(ask, agent_id)
        self._agent_id = agent_id
        self._after = after
        self._events: Events | None = None
        self._behind = True
        """Whether they are to be listed before anything else."""
        self._waiting: deque[str] = deque()
        self._known: OrderedDict[str, int] = OrderedDict()
        """Of each: how many messages of its requester's were handed out."""

    def __aiter__(self) -> "Given":
        return self

    async def __anext__(self) -> View:
        """The next one, whole. Cancelling loses none."""
        await trio.lowlevel.checkpoint()
        if self._events is None:
            self._events = Events(self._ask, self._after or await now(self._ask))
        while True:
            if self._behind:
                self._waiting.extend(each.task.task_id for each in await self._tasks.waiting())
                self._behind = False
            while self._waiting:
                task = await self._tasks.get(self._waiting[0])
                self._waiting.popleft()
                if self._is_new(task):
                    return task
            try:
                event = await anext(self._events)
            except Missed:
                self._behind = True
                continue
            task_of = _task_of(event.data) if event.kind == "task" else {}
            if task_of.get("target_agent_id") == self._agent_id and event.data.get("what") in _OURS:
                self._waiting.append(str(task_of.get("task_id")))

    def _is_new(self, task: View) -> bool:
        its = task.task.task_id
        count = sum(each.by == "requester" for each in task.history)
        if task.task.state not in ("submitted", "working") or self._known.get(its, 0) >= count:
            return False
        self._known[its] = count
        self._known.move_to_end(its)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return True


_OURS: Final = frozenset({"submitted", "message"})
"""What leaves it to the target to act."""


def _id(task: View | str) -> str:
    return task if isinstance(task, str) else task.task.task_id


def _task_of(data: dict[str, Any]) -> dict[str, Any]:
    found = data.get("task")
    return found if isinstance(found, dict) else {}


def _read(answer: Any) -> View:
    return read(answer, View)
