"""An owner's page of the agents' trials, in front of a verb that the test answers for."""

from typing import Any

import pytest

from tests.gateways.pages.conftest import AGENT_ID, OWNER_ID, Browser, Verbs
from tests.support.html import Document

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
TRIAL: dict[str, Any] = {
    "session_id": "tr_01JZ0000000000000000000000",
    "status": "open",
    "instrument": "EURUSD",
    "kind": "trend",
    "seed": 7,
    "ticks": 3600,
    "ran": 42,
    "plan": None,
    "outcome": "RUNNING",
    "position": 1_000_000,
    "pnl": -1_234_500_000,
    "opened_at": 1_782_345_678_000,
    "changed_at": 1_782_345_678_000,
    "over": None,
    "ref": None,
}
OVER = {
    **TRIAL,
    "status": "over",
    "over": "finalized",
    "outcome": "STAND_DOWN",
    "plan": "fade 1",
    "instrument": HOSTILE,
    "kind": None,
    "seed": None,
    "ref": "ab" * 32,
}
ALL: dict[str, Any] = {"agent_id": AGENT_ID, "name": HOSTILE, "trials": [TRIAL, OVER], "next": "agent-7"}


@pytest.mark.requirement("pages.trials")
async def test_the_trials_of_an_agent_are_listed_with_what_came_of_them(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_trials"] = ALL
    document = Document((await owner.get(f"/owner/trials?agent={AGENT_ID}")).text)
    assert document.faults == []
    assert verbs.asked == [("my_trials", {"owner_id": OWNER_ID, "agent_id": AGENT_ID, "which": "all"})]
    for said in (HOSTILE, "No plan yet", "fade 1", "trend, seed 7", "imported", "42 of 3,600", "not over", "stood down",
                 "-1,234.50", "1,000,000", "its agent finalized it", TRIAL["session_id"]):  # fmt: skip
        assert said in document.text, said
    links = [each.attributes["href"] for each in document.all("a")]
    assert f"/artifact/{OVER['ref']}/report" in links
    assert f"/owner/trials?agent={AGENT_ID}&after=agent-7" in links
    verbs.answers["my_trials"] = {**ALL, "trials": [{**OVER, "outcome": "RUNNING", "plan": None}]}
    early = (await owner.get(f"/owner/trials?agent={AGENT_ID}")).text
    assert "ended before its plan did" in early
    assert "/report" not in early, "what never had a plan has no grades"
    await owner.get(f"/owner/trials?agent={AGENT_ID}&which=open&after=open-7&owner_id=ow_x")
    asked = {"owner_id": OWNER_ID, "agent_id": AGENT_ID, "which": "open", "after": "open-7"}
    assert verbs.asked[-1] == ("my_trials", asked)
    verbs.answers["my_trials"] = {**ALL, "trials": [], "next": None}
    assert "opened no trial yet" in (await owner.get("/owner/trials?agent=x&which=<b>")).text
    assert "No trial is open" in (await owner.get("/owner/trials?agent=x&which=open")).text


@pytest.mark.requirement("pages.trials")
async def test_an_agent_of_somebody_else_is_missing(owner: Browser, verbs: Verbs) -> None:
    assert (await owner.get(f"/owner/trials?agent={AGENT_ID}")).status_code == 404
