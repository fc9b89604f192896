"""Reports: what others wrote is text, and resolving one does what it says, once."""

import json

import pytest

from gateways.console.reports import reason_of
from tests.gateways.console.conftest import OF_FORMS, document
from tests.gateways.pages.conftest import Browser
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.vectors import VECTORS

NAUGHTY = [each for each in json.loads((VECTORS / "naughty/blns.json").read_text()) if each]


@pytest.mark.requirement("console.reports", "console.text")
async def test_a_report_is_shown_as_text_and_resolved_and_who_is_suspended_by_it_is(
    bench: Bench, operator: Browser
) -> None:
    ann, bob = await make_agent(bench, "ann"), await make_agent(bench, "bob")
    assert "wait for you" not in (await operator.get("/")).text
    details = "\n".join(each for each in NAUGHTY if "<" in each)[:1900]
    await bench.call("report_agent", ann, target_agent_id=bob.agent, category="spam", details=details)
    now = (await operator.get("/")).text
    document(now)
    assert "Reports about 1 agent wait for you" in now, "the first page says that there is something to do"
    shown = (await operator.get("/reports")).text
    found = document(shown)
    said = next(each for each in found.all("p") if each.attributes.get("class") == "said")
    assert "<script>" not in shown.replace('<script src="/assets/', "")
    assert len(said.text.strip()) > 1500
    fields = dict(OF_FORMS.findall(shown))
    form = {name: fields[name] for name in ("report_id", "target_agent_id", "key")}
    for _ in range(2):  # pressed twice
        answer = await operator.post("/reports", **form, outcome="suspended", note="enough\r\nof it")
        assert answer.headers["location"] == "/reports?done=resolved", answer.text
        operator.page = shown
    assert "No report is open" in (await operator.get("/reports")).text
    resolved = (await operator.get("/reports?status=resolved")).text
    assert "enough\nof it" in resolved
    assert bob.agent in (await operator.get("/agents?only=suspended")).text
    audit = (await operator.get("/audit?kind=suspend_agent")).text
    assert audit.count("suspend_agent</td>") == 1


@pytest.mark.requirement("console.reports")
async def test_what_can_not_be_done_is_said(bench: Bench, operator: Browser) -> None:
    await operator.get("/reports")
    assert (await operator.post("/reports", outcome="hanged")).status_code == 400
    await operator.get("/reports")
    missing = "rp_01JZ0000000000000000000000"
    answer = await operator.post("/reports", outcome="other", report_id=missing, key="k")
    assert answer.status_code == 404
    assert (await operator.get("/reports?status=odd")).status_code == 400


def test_the_note_is_the_reason_of_the_suspension_as_far_as_it_goes() -> None:
    assert reason_of("") == "a report about it"
    assert reason_of("x" * 900) == "x" * 500
