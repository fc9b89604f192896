"""What one face offers: tools, resources and prompts, as values that dispatch knows how to serve.

1. The broker's registry fills a surface; a test may build its own. Dispatch knows surfaces alone.
2. A tool answers with a result in MCP's form, or with a Fault; the broker's refusals are results.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import msgspec
import trio

from broker.app import Caller, Tool
from broker.wire.refusals import Refusal
from gateways import jsonrpc, render
from gateways.mcp import listing, results
from gateways.mcp.revisions import Fault
from gateways.mcp.sessions import Session


class Calling(Protocol):
    """The broker's first verb, and its tools."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...

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

    `ending` is set when the process is about to stop.
    """

    id: jsonrpc.Id | None = None
    caller: Caller
    revision: str
    meta: dict[str, Any]
    session: Session | None = None
    notify: Callable[[bytes], Awaitable[None]] | None = None
    ending: trio.Event = msgspec.field(default_factory=trio.Event)

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


Outcome = dict[str, Any] | Fault


@runtime_checkable
class Updates(Protocol):
    """Changes of one resource; an async context manager."""

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def changed(self) -> bool:
        """Wait until the resource has changed; False when there is nothing more to wait for."""
        ...


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `waits`: a call may last; it can then stream, be cancelled, and end with its client."""

    descriptor: dict[str, Any]
    call: Callable[[Ask, bytes], Awaitable[Outcome]]
    waits: bool = False


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
    """What one face offers."""

    tools: Mapping[str, ToolOffer]
    prompts: Mapping[str, PromptOffer] = {}
    resources: list[dict[str, Any]] = []
    templates: list[dict[str, Any]] = []
    read: Callable[[Ask, str], Awaitable[list[dict[str, Any]] | Missing | Fault]] | None = None
    watch: Watch | None = None
    complete: Complete | None = None
    instructions: str = ""


def broker_tools(broker: Calling, face: str | None) -> dict[str, ToolOffer]:
    """The registry's tools of one face (None: all but the operators'), in the registry's order."""
    return {
        tool.name: _offer(broker, tool)
        for tool in broker.tools.values()
        if (tool.face == face if face is not None else tool.face != "operator")
    }


def _offer(broker: Calling, tool: Tool) -> ToolOffer:
    descriptor = listing.describe(tool)
    waits = "wait_ms" in descriptor["inputSchema"]["properties"]
    return ToolOffer(descriptor=descriptor, call=_caller_of(broker, tool), waits=waits)


def _caller_of(broker: Calling, tool: Tool) -> Callable[[Ask, bytes], Awaitable[Outcome]]:
    async def call(ask: Ask, arguments: bytes) -> Outcome:
        told = 0

        async def tell(event: bytes) -> None:
            """One ring as it comes: pure data, marked, so that a model can't take it for our words."""
            nonlocal told
            told += 1
            await ask.progress(told, results.untrusted(event).decode())

        streams = tool.streams and ask.notify is not None and ask.progress_token is not None
        outcome = await broker.call(ask.caller, tool.name, arguments, progress=tell if streams else None)
        if isinstance(outcome, Refusal):
            return render.tool_result(outcome)
        return results.tool_result(tool.name, outcome)

    return call
