"""The tools as a model sees them: schemas that every client takes, strict arguments, instructions."""

from decimal import Decimal
from typing import Any

import pytest
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from gateways.agent import tools
from gateways.agent.line import line_to
from gateways.agent.rails import Rails
from tests.gateways.agent.conftest import Agent
from tests.gateways.agent.model import Model

NAMES = ["who", "open_desk", "dial", "answer", "say", "hang_up", "wait", "read", "verify"]


def surface(rails: Rails | None = None) -> Any:
    return tools.surface(line_to("http://127.0.0.1:1", SigningKey.generate(), None, rails or Rails()))


def test_there_is_a_tool_for_each_step_of_a_call() -> None:
    assert list(surface().tools) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_tools_schema_is_flat_and_every_property_is_described(name: str) -> None:
    descriptor = surface().tools[name].descriptor
    schema = descriptor["inputSchema"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema) <= {"type", "properties", "required", "additionalProperties"}
    for each in schema["properties"].values():
        assert each["description"]
        assert each["type"] in ("string", "integer", "object")
    assert descriptor["description"]
    assert descriptor["annotations"]["readOnlyHint"] is (name in ("who", "read", "verify"))


def test_only_what_reads_is_idempotent_and_what_binds_is_destructive() -> None:
    hints = {name: offer.descriptor["annotations"] for name, offer in surface().tools.items()}
    assert [name for name in NAMES if hints[name]["destructiveHint"]] == ["say", "hang_up"]
    assert [name for name in NAMES if hints[name]["idempotentHint"]] == ["who", "read", "verify"]


@pytest.mark.requirement("agent.settings")
def test_the_instructions_tell_the_settings() -> None:
    assert "counterparties: anybody; types that may be said: any; caps: none" in surface().instructions
    rails = Rails(
        counterparties=frozenset({"BRAV"}),
        types=frozenset(),
        caps={"qty": Decimal(5)},
        ask_before=frozenset({"HIT", "CONFIRM"}),
    )
    assert surface(rails).instructions.endswith(
        "Settings: counterparties: BRAV; types that may be said: none; caps: qty at most 5; "
        "the user is asked before: CONFIRM, HIT."
    )


@pytest.mark.requirement("agent.refusals")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("dial", {}),
        ("dial", {"code": "brav"}),
        ("dial", {"code": "BRAV", "wait_ms": 60_000}),
        ("dial", {"code": "BRAV", "body": "{}"}),
        ("say", {"call": "c0" * 8}),
        ("say", {"call": "C0" * 8, "type": "RFQ"}),
        ("say", {"call": "c0" * 8, "type": "rfq"}),
        ("say", {"call": "c0" * 8, "type": "RFQ", "body": []}),
        ("say", {"call": "c0" * 8, "type": "RFQ", "price": "1"}),
        ("hang_up", {"call": "c0" * 8, "reason": "x" * 201}),
        ("read", {"conv": "c0" * 8, "limit": 0}),
        ("who", {"x": 1}),
    ],
)
async def test_wrong_arguments_are_a_result_that_says_what_is_wrong(
    tool: str, arguments: dict[str, Any]
) -> None:
    model = Model(line_to("http://127.0.0.1:1", SigningKey.generate(), None, Rails()))
    refusal = await model.refused(tool, **arguments)
    assert refusal["code"] == "bad_request"
    assert "Correct the arguments" in model.text


@pytest.mark.requirement("agent.refusals")
@pytest.mark.parametrize(
    "text",
    ['{"call":"a","call":"b"}', '{"body":{"qty":1,"qty":9}}', '{"body":{"x":1e400}}', '{"x":"\\ud800"}'],
)
async def test_arguments_that_two_readers_would_read_differently_are_refused(text: str) -> None:
    offer = surface().tools["say"]
    result = await offer.call(None, text.encode())
    assert result["isError"]
    assert result["content"][0]["text"].startswith("bad_request: ")


async def test_empty_texts_count_as_not_given(autojump_clock: MockClock, agent: Agent) -> None:
    """The patterns refuse them; a reason may be empty."""
    async with agent() as model:
        assert (await model.refused("wait", call=""))["code"] == "bad_request"
        assert (await model.refused("hang_up", call="c0" * 8, reason=""))["code"] == "unknown_conv"
