"""Descriptors, portable schemas and pages."""

import json
from typing import Any

import pytest

from gateways.mcp.listing import Pages, describe, flatten, open_output
from gateways.mcp.revisions import Fault
from tests.support.broker_fake import FakeTool


def test_references_are_replaced_by_what_they_name() -> None:
    schema = {
        "$ref": "#/$defs/Top",
        "$defs": {
            "Top": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "description": "an A"}}},
            "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
            "B": {"type": "string"},
        },
    }
    flat = flatten(schema)
    assert flat["properties"]["a"]["properties"]["b"] == {"type": "string"}
    assert flat["properties"]["a"]["description"] == "an A"
    assert "$" not in json.dumps(flat)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"anyOf": [{"type": "object"}]},
        {"type": "object", "allOf": []},
        {"$ref": "#/$defs/Nothing"},
        {
            "$ref": "#/$defs/Loop",
            "$defs": {"Loop": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Loop"}}}},
        },
    ],
)
def test_a_schema_that_cant_be_made_plain_is_a_fault_at_the_start(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"plain object|inlined"):
        flatten(schema)


@pytest.mark.requirement("mcp.output-schema")
def test_an_output_schema_is_open_to_a_refusal_and_requires_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array"}},
        "required": ["rows"],
        "additionalProperties": False,
    }
    opened = open_output(schema)
    assert set(opened["properties"]) == {"rows", "untrusted", "refusal"}
    assert "required" not in opened
    assert "additionalProperties" not in opened
    assert schema["required"] == ["rows"]


def test_untrusted_stands_only_where_others_wrote() -> None:
    assert "untrusted" not in open_output({"type": "object", "properties": {"pk": {}}})["properties"]


@pytest.mark.requirement("mcp.annotations")
def test_a_descriptor_carries_title_schemas_and_true_annotations() -> None:
    found = describe(FakeTool(name="look", title="Look", read_only=True))  # type: ignore[arg-type]  # a fake
    assert found["title"] == "Look"
    assert found["annotations"] == {
        "title": "Look",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
    }
    assert found["inputSchema"]["type"] == found["outputSchema"]["type"] == "object"


def read_all(pages: Pages) -> list[Any]:
    items: list[Any] = []
    cursor = None
    while True:
        page = pages.page(cursor)
        assert not isinstance(page, Fault)
        items += [json.loads(bytes(each)) for each in page["things"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            return items


@pytest.mark.requirement("mcp.paging")
@pytest.mark.parametrize("count", [0, 1, 3, 6, 7])
def test_pages_give_every_item_once_and_in_order(count: int) -> None:
    assert read_all(Pages("things", list(range(count)), size=3)) == list(range(count))


def test_an_empty_cursor_means_the_first_page() -> None:
    pages = Pages("things", list(range(5)), size=3)
    assert pages.page("") == pages.page(None)


@pytest.mark.requirement("mcp.paging")
@pytest.mark.parametrize("cursor", ["x", "!!!", "AAAA", "ä", "MA", "0" * 5000])
def test_a_made_up_cursor_is_invalid_params(cursor: str) -> None:
    fault = Pages("things", list(range(5)), size=3).page(cursor)
    assert isinstance(fault, Fault)
    assert fault.code == -32602


def test_a_cursor_of_another_list_is_invalid_params() -> None:
    first = Pages("things", list(range(7)), size=3).page(None)
    assert not isinstance(first, Fault)
    assert isinstance(Pages("things", list(range(8)), size=3).page(first["nextCursor"]), Fault)
