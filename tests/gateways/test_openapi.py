"""The OpenAPI document: whole, without loose references, true to the registry."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from broker.app import AREAS
from broker.tools.registry import collect
from broker.wire.refusals import CODES
from gateways.openapi import document

assert AREAS


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document(collect().values(), "0.1.0", "https://turret.example")


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(each)


@pytest.mark.requirement("http.openapi")
def test_every_tool_is_a_path_with_its_schemas(made: dict[str, Any]) -> None:
    tools = {name: tool for name, tool in collect().items() if tool.face != "operator"}
    assert len(tools) >= 15
    assert {path for path in made["paths"] if path.startswith("/v1/")} == {f"/v1/{name}" for name in tools}
    for name, tool in tools.items():
        operation = made["paths"][f"/v1/{name}"]["post"]
        assert operation["operationId"] == name
        assert operation["requestBody"]["content"]["application/json"]["schema"] == tool.input_schema
        shown = operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
        assert set(shown) == set(tool.output_schema["properties"]) - {"refusal"}


@pytest.mark.requirement("identity.register")
def test_the_door_for_new_agents_is_described(made: dict[str, Any]) -> None:
    operation = made["paths"]["/agents/register"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["required"]) == {"name", "public_jwk", "proof"}
    assert {"200", "201", "409", "429"} <= set(operation["responses"])
    assert operation["security"] == [{}]


@pytest.mark.requirement("doors.openapi")
def test_what_a_tool_asks_of_a_token_is_said_where_clients_look(made: dict[str, Any]) -> None:
    for name, tool in collect().items():
        operation = made["paths"][f"/v1/{name}"]["post"]
        wanted = (
            [{"bearer": [tool.scope]}] if tool.scope is not None else [{}, {"turret": []}, {"bearer": []}]
        )
        assert operation["security"] == wanted
        named = [each["name"] for each in operation.get("parameters", [])]
        assert named == (["Idempotency-Key"] if tool.keyed else [])
    schemes = made["components"]["securitySchemes"]
    assert {
        each
        for path in made["paths"].values()
        for op in path.values()
        for way in op.get("security", ())
        for each in way
    } <= set(schemes)
    assert schemes["bearer"]["scheme"] == "bearer"


def test_every_code_stands_under_its_status(made: dict[str, Any]) -> None:
    answers = made["paths"]["/v1/send_env"]["post"]["responses"]
    for name, code in CODES.items():
        schema = answers[str(code.status)]["content"]["application/json"]["schema"]
        assert name in schema["properties"]["refusal"]["allOf"][1]["properties"]["code"]["enum"]


def test_references_resolve_ids_are_unique_and_schemas_are_schemas(made: dict[str, Any]) -> None:
    for node in walk(made):
        if "$ref" in node:
            assert node["$ref"].rpartition("/")[2] in made["components"]["schemas"]
        if "schema" in node:
            jsonschema.Draft202012Validator.check_schema(node["schema"])
    names = [each["operationId"] for path in made["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))
    for path, item in made["paths"].items():
        for operation in item.values():
            given = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
            assert given == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_a_rendered_refusal_fits_its_schema(made: dict[str, Any]) -> None:
    from broker.wire.refusals import refuse

    answers = made["paths"]["/v1/send_env"]["post"]["responses"]
    schema = {**answers["409"]["content"]["application/json"]["schema"], "components": made["components"]}
    jsonschema.validate({"refusal": refuse("conflict", "taken", head={"n": 1}).body()}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"refusal": refuse("too_large", "no").body()}, schema)
