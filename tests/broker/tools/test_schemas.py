"""JSON Schemas: flat, described, and closed where model APIs want them closed."""

import json

import msgspec

from broker.tools.registry import collect
from broker.tools.schemas import flat, output_schema
from broker.wire.refusals import Refusal

TOOLS = collect()


class Inner(msgspec.Struct):
    title: str


class Outer(msgspec.Struct):
    inner: Inner
    note: str | None = None


def test_references_are_inlined_and_null_is_said_in_answers_alone() -> None:
    inner = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    asked = flat(Outer)["properties"]
    assert asked["inner"] == inner
    assert asked["note"] == {"type": "string"}
    answered = output_schema(Outer | Refusal | None)["properties"]
    assert answered["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert sorted(answered) == ["inner", "note", "refusal"]


def test_every_tool_has_a_flat_described_schema() -> None:
    for made in TOOLS.values():
        text = json.dumps([made.input_schema, made.output_schema])
        assert "$ref" not in text
        assert ": {}" not in text.replace('"properties": {}', ""), f"{made.name} has what may be anything"
        assert "anyOf" not in json.dumps(made.input_schema)
        assert "anyOf" not in made.output_schema
        assert '"type": ["' not in text, "a list of types is taken by few"
        assert '"items": false' not in text, "a bare false is no schema to strict clients"

        assert made.description
        assert made.input_schema["type"] == made.output_schema["type"] == "object"
        assert "required" not in made.output_schema
        assert "refusal" in made.output_schema["properties"]
        for name, schema in made.input_schema["properties"].items():
            assert schema.get("description"), (made.name, name)
            assert schema.get("type"), (made.name, name)


def test_a_value_of_several_kinds_keeps_them_in_answers_and_is_of_one_among_params() -> None:
    tool = collect()["send_task"]
    asked = tool.input_schema["properties"]["parts"]["items"]["properties"]["data"]
    assert asked == {"type": "object"}
    said = tool.output_schema["properties"]["history"]["items"]["properties"]["parts"]["items"]
    kinds = said["properties"]["data"]["anyOf"]
    assert [each["type"] for each in kinds] == ["object", "string", "number", "boolean", "null", "array"]
    assert kinds[-1]["items"]["anyOf"] == kinds[:-1]


class Pairs(msgspec.Struct):
    alike: tuple[int, int]
    mixed: tuple[int, str]


def test_a_tuple_says_its_parts_and_its_length() -> None:
    length = {"type": "array", "minItems": 2, "maxItems": 2}
    number, text = {"type": "integer"}, {"type": "string"}
    assert flat(Pairs)["properties"] == {
        "alike": {**length, "items": number},
        "mixed": {**length, "items": {"anyOf": [number, text]}},
    }
