"""From a method and its params to its result: one table, the same for both eras.

1. A handler is keyed by its method; whether a revision has the method stands in revisions.METHODS.
2. Malformed members of a method are -32602; what a tool finds wrong with its arguments is the tool's result.
3. An unexpected exception becomes -32603 with an incident's number, here and nowhere else.
"""

import importlib.metadata
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from broker.wire import canonical
from broker.wire.refusals import Refusal
from gateways import jsonrpc, render
from gateways.mcp import asking, completion, headers, subscriptions
from gateways.mcp.catalogue import Catalogue
from gateways.mcp.listing import portable
from gateways.mcp.lists import Lists
from gateways.mcp.revisions import (
    LEGACY,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    METHODS,
    MODERN,
    SERVER_INFO_KEY,
    SUPPORTED,
    Fault,
    row_of,
)
from gateways.mcp.sealed import Seal
from gateways.mcp.sessions import Session
from gateways.mcp.surface import Ask, Denied, Missing, Needs, Outcome, Result, Surface, ToolOffer

SERVER_INFO: Final = {
    "name": "turret",
    "title": "Turret",
    "version": importlib.metadata.version("turret"),
}
Params = dict[str, msgspec.Raw]
Handler = Callable[[Ask, Params], Awaitable[Outcome]]


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

    def __init__(self, surface: Surface, seal: Seal | None = None, *, portable_names: bool = False) -> None:
        """`seal` closes state that travels through clients. `portable_names`: list names without dots.

        Raises ValueError for a tool whose `x-mcp-header` no client may take.
        """
        self._surface = surface
        self._seal = seal or Seal()
        self._shown: Callable[[str], str] = portable if portable_names else str
        self._catalogue_of: tuple[int, Catalogue] | None = None
        self._handlers: Mapping[str, Handler] = {
            "ping": _ping,
            "server/discover": self._discover,
            "tools/list": partial(self._list, "tools/list"),
            "tools/call": self._call_tool,
            "resources/list": partial(self._list, "resources/list"),
            "resources/templates/list": partial(self._list, "resources/templates/list"),
            "resources/read": self._read,
            **self._watching(),
            **self._completing(),
            "prompts/list": partial(self._list, "prompts/list"),
            "prompts/get": self._get_prompt,
            **({"logging/setLevel": _set_level} if surface.logs else {}),
        }
        self._catalogue()

    @property
    def lists(self) -> Lists | None:
        """How changes of what is listed are told of."""
        return self._surface.lists

    def waits(self, method: str, params: Params, session: Session | None = None) -> bool:
        """Whether the request may last, so that it streams, is watched and can be cancelled.

        In a session it may also last because the client is asked for what is missing.
        """
        if method in METHODS and METHODS[method].streams:
            return method in self._handlers
        if method != "tools/call" or "name" not in params:
            return False
        offer = self._tool(value_of(params["name"]))
        if offer is None or offer.waits or not offer.asks:
            return offer is not None and offer.waits
        return session is not None and asking.takes_forms(session.capabilities) and _lacks(offer, params)

    def check_mirrored(self, head: headers.Headers, method: str, params: Params) -> Fault | None:
        """2026-07-28: whether the headers that repeat a tool's arguments say what the arguments do."""
        mirrors = self._catalogue().mirrors
        if not mirrors or method != "tools/call" or "name" not in params:
            return None
        name = value_of(params["name"])
        wanted = mirrors.get(name) if isinstance(name, str) else None
        if wanted is None:
            return None
        return headers.check_mirrors(head, wanted, value_of(params.get("arguments", msgspec.Raw(b"{}"))))

    async def answer(self, ask: Ask, method: str, params: Params) -> Result:
        """The method's result in the form of the ask's revision, or a Fault. Raises nothing but Cancelled.

        Cancelling ends the wait for the answer; a command that the broker has already is carried out.
        """
        row = row_of(method, ask.revision)
        if isinstance(row, Fault):
            return row
        handler = self._handlers.get(method)
        if handler is None:
            return Fault(jsonrpc.METHOD_NOT_FOUND, f"method not found: {method[:64]}")

        async def work(ask: Ask) -> Outcome:
            return await handler(ask, params)

        try:
            outcome = (
                await asking.carry_out(self._seal, ask, method, params, work)
                if row.asks
                else await handler(ask, params)
            )
        except Exception as fault:
            number = render.incident(fault, f"mcp {method}")
            return Fault(jsonrpc.INTERNAL_ERROR, "internal error", {"incident": number})
        assert not isinstance(outcome, Needs)  # only what asks needs anything
        if isinstance(outcome, Fault | Denied) or ask.revision != MODERN:
            return outcome
        outcome.setdefault("resultType", "complete")
        outcome["_meta"] = {**outcome.get("_meta", {}), SERVER_INFO_KEY: SERVER_INFO}
        if row.hints is not None and outcome["resultType"] == "complete":
            outcome["ttlMs"], outcome["cacheScope"] = row.hints.ttl_ms, row.hints.scope
        return outcome

    def initialize(self, params: Params) -> dict[str, Any] | Fault:
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

    def _catalogue(self) -> Catalogue:
        """What is offered now, as it is listed; made anew after it has changed."""
        version = self._surface.lists.version if self._surface.lists is not None else 0
        if self._catalogue_of is None or self._catalogue_of[0] != version:
            self._catalogue_of = version, Catalogue.of(self._surface, self._shown)
        return self._catalogue_of[1]

    def _watching(self) -> dict[str, Handler]:
        """The methods of a surface that has something to tell of: resources, or lists that change."""
        surface = self._surface
        watch = surface.watch

        async def listen(ask: Ask, params: Params) -> Outcome:
            wanted = value_of(params["notifications"]) if "notifications" in params else None
            return await subscriptions.listen(watch, surface.lists, ask, wanted)

        async def subscribe(ask: Ask, params: Params) -> Outcome:
            assert watch is not None  # else it is not among the methods
            uri = _uri(params)
            return uri if isinstance(uri, Fault) else await subscriptions.subscribe(watch, ask, uri)

        async def unsubscribe(ask: Ask, params: Params) -> Outcome:
            uri = _uri(params)
            return uri if isinstance(uri, Fault) else subscriptions.unsubscribe(ask, uri)

        found: dict[str, Handler] = {}
        if watch is not None:
            found.update({"resources/subscribe": subscribe, "resources/unsubscribe": unsubscribe})
        if watch is not None or surface.lists is not None:
            found["subscriptions/listen"] = listen
        return found

    def _completing(self) -> dict[str, Handler]:
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
        surface = self._surface
        declared: dict[str, Any] = {"tools": {}}
        if surface.read is not None:
            declared["resources"] = {"subscribe": True} if surface.watch is not None else {}
        if surface.prompts:
            declared["prompts"] = {}
        if surface.complete is not None:
            declared["completions"] = {}
        if surface.logs:
            declared["logging"] = {}
        for kind in surface.lists.kinds if surface.lists is not None else ():
            declared.setdefault(kind, {})["listChanged"] = True
        return declared

    async def _discover(self, ask: Ask, params: Params) -> Outcome:
        return {
            "supportedVersions": list(SUPPORTED),
            "capabilities": self._capabilities(),
            "instructions": self._surface.instructions,
        }

    async def _list(self, method: str, ask: Ask, params: Params) -> Outcome:
        cursor = value_of(params["cursor"]) if "cursor" in params else None
        if cursor is not None and not isinstance(cursor, str):
            return Fault(jsonrpc.INVALID_PARAMS, "cursor must be a string")
        return self._catalogue().pages[method].page(cursor)

    def _tool(self, name: Any) -> ToolOffer | None:
        return self._catalogue().tools.get(name) if isinstance(name, str) else None

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
        return await offer.call(ask, arguments)

    async def _read(self, ask: Ask, params: Params) -> Outcome:
        uri = _uri(params)
        if isinstance(uri, Fault):
            return uri
        found = await self._surface.read(ask, uri) if self._surface.read is not None else Missing(uri)
        if isinstance(found, Missing):
            return subscriptions.missing(found.uri, ask.revision)
        return {"contents": found} if isinstance(found, list) else found

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


async def _set_level(ask: Ask, params: Params) -> Outcome:
    level = value_of(params["level"]) if "level" in params else None
    if level not in LOG_LEVELS:
        return Fault(jsonrpc.INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
    if ask.session is None:
        return Fault(jsonrpc.INVALID_REQUEST, "a level is kept in a session: initialize first")
    ask.session.log_level = level
    return {}


def _lacks(offer: ToolOffer, params: Params) -> bool:
    """Whether an argument is missing that the tool would ask for."""
    arguments = canonical.members(bytes(params.get("arguments", b"{}")))
    return not isinstance(arguments, Refusal) and not offer.asks <= arguments.keys()


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
