"""What one face offers: tools, resources and prompts, as values that dispatch knows how to serve.

1. The broker's registry fills a surface; a test may build its own. Dispatch knows surfaces alone.
2. What is offered answers with a result in MCP's form, with a Fault, or with what it still Needs; the broker's
   refusals are results, but for those that a token would mend (Denied).
"""

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import msgspec
import trio

from broker.app import Caller, Then, Tool
from broker.wire.refusals import Refusal
from gateways import jsonrpc
from gateways.mcp.lists import Lists
from gateways.mcp.revisions import LOG_LEVELS, Fault
from gateways.mcp.sessions import Session


class Calling(Protocol):
    """The broker's first verb, with and without waiting, and its tools."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...

    def begin(self, caller: Caller, tool: Tool, arguments: Any, then: Then) -> bool: ...

    async def call(
        self,
        caller: Caller,
        name: str,
        params: bytes,
        *,
        progress: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> object: ...


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request under way. `notify` puts a message on its own stream; None where the client takes none.

    `ending` is set when the process is about to stop, `left` when the client was seen to leave.
    """

    id: jsonrpc.Id | None = None
    caller: Caller
    revision: str
    meta: dict[str, Any]
    session: Session | None = None
    notify: Callable[[bytes], Awaitable[None]] | None = None
    ending: trio.Event = msgspec.field(default_factory=trio.Event)
    left: trio.Event = msgspec.field(default_factory=trio.Event)
    capabilities: Mapping[str, Any] = {}
    """What the client says it can do: in the handshake, or with the request."""
    answers: Mapping[str, Any] = {}
    """The client's answers to what was needed, by the key of the question; their form is checked."""
    state: str | None = None
    """What came with the question, as it was given."""
    log_level: str | None = None
    """The least severe level that the client wants to be told of; None: nothing."""

    @property
    def progress_token(self) -> str | int | None:
        """What the client wants its progress notifications to carry; None: it wants none."""
        token = self.meta.get("progressToken")
        return token if type(token) in (str, int) else None

    async def progress(self, progress: float, message: str, total: float | None = None) -> None:
        """Tell the client how far it is. `progress` grows. Does nothing where the client can't be told."""
        if self.notify is None or self.progress_token is None:
            await trio.lowlevel.checkpoint()
            return
        params: dict[str, Any] = {
            "progressToken": self.progress_token,
            "progress": progress,
            "message": message,
        }
        if total is not None:
            params["total"] = total
        await self.notify(jsonrpc.notification("notifications/progress", params))

    async def log(self, level: str, data: Any, logger: str = "turret") -> None:
        """Tell the client what happens, where it wants to hear of that level. `data`: anything for JSON, no secret."""
        wanted = self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
        if self.notify is None or not wanted:
            await trio.lowlevel.checkpoint()
            return
        params = {"level": level, "logger": logger, "data": data}
        await self.notify(jsonrpc.notification("notifications/message", params))


class Question(msgspec.Struct, frozen=True):
    """What only the client can tell: elicitation/create, sampling/createMessage or roots/list."""

    method: str
    params: dict[str, Any] = {}


class Needs(msgspec.Struct, frozen=True):
    """In place of a result: questions that the client must answer first, by keys of ours. Nothing was done yet.

    The same work is then done again, with `answers` and with `state` as it is here. State comes back for the
    same caller and the same request alone, and for a short time; the client can read it and can't change it.
    """

    questions: Mapping[str, Question]
    state: str | None = None


class Denied(msgspec.Struct, frozen=True):
    """In place of a result: who asks lacks a token, or a scope of it. The exchange's status says so, with the way to
    one."""

    refusal: Refusal


Result = dict[str, Any] | Fault | Denied
Outcome = Result | Needs


def wants_token(refusal: Refusal) -> bool:
    """Whether a token would do: the refusal then names its scope. What a key's proof would do names none."""
    return refusal.code in ("unauthenticated", "insufficient_scope") and "scope" in refusal.detail


@runtime_checkable
class Updates(Protocol):
    """Changes of one thing; an async context manager."""

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def changed(self) -> bool:
        """Wait until it has changed; False when there is nothing more to wait for."""
        ...


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `waits`: a call may last; it can then stream, be cancelled, and end with its client.

    `asks`: the arguments that it asks the client for where they are missing.
    """

    descriptor: dict[str, Any]
    call: Callable[[Ask, bytes], Awaitable[Outcome]]
    waits: bool = False
    asks: frozenset[str] = frozenset()


class PromptOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt. `get` takes checked arguments (all required ones, no others)."""

    descriptor: dict[str, Any]
    get: Callable[[Ask, dict[str, str]], Awaitable[Outcome]]


class Missing(msgspec.Struct, frozen=True):
    """No such resource; each era says it with a code of its own."""

    uri: str


Watch = Callable[[Ask, str], Awaitable[Updates | Missing | Refusal]]
"""Opens the changes of a resource; enter what it gives."""


Complete = Callable[[Ask, str, str], Awaitable[list[str]]]
"""Suggestions for an argument: its name, and what is typed so far."""


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """What one face offers. `lists`: how changes of what is offered are told; None: nothing changes.

    `logs`: whether what is offered calls Ask.log.
    """

    tools: Mapping[str, ToolOffer]
    prompts: Mapping[str, PromptOffer] = {}
    resources: list[dict[str, Any]] = []
    templates: list[dict[str, Any]] = []
    read: Callable[[Ask, str], Awaitable[list[dict[str, Any]] | Missing | Fault | Needs | Denied]] | None = (
        None
    )
    watch: Watch | None = None
    complete: Complete | None = None
    lists: Lists | None = None
    logs: bool = False
    instructions: str = ""
