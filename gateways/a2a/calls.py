"""One request of A2A, and what all its methods have in common.

A task exists for the one who gave it, at the endpoint of the agent to which it was given; elsewhere it is missing.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from broker.app import Broker, Caller, Delivery
from broker.wire import a2a
from broker.wire.refusals import Refusal
from broker.wire.task import State, View
from gateways.a2a import errors
from gateways.a2a.errors import Fault

T = TypeVar("T")
ALL: Final = 1_000
"""Messages of a task that are all it has: whoever asks for more gets as many as there are."""


class Call(msgspec.Struct, frozen=True):
    """One request: who asks, at whose endpoint, and the Idempotency-Key, if there is one."""

    broker: Broker
    caller: Caller
    agent_id: str
    key: str | None = None

    async def tool(self, name: str, **params: Any) -> Any:
        """What a tool answers, or its Refusal; params that are None are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        return await self.broker.call(self.caller, name, msgspec.json.encode(given))

    async def view(self, name: str, **params: Any) -> View | Refusal:
        """The task that a tool answers with; an answer that is remembered is one too."""
        answer = await self.tool(name, **params)
        return answer if isinstance(answer, View | Refusal) else msgspec.convert(answer, View, strict=False)


Result = dict[str, Any] | Fault | Refusal
Method = Callable[[Call, bytes], Awaitable[Result]]


def read(params: bytes, type: type[T]) -> T | Fault:
    """A method's params by their type."""
    try:
        return a2a.read(params, type)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        return errors.invalid(where.strip("`.") or "params", what)
    except (ValueError, RecursionError):
        return errors.invalid("params", "they can't be read")


async def own(call: Call, task_id: str, history: int | None = None) -> View | Fault | Refusal:
    """A task of the caller's with this agent."""
    if not 0 < len(task_id) <= 64:
        return errors.TASK_NOT_FOUND
    few = None if history is None or history > ALL else history
    view = await call.view("get_task", task_id=task_id, history=few)
    if isinstance(view, Refusal):
        return view
    ours = (view.task.requester_agent_id, view.task.target_agent_id) == (call.caller.agent, call.agent_id)
    return view if ours else errors.TASK_NOT_FOUND


def state_told(event: Delivery) -> State | None:
    """The state that an event of a task's stream tells; None for one that tells none."""
    return msgspec.json.decode(event.params, type=_Told).state if event.kind == "task_status" else None


class _Told(msgspec.Struct):
    state: State
