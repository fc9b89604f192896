"""Transport fault, refusal, stand-down: three shapes, for each tool of trials, by the official client over a socket."""

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from broker.core.trials.script import read_artifact
from tests.gateways.mcp.test_clients import MODES
from tests.gateways.mcp.trial_client import connected
from tests.support.rehearsals import DOWN, FADE, QUIET, new_key

pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
KEYED = ("open", "start", "advance", "revise", "submit", "finalize")
NONE = "tr_00000000000000000000000000"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "kestrel.session.open": ({"entry": "nothing"}, "NOT_FOUND"),
    "kestrel.session.start": ({"session_id": NONE, "plan": QUIET, "expected_version": 0}, "NOT_FOUND"),
    "kestrel.session.advance": ({"session_id": NONE, "ticks": 1, "expected_version": 0}, "NOT_FOUND"),
    "kestrel.session.revise": ({"session_id": NONE, "plan": "plan x", "expected_version": 0}, "bad_request"),
    "kestrel.session.submit": (
        {"session_id": NONE, "order": {"side": "buy", "size": 1}, "expected_version": 0},
        "NOT_FOUND",
    ),
    "kestrel.session.resume": ({"session_id": NONE}, "NOT_FOUND"),
    "kestrel.session.finalize": ({"session_id": NONE, "expected_version": 0}, "NOT_FOUND"),
    "kestrel.operation.resume": ({"operation_id": "op_00000000000000000000000000"}, "NOT_FOUND"),
    "kestrel.validate": ({"plan": 7}, "bad_request"),
}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


def keyed(name: str, params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "idempotency_key": new_key()} if name.rpartition(".")[2] in KEYED else params


@pytest.mark.requirement("trial.session-shapes")
@pytest.mark.parametrize("mode", MODES)
async def test_a_trial_over_mcp_and_each_tools_refusal_and_fault(mode: str) -> None:
    async with connected(mode) as (client, _):

        async def result(name: str, **params: Any) -> dict[str, Any]:
            name = f"kestrel.{name}"
            answer = await client.call_tool(name, keyed(name, params))
            assert not answer.is_error, answer.content
            assert answer.structured_content is not None
            assert json.loads(answer.content[-1].text) == answer.structured_content  # type: ignore[union-attr]
            return dict(answer.structured_content)

        names = {tool.name for tool in (await client.list_tools()).tools}
        assert set(REFUSED) <= names
        for name, (params, code) in REFUSED.items():
            answer = await client.call_tool(name, keyed(name, params))
            assert answer.is_error, name
            assert answer.structured_content is not None
            assert answer.structured_content["refusal"]["code"] == code, name
        with pytest.raises(MCPError) as fault:
            await client.call_tool("kestrel.session.close", {})
        assert fault.value.error.code == -32602

        checked = await result("validate", plan=DOWN)
        assert checked["valid"] is True
        assert (await result("validate", plan=checked["tree"]))["text"] == checked["text"]
        assert (await result("validate", plan="plan x"))["diagnostics"][0]["line"] == 1
        seen = await result("session.open", entry="trend")
        id = {"session_id": seen["session_id"]}
        await result("session.start", **id, plan=FADE, expected_version=0)
        await result("session.advance", **id, ticks=3, expected_version=1)
        await result("session.submit", **id, order={"side": "buy", "size": 2}, expected_version=2)
        await result("session.revise", **id, plan=checked["tree"], expected_version=3)
        down = await result("session.advance", **id, ticks=50, expected_version=4)
        assert down["outcome"] == "STAND_DOWN", "an ordinary result"
        assert (await result("session.resume", **id))["outcome"] == "STAND_DOWN"
        done = await result("session.finalize", **id, expected_version=5)
        read = await client.read_resource(done["uri"])
        artifact = read_artifact(read.contents[0].text.encode())  # type: ignore[union-attr]
        assert artifact.result.outcome == "STAND_DOWN"


@pytest.mark.requirement("trial.session-waits")
@pytest.mark.parametrize("mode", MODES)
async def test_progress_is_told_while_an_operation_is_waited_for(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("INLINE", 0), ("STEPS", 2_000), ("PART", 4_000)):
        monkeypatch.setattr(f"broker.actors.trial.{name}", value)
    told: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(done)
        assert message is not None
        assert json.loads(message)["of"] == 900

    async with connected(mode) as (client, _):
        opened = await client.call_tool("kestrel.session.open", {"entry": 0, "idempotency_key": new_key()})
        assert opened.structured_content is not None
        id = {"session_id": opened.structured_content["session_id"]}
        for verb, params in (("start", {"plan": FADE}), ("advance", {"ticks": 900})):
            version = int(verb == "advance")
            params = {**id, **params, "expected_version": version, "idempotency_key": new_key()}
            answer = await client.call_tool(f"kestrel.session.{verb}", params)
        assert answer.structured_content is not None
        operation = {"operation_id": answer.structured_content["operation"]["operation_id"]}
        done = await client.call_tool("kestrel.operation.resume", operation, progress_callback=progress)
        assert done.structured_content is not None
        assert (done.structured_content["ran"], done.structured_content["version"]) == (900, 2)
        assert len(told) > 1
        assert told == sorted(told)
