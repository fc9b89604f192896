"""From a method and its params to its result: one table, the same for both eras.

1. A handler is keyed by its method; whether a revision has the method stands in revisions.METHODS.
2. Malformed members of a method are -32602; what a tool finds wrong with its arguments is the tool's result.
3. An unexpected exception becomes -32603 with an incident's number, here and nowhere else.
"""

import importlib.metadata
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from broker.wire import canonical
from broker.wire.refusals import Refusal
from gateways import jsonrpc, render
from gateways.mcp import completion, subscriptions
from gateways.mcp.listing import Pages
from gateways.mcp.revisions import (
    LEGACY,
    LOG_LEVEL_KEY,
    METHODS,
    MODERN,
    SERVER_INFO_KEY,
    SUPPORTED,
    Fault,
    row_of,
)
from gateways.mcp.surface import Ask, Missing, Outcome, Surface

SERVER_INFO: Final = {
    "name": "turret",
    "title": "Turret",
    "version": importlib.metadata.version("turret"),
}
LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
Params = dict[str, msgspec.Raw]


def read_params(text: bytes) -> Params | Fault:
    """The members of params, one level deep. -32602 for duplicates; the frame's grammar is known good."""
    members = canonical.members(text)
    if isinstance(members, Refusal):
        return Fault(jsonrpc.INVALID_PARAMS, f"params: {members.message}")
    return members


def read_meta(params: Params) -> dict[str, Any] | Fault:
    """`_meta`, decoded; empty when absent."""
    if "_meta" not in params:
        return {}
    meta = value_of(params["_meta"])
    if not isinstance(meta, dict):
        return Fault(jsonrpc.INVALID_PARAMS, "params._meta must be an object")
    if "progressToken" in meta and type(meta["progressToken"]) not in (str, int):
        return Fault(jsonrpc.INVALID_PARAMS, "progressToken must be a string or an integer")
    if LOG_LEVEL_KEY in meta and meta[LOG_LEVEL_KEY] not in LOG_LEVELS:
        return Fault(jsonrpc.INVALID_PARAMS, f"{LOG_LEVEL_KEY} must be one of {', '.join(LOG_LEVELS)}")
    return meta


def value_of(raw: msgspec.Raw) -> Any:
    """The value behind a member, or None for what is no value at all."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


class Dispatch:
    """One face's methods. Made once; holds no state of any client."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._aliases = {name.replace(".", "_"): name for name in surface.tools}
        self._pages = {
            "tools/list": Pages("tools", [offer.descriptor for offer in surface.tools.values()]),
            "resources/list": Pages("resources", surface.resources),
            "resources/templates/list": Pages("resourceTemplates", surface.templates),
            "prompts/list": Pages("prompts", [offer.descriptor for offer in surface.prompts.values()]),
        }
        self._handlers: Mapping[str, Callable[[Ask, Params], Awaitable[Outcome]]] = {
            "ping": _ping,
            "server/discover": self._discover,
            "tools/list": self._lister("tools/list"),
            "tools/call": self._call_tool,
            "resources/list": self._lister("resources/list"),
            "resources/templates/list": self._lister("resources/templates/list"),
            "resources/read": self._read,
            **self._watching(),
            **self._completing(),
            "prompts/list": self._lister("prompts/list"),
            "prompts/get": self._get_prompt,
        }

    def waits(self, method: str, params: Params) -> bool:
        """Whether the request may last, so that it streams, is watched and can be cancelled."""
        if method in METHODS and METHODS[method].streams:
            return self._surface.watch is not None
        if method != "tools/call" or "name" not in params:
            return False
        offer = self._tool(value_of(params["name"]))
        return offer is not None and offer.waits

    async def answer(self, ask: Ask, method: str, params: Params) -> Outcome:
        """The method's result in the form of the ask's revision, or a Fault. Raises nothing but Cancelled.

        Cancelling ends the wait for the answer; a command that the broker has already is carried out.
        """
        row = row_of(method, ask.revision)
        if isinstance(row, Fault):
            return row
        handler = self._handlers.get(method)
        if handler is None:
            return Fault(jsonrpc.METHOD_NOT_FOUND, f"method not found: {method[:64]}")
        try:
            outcome = await handler(ask, params)
        except Exception as fault:
            number = render.incident(fault, f"mcp {method}")
            return Fault(jsonrpc.INTERNAL_ERROR, "internal error", {"incident": number})
        if isinstance(outcome, Fault) or ask.revision != MODERN:
            return outcome
        outcome.setdefault("resultType", "complete")
        outcome["_meta"] = {**outcome.get("_meta", {}), SERVER_INFO_KEY: SERVER_INFO}
        if row.hints is not None and outcome["resultType"] == "complete":
            outcome["ttlMs"], outcome["cacheScope"] = row.hints.ttl_ms, row.hints.scope
        return outcome

    def initialize(self, params: Params) -> Outcome:
        """The handshake's result: the client's revision where it is ours, else our newest of the era."""
        asked = value_of(params["protocolVersion"]) if "protocolVersion" in params else None
        if not isinstance(asked, str):
            return Fault(jsonrpc.INVALID_PARAMS, "protocolVersion must be a string")
        for name in ("capabilities", "clientInfo"):
            if name in params and not isinstance(value_of(params[name]), dict):
                return Fault(jsonrpc.INVALID_PARAMS, f"{name} must be an object")
        return {
            "protocolVersion": asked if asked in LEGACY else LEGACY[0],
            "capabilities": self._capabilities(),
            "serverInfo": SERVER_INFO,
            "instructions": self._surface.instructions,
        }

    def client_capabilities(self, params: Params) -> dict[str, Any]:
        """What the client of a handshake declared; read after `initialize` took it."""
        declared = value_of(params["capabilities"]) if "capabilities" in params else {}
        return declared if isinstance(declared, dict) else {}

    def _watching(self) -> dict[str, Callable[[Ask, Params], Awaitable[Outcome]]]:
        """The methods of a surface whose resources can be watched."""
        watch = self._surface.watch
        if watch is None:
            return {}

        async def listen(ask: Ask, params: Params) -> Outcome:
            wanted = value_of(params["notifications"]) if "notifications" in params else None
            return await subscriptions.listen(watch, ask, wanted)

        async def subscribe(ask: Ask, params: Params) -> Outcome:
            uri = _uri(params)
            return uri if isinstance(uri, Fault) else await subscriptions.subscribe(watch, ask, uri)

        async def unsubscribe(ask: Ask, params: Params) -> Outcome:
            uri = _uri(params)
            return uri if isinstance(uri, Fault) else subscriptions.unsubscribe(ask, uri)

        return {
            "subscriptions/listen": listen,
            "resources/subscribe": subscribe,
            "resources/unsubscribe": unsubscribe,
        }

    def _completing(self) -> dict[str, Callable[[Ask, Params], Awaitable[Outcome]]]:
        source = self._surface.complete
        if source is None:
            return {}

        async def complete(ask: Ask, params: Params) -> Outcome:
            ref, argument = (
                value_of(params[each]) if each in params else None for each in ("ref", "argument")
            )
            return await completion.complete(self._surface, source, ask, ref, argument)

        return {"completion/complete": complete}

    def _capabilities(self) -> dict[str, Any]:
        """Only what is served: nothing is declared that would then be refused."""
        declared: dict[str, Any] = {"tools": {}}
        if self._surface.read is not None:
            declared["resources"] = {"subscribe": True} if self._surface.watch is not None else {}
        if self._surface.prompts:
            declared["prompts"] = {}
        if self._surface.complete is not None:
            declared["completions"] = {}
        return declared

    async def _discover(self, ask: Ask, params: Params) -> Outcome:
        return {
            "supportedVersions": list(SUPPORTED),
            "capabilities": self._capabilities(),
            "instructions": self._surface.instructions,
        }

    def _lister(self, method: str) -> Callable[[Ask, Params], Awaitable[Outcome]]:
        pages = self._pages[method]

        async def list_page(ask: Ask, params: Params) -> Outcome:
            cursor = value_of(params["cursor"]) if "cursor" in params else None
            if cursor is not None and not isinstance(cursor, str):
                return Fault(jsonrpc.INVALID_PARAMS, "cursor must be a string")
            return pages.page(cursor)

        return list_page

    def _tool(self, name: Any) -> Any:
        if not isinstance(name, str):
            return None
        return self._surface.tools.get(name) or self._surface.tools.get(self._aliases.get(name, ""))

    async def _call_tool(self, ask: Ask, params: Params) -> Outcome:
        name = value_of(params["name"]) if "name" in params else None
        if not isinstance(name, str):
            return Fault(jsonrpc.INVALID_PARAMS, "name must be a string: the tool to call")
        offer = self._tool(name)
        if offer is None:
            return Fault(jsonrpc.INVALID_PARAMS, f"unknown tool: {name[:64]}")
        arguments = bytes(params.get("arguments", b"{}"))
        if arguments == b"null":  # clients write it for a tool without arguments
            arguments = b"{}"
        if not arguments.startswith(b"{"):
            return Fault(jsonrpc.INVALID_PARAMS, "arguments must be an object")
        outcome: Outcome = await offer.call(ask, arguments)
        return outcome

    async def _read(self, ask: Ask, params: Params) -> Outcome:
        uri = _uri(params)
        if isinstance(uri, Fault):
            return uri
        found = await self._surface.read(ask, uri) if self._surface.read is not None else Missing(uri)
        if isinstance(found, Missing):
            return subscriptions.missing(found.uri, ask.revision)
        return found if isinstance(found, Fault) else {"contents": found}

    async def _get_prompt(self, ask: Ask, params: Params) -> Outcome:
        name = value_of(params["name"]) if "name" in params else None
        offer = self._surface.prompts.get(name) if isinstance(name, str) else None
        if offer is None:
            return Fault(jsonrpc.INVALID_PARAMS, f"unknown prompt: {str(name)[:64]}")
        arguments = value_of(params["arguments"]) if "arguments" in params else {}
        wrong = _check_arguments(offer.descriptor, {} if arguments is None else arguments)
        return wrong or await offer.get(ask, arguments or {})


async def _ping(ask: Ask, params: Params) -> Outcome:
    return {}


def _uri(params: Params) -> str | Fault:
    uri = value_of(params["uri"]) if "uri" in params else None
    return uri if isinstance(uri, str) else Fault(jsonrpc.INVALID_PARAMS, "uri must be a string")


def _check_arguments(descriptor: dict[str, Any], arguments: Any) -> Fault | None:
    """Prompt arguments: an object of strings, all required ones, no others."""
    known = {each["name"]: each.get("required", False) for each in descriptor.get("arguments", [])}
    if not isinstance(arguments, dict) or not all(isinstance(each, str) for each in arguments.values()):
        return Fault(jsonrpc.INVALID_PARAMS, "arguments must be an object of strings")
    if missing := [name for name, required in known.items() if required and name not in arguments]:
        return Fault(jsonrpc.INVALID_PARAMS, f"missing argument: {', '.join(missing)}")
    if extra := [name for name in arguments if name not in known]:
        return Fault(jsonrpc.INVALID_PARAMS, f"unknown argument: {extra[0][:64]}")
    return None
