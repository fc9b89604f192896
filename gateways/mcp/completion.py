"""completion/complete: codes of desks that are online, and the caller's own conversations.

1. It suggests only what the broker's tools would tell this caller anyway.
2. An argument that nothing is known of has no suggestions; an unknown prompt or template is -32602.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from broker.wire.refusals import Refusal
from gateways import jsonrpc
from gateways.mcp.revisions import Fault
from gateways.mcp.surface import Ask, Calling, Complete, Result, Surface

MOST: Final = 100
"""Values of one answer, as the protocol has it."""
_CODES: Final = frozenset({"code", "from_code", "to_code"})


async def complete(surface: Surface, source: Complete, ask: Ask, ref: Any, argument: Any) -> Result:
    """Answer one completion/complete."""
    names = _arguments_of(surface, ref)
    if isinstance(names, Fault):
        return names
    if not isinstance(argument, dict) or not all(
        isinstance(argument.get(member), str) for member in ("name", "value")
    ):
        return Fault(jsonrpc.INVALID_PARAMS, "argument must be {name, value}, both strings")
    values = await source(ask, argument["name"], argument["value"]) if argument["name"] in names else []
    return {"completion": {"values": values[:MOST], "total": len(values), "hasMore": len(values) > MOST}}


def completer(broker: Calling) -> Complete:
    """The wire's suggestions, by an argument's name."""

    async def suggest(ask: Ask, name: str, prefix: str) -> list[str]:
        if name in _CODES:
            desks = await _ask(broker, ask, "presence", {})
            values = [code for code, online in desks.get("desks", {}).items() if online]
        elif name == "conv" and ask.caller.pk is not None:
            listed = await _ask(broker, ask, "list_convs", {"limit": 500})
            values = [each["conv"] for each in listed.get("convs", [])]
        else:
            values = []
        return sorted(each for each in values if each.startswith(prefix))

    return suggest


async def _ask(broker: Calling, ask: Ask, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's result; a refusal suggests nothing."""
    answer = await broker.call(ask.caller, name, msgspec.json.encode(params))
    if isinstance(answer, Refusal):
        return {}
    found: dict[str, Any] = msgspec.to_builtins(answer)
    return found


def _arguments_of(surface: Surface, ref: Any) -> set[str] | Fault:
    """The argument names of what a ref names."""
    kind = ref.get("type") if isinstance(ref, dict) else None
    if kind == "ref/prompt" and isinstance(name := ref.get("name"), str) and name in surface.prompts:
        return {each["name"] for each in surface.prompts[name].descriptor.get("arguments", [])}
    if kind == "ref/resource" and isinstance(uri := ref.get("uri"), str):
        for template in surface.templates:
            if template["uriTemplate"] == uri:
                return {part.partition("}")[0] for part in uri.split("{")[1:]}
    return Fault(jsonrpc.INVALID_PARAMS, "ref must name one of our prompts or resource templates")
