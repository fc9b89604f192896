"""Agents and owners as the console shows them, and an agent's suspension, seen from the agent's side."""

import pytest

from gateways.console.agents import shown
from tests.gateways.console.conftest import OF_FORMS, document
from tests.gateways.pages.conftest import Browser
from tests.support.agents import make_agent
from tests.support.broker import Bench, code


@pytest.mark.requirement("console.agents")
async def test_an_agent_is_looked_at_suspended_and_unsuspended(bench: Bench, operator: Browser) -> None:
    ann = await make_agent(bench, "ann")
    listed = (await operator.get("/agents")).text
    document(listed)
    assert f'href="/agents/{ann.agent}"' in listed
    await make_agent(bench, "bob")
    found = (await operator.get("/agents?find=+Ann+")).text
    document(found)
    assert ">ann<" in found
    assert ">bob<" not in found
    assert "There is no such agent" in (await operator.get("/agents?find=carol")).text
    straight = await operator.get(f"/agents?find={ann.agent}")
    assert straight.headers["location"] == f"/agents/{ann.agent}"
    page = (await operator.get(f"/agents/{ann.agent}")).text
    document(page)
    assert ">ann<" in page
    fields = dict(OF_FORMS.findall(page))
    suspended = await operator.post(
        "/agents", agent_id=ann.agent, key=fields["key"], do="suspend", reason="<i>spam</i>"
    )
    assert suspended.headers["location"] == f"/agents/{ann.agent}?done=suspended"
    assert code(await bench.call("whoami", ann)) == "suspended"
    page = (await operator.get(f"/agents/{ann.agent}?done=suspended")).text
    document(page)
    assert "&lt;i&gt;spam" in page
    fields = dict(OF_FORMS.findall(page))
    await operator.post("/agents", agent_id=ann.agent, key=fields["key"], do="unsuspend")
    assert code(await bench.call("whoami", ann)) == "accepted"
    assert (await operator.get("/agents/ag_01JZ0000000000000000000000")).status_code == 404
    assert (await operator.get("/agents/nothing")).status_code == 400


@pytest.mark.requirement("console.agents")
async def test_owners_are_listed_with_their_agents(bench: Bench, operator: Browser) -> None:
    from tests.support.operators import OPERATOR

    assert "There is no owner yet" in (await operator.get("/owners")).text
    made = await bench.call("create_owner", OPERATOR, email="ann@x.example", invitation=True)
    text = (await operator.get("/owners")).text
    document(text)
    assert "ann@x.example" in text
    assert f"/agents?owner={made['owner_id']}" in text
    assert made["invitation"] not in text
    assert (await operator.get(f"/agents?owner={made['owner_id']}")).status_code == 200


def test_an_agent_is_shown_with_what_it_has_not() -> None:
    assert shown({"name": "ann"}) == {"name": "ann", "description": "", "owner_id": None, "suspended": None}
