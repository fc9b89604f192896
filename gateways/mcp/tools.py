"""The registry's tools as offers: arguments to the broker, its results and refusals back.

1. Arguments pass through as they were written; the registry judges them.
2. A tool that has a way without waiting (Broker.begin) goes it where its arguments are plain: no actor's task is woken.
3. Who lacks a token or a scope is denied before a byte is streamed: the exchange's status says so (401, 403).
4. A tool that only reads may ask for a code, an id or a number that it lacks. What a key signs is never asked for.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import trio

from broker.app import Again, Caller, Tool
from broker.wire import canonical
from broker.wire.refusals import Refusal
from gateways import render
from gateways.mcp import asking, listing, results
from gateways.mcp.surface import Ask, Calling, Denied, Needs, Outcome, ToolOffer, wants_token

ASKABLE: Final[dict[str, dict[str, Any]]] = {
    "code": {
        "type": "string",
        "title": "Desk",
        "description": "The desk's code: four capital letters",
        "minLength": 4,
        "maxLength": 4,
    },
    "conv": {
        "type": "string",
        "title": "Conversation",
        "description": "The conversation's id: 16 lowercase hex characters",
        "minLength": 16,
        "maxLength": 16,
    },
    "n": {
        "type": "integer",
        "title": "Number",
        "description": "The envelope's number in the conversation, from 0",
        "minimum": 0,
    },
}
"""What a person knows by heart or has on the screen, and how it is asked for."""
BESIDE: Final = {"network": frozenset({"wait_for_events"}), "arena": frozenset({"get_agent"})}
"""Tools that a face lists beside its own: an agent that is sent something must be able to hear of it; a player sees its
accounts."""
_KEY: Final = "arguments"


def broker_tools(broker: Calling, face: str | None) -> dict[str, ToolOffer]:
    """The registry's tools of one face (None: all but the operators'), in the registry's order."""
    return {tool.name: _offer(broker, tool) for tool in broker.tools.values() if _is_listed(tool, face)}


def _is_listed(tool: Tool, face: str | None) -> bool:
    if face is None:
        return tool.face != "operator"
    return tool.face == face or (tool.face != "operator" and tool.name in BESIDE.get(face, ()))


def _offer(broker: Calling, tool: Tool) -> ToolOffer:
    descriptor = listing.describe(tool)
    waits = tool.streams or "wait_ms" in descriptor["inputSchema"]["properties"]
    required = frozenset(descriptor["inputSchema"].get("required", ()))
    asks = required if tool.read_only and required <= ASKABLE.keys() else frozenset()
    call = _caller_of(broker, tool)
    return ToolOffer(
        descriptor=descriptor,
        call=_asking(tool.name, call, tuple(sorted(asks))) if asks else call,
        waits=waits,
        asks=asks,
    )


def _caller_of(broker: Calling, tool: Tool) -> Callable[[Ask, bytes], Awaitable[Outcome]]:
    begin = _beginner_of(broker, tool)

    async def call(ask: Ask, arguments: bytes) -> Outcome:
        told = 0

        async def tell(event: bytes) -> None:
            """One ring as it comes: pure data, marked, so that a model can't take it for our words."""
            nonlocal told
            told += 1
            await ask.progress(told, results.untrusted(event).decode())

        streams = tool.streams and ask.notify is not None and ask.progress_token is not None
        outcome = await begin(ask.caller, arguments) if begin is not None else None
        if outcome is None:
            outcome = await broker.call(ask.caller, tool.name, arguments, progress=tell if streams else None)
        if isinstance(outcome, Refusal):
            return Denied(outcome) if wants_token(outcome) else render.tool_result(outcome, tool.name)
        return results.tool_result(tool.name, outcome)

    return call


def _beginner_of(broker: Calling, tool: Tool) -> Callable[[Caller, bytes], Awaitable[Any]] | None:
    """The tool's way without waiting, if it has one; it gives None where the tool has to be called after all."""
    quick = tool.quick
    if quick is None:
        return None
    size, decode = quick.size, msgspec.json.Decoder(quick.type).decode

    async def begin(caller: Caller, arguments: bytes) -> Any:
        try:
            given = decode(arguments)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        if size(given) != len(arguments) or not arguments.isascii():
            return (
                None  # something else stands there, or it is written in another way: the registry judges it
            )
        outcomes: list[Any] = []
        ended = trio.Event()

        def then(outcome: Any) -> None:
            outcomes.append(outcome)
            ended.set()

        if not broker.begin(caller, tool, given, then):
            return None
        await ended.wait()
        return None if isinstance(outcomes[0], Again) else outcomes[0]

    return begin


def _asking(
    name: str, call: Callable[[Ask, bytes], Awaitable[Outcome]], asks: tuple[str, ...]
) -> Callable[[Ask, bytes], Awaitable[Outcome]]:
    """The same call, which first has the client's user asked for what is missing, where that can be done.

    Declined or dismissed, the call goes on without: its refusal then says what is missing.
    """

    async def ask_first(ask: Ask, arguments: bytes) -> Outcome:
        members = canonical.members(arguments) if asking.can_ask(ask) else None
        if members is None or isinstance(members, Refusal):
            return await call(ask, arguments)
        lacking = {each: ASKABLE[each] for each in asks if each not in members}
        if not lacking:
            return await call(ask, arguments)
        if not asking.answered(ask, _KEY):
            return Needs({_KEY: asking.form(f"{name} needs {' and '.join(lacking)}.", lacking)})
        given = asking.accepted(ask, _KEY) or {}
        filled = {**members, **{each: given[each] for each in lacking if each in given}}
        return await call(ask, msgspec.json.encode(filled))

    return ask_first
