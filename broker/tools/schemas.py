"""JSON Schemas of params and answers, as clients and model APIs take them: flat, and nothing left open."""

from typing import Any, get_args

import msgspec

from broker.wire.refusals import Refusal


def output_schema(result: Any) -> dict[str, Any]:
    """The result's members, none required, open to a `refusal`: strict clients then accept both outcomes."""
    kinds = [
        kind for kind in (get_args(result) or (result,)) if kind is not Refusal and kind is not type(None)
    ]
    properties: dict[str, Any] = {}
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            properties.update(flat(kind, nulls=True).get("properties", {}))
    properties["refusal"] = {"type": "object", "description": "present when the call was refused"}
    return {"type": "object", "properties": properties}


def flat(hint: Any, *, nulls: bool = False) -> dict[str, Any]:
    """The JSON Schema of a type with every reference inlined (mcp-facts 4.28: model APIs refuse $ref).

    `nulls`: what may be null, or of several kinds, says so. A param says the first kind, since model APIs want one;
    null is said by leaving it out.
    """
    schema = msgspec.json.schema(hint)
    definitions = schema.pop("$defs", {})
    made = _inline(schema, definitions, nulls)
    assert isinstance(made, dict)  # the schema of a type is an object
    return made


def _inline(node: Any, definitions: dict[str, Any], nulls: bool) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions, nulls) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if reference is not None:
        return _inline(definitions[reference.rpartition("/")[2]], definitions, nulls)
    made = {
        key: _inline(value, definitions, nulls)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))  # a member may be called title
        and not (key == "discriminator" and "mapping" in value)  # it points to definitions that are inlined
    }
    if (parts := made.pop("prefixItems", None)) is not None:
        # Of a tuple: its end is said by its length, and strict clients take no bare `false` for what follows.
        kinds = [each for at, each in enumerate(parts) if each not in parts[:at]]
        made["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if "type" not in made and all(isinstance(each, str) for each in made.get("enum", (None,))):
        made["type"] = "string"  # there are model APIs that take no enum without it
    options = made.pop("anyOf", None)
    kinds = [option for option in options or () if option != {"type": "null"}]
    if nulls and len(kinds) > 1:
        return {**made, "anyOf": options}
    if kinds:
        made = {**kinds[0], **made}
        if nulls:
            made = _or_null(made)
        if made.get("default", ...) is None:
            del made["default"]
    return made


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of what may be null too: a branch for each `type`, since a list of types is taken by fewer clients."""
    beside = {key: value for key, value in schema.items() if key in ("description", "default")}
    branch = {key: value for key, value in schema.items() if key not in beside}
    return {**beside, "anyOf": [branch, {"type": "null"}]}
