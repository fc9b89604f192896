"""kestrel.grade over a socket, by the official client: grades, progress, a refusal and a fault in three shapes."""

import gc
import json
from collections.abc import Iterator

import pytest
from mcp.shared.exceptions import MCPError

from tests.gateways.mcp.test_clients import MODES
from tests.gateways.mcp.trial_client import connected
from tests.support.trials import changed, market, publish, trial

pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
CONTENT = trial(*market(ticks=600))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


@pytest.mark.requirement("trial.grade-tool", "mcp.official-client")
@pytest.mark.parametrize("mode", MODES)
async def test_grades_progress_a_refusal_and_a_fault(mode: str) -> None:
    told: list[dict[str, int]] = []

    async def progress(step: float, total: float | None, message: str | None) -> None:
        told.append(json.loads(message or ""))

    async with connected(mode) as (client, bench):
        ref = await publish(bench, CONTENT)
        answer = await client.call_tool("kestrel.grade", {"ref": ref}, progress_callback=progress)
        found = answer.structured_content
        assert found is not None
        assert (answer.is_error, found["outcome"], found["grades"]["ticks"]) == (False, "DONE", 600)
        assert "untrusted" not in found
        sentence = answer.content[0].text  # type: ignore[union-attr]  # a text, as all of ours
        assert f"profit and loss {found['grades']['pnl']} millionths" in sentence
        assert told[-1]["of"] == 1_200
        assert told[-1]["ticks"] > 1_000
        other = await publish(bench, changed(CONTENT, "result", "pnl", to=1))
        for given, code in ((other, "NOT_GRADABLE"), ("0" * 64, "NOT_FOUND"), ("nothing", "bad_request")):
            refused = await client.call_tool("kestrel.grade", {"ref": given})
            assert refused.is_error
            assert refused.structured_content is not None
            assert refused.structured_content["refusal"]["code"] == code
        with pytest.raises(MCPError):
            await client.call_tool("kestrel.grades", {"ref": ref})
