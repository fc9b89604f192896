"""Fault, refusal and result over MCP, for each kestrel.* tool that is there, by the official client."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from broker.tools.registry import collect
from tests.gateways.mcp.test_trial_shapes import REFUSED, keyed
from tests.gateways.mcp.trial_client import connected
from tests.support.rehearsals import DOWN

pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
TOOLS = sorted(name for name in collect() if name.startswith("kestrel."))
KEY = {"idempotency_key": "a-key"}
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    **REFUSED,
    "kestrel.grade": ({"ref": "0" * 64}, "NOT_FOUND"),
    "kestrel.secrets.list": ({"all": True}, "bad_request"),
    "kestrel.secrets.set": ({"name": "small", "value": "v", **KEY}, "bad_request"),
    "kestrel.secrets.unset": ({"name": "MISSING", **KEY}, "NOT_FOUND"),
}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


@pytest.mark.requirement("trial.tutorial-shapes")
async def test_a_name_that_is_none_is_a_fault_and_a_wrong_call_a_refusal() -> None:
    assert sorted(REFUSALS) == TOOLS
    async with connected("auto") as (client, _):
        for name, (params, code) in REFUSALS.items():
            with pytest.raises(MCPError) as fault:
                await client.call_tool(f"{name}s", keyed(name, params))
            assert fault.value.error.code == -32602, name
            refused = await client.call_tool(name, keyed(name, params))
            assert refused.is_error, name
            assert refused.structured_content is not None
            assert set(refused.structured_content) == {"refusal"}, name
            assert refused.structured_content["refusal"]["code"] == code, name


async def _result(client: Client, name: str, **params: Any) -> dict[str, Any]:
    answer = await client.call_tool(name, keyed(name, params))
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return dict(answer.structured_content)


@pytest.mark.requirement("trial.tutorial-shapes")
async def test_a_stand_down_is_a_result_of_each_tool_that_can_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("INLINE", 0), ("STEPS", 2_000), ("PART", 4_000)):
        monkeypatch.setattr(f"broker.actors.trial.{name}", value)
    async with connected("auto") as (client, _):
        seen = await _result(client, "kestrel.session.open", entry="trend")
        id = {"session_id": seen["session_id"]}
        await _result(client, "kestrel.session.start", **id, plan=DOWN, expected_version=0)
        begun = await _result(client, "kestrel.session.advance", **id, ticks=900, expected_version=1)
        operation = begun["operation"]["operation_id"]
        down = await _result(client, "kestrel.operation.resume", operation_id=operation)
        assert (down["outcome"], down["over"]) == ("STAND_DOWN", "rule")
        assert (await _result(client, "kestrel.session.resume", **id))["outcome"] == "STAND_DOWN"
        order = {"order": {"side": "buy", "size": 1}, "expected_version": 2}
        late = await client.call_tool("kestrel.session.submit", {**id, **order, **KEY})
        assert late.is_error, "a call that may not be done any more is refused, and no stand-down"
        assert late.structured_content is not None
        assert late.structured_content["refusal"]["code"] == "ILLEGAL_ACTION"
        done = await _result(client, "kestrel.session.finalize", **id, expected_version=2)
        assert done["outcome"] == "STAND_DOWN"
        assert (await _result(client, "kestrel.grade", ref=done["ref"]))["outcome"] == "STAND_DOWN"


@pytest.mark.requirement("trial.tutorial-shapes")
async def test_a_fault_of_ours_is_no_refusal_and_the_trial_goes_on_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected("auto") as (client, _):
        seen = await _result(client, "kestrel.session.open", entry="trend")
        id = {"session_id": seen["session_id"]}
        await _result(client, "kestrel.session.start", **id, plan=DOWN, expected_version=0)
        with monkeypatch.context() as broken:
            broken.setattr("broker.actors.trial.advance_slice", None)
            with pytest.raises(MCPError) as fault:
                await _result(client, "kestrel.session.advance", **id, ticks=3, expected_version=1)
        assert fault.value.error.code == -32603
        assert set(fault.value.error.data) == {"incident"}, "nothing of the inside"
        assert caplog.records, "it is logged"
        went = await _result(client, "kestrel.session.advance", **id, ticks=3, expected_version=1)
        assert (went["version"], went["ran"]) == (2, 3), "nothing of it was done"
