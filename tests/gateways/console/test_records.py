"""The audit's pages: events as text, filters, and the log verified."""

import pytest

from gateways.console.records import said
from tests.gateways.console.conftest import document
from tests.gateways.pages.conftest import Browser
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.operators import OPERATOR


@pytest.mark.requirement("console.audit")
async def test_events_are_listed_filtered_and_the_log_is_verified(bench: Bench, operator: Browser) -> None:
    ann = await make_agent(bench, "ann")
    await bench.call("suspend_agent", OPERATOR, agent_id=ann.agent, reason="<img src=x>")
    text = (await operator.get("/audit")).text
    document(text)
    assert "suspend_agent" in text
    assert "<img" not in text
    one = (await operator.get(f"/audit?subject={ann.agent}")).text
    assert "suspend_agent" in one
    assert "There is no such event" in (await operator.get("/audit?kind=nothing")).text
    assert (await operator.get("/audit?subject=a&kind=b")).status_code == 400
    await operator.get("/audit")
    verified = await operator.post("/audit/verify")
    document(verified.text)
    assert "The log holds:" in verified.text


def test_a_detail_is_a_line_of_text() -> None:
    assert said(None) == ""
    assert said({"b": 1, "a": "é"}) == '{"a": "é", "b": 1}'
    assert len(said({"a": "x" * 9000})) == 2000
