"""Consent: what is shown of an app, for whom it may act, and the way back to it."""

from typing import Any

import pytest

from broker.wire.refusals import refuse
from tests.gateways.pages.conftest import AGENT_ID, OWNER_ID, Browser, Verbs
from tests.gateways.pages.test_owned import AGENT
from tests.support.html import Document

ASKED: dict[str, Any] = {
    "client_name": "An <b>app</b>",
    "client_id": "cl_1",
    "redirect_host": "app.example",
    "loopback_only": False,
    "scopes": ["message", "channel", "unheard-of"],
    "resource": "https://turret.test/mcp",
}
BACK = "https://app.example/back?code=a.b&state=x%22%3E&iss=https%3A%2F%2Fturret.test"


@pytest.fixture
def asked(verbs: Verbs) -> Verbs:
    verbs.answers["my_agents"] = {"agents": [AGENT]}
    verbs.answers["authorization_request"] = ASKED
    verbs.answers["decide_authorization"] = {"redirect": BACK}
    return verbs


@pytest.mark.requirement("pages.consent")
async def test_an_owner_sees_who_asks_for_what_and_where_it_leads(owner: Browser, asked: Verbs) -> None:
    answer = await owner.get("/consent?ask=abc")
    document = Document(answer.text)
    assert (answer.status_code, document.faults) == (200, [])
    assert asked.asked[0] == ("authorization_request", {"ask": "abc"})
    for words in (
        "An <b>app</b>",
        "as it calls itself",
        "app.example",
        "https://turret.test/mcp",
        "unheard-of",
    ):
        assert words in document.text
    assert "your own computer" not in document.text
    radios = [each.attributes for each in document.all("input") if each.attributes["type"] == "radio"]
    assert [each["value"] for each in radios] == [AGENT_ID, OWNER_ID]
    assert not any("checked" in each for each in radios)
    boxes = [each.attributes for each in document.all("input") if each.attributes["type"] == "checkbox"]
    assert [each["value"] for each in boxes] == ASKED["scopes"]
    assert all("checked" in each for each in boxes)


@pytest.mark.requirement("pages.consent")
async def test_an_app_on_the_owners_own_machine_is_warned_of(owner: Browser, asked: Verbs) -> None:
    asked.answers["authorization_request"] = {**ASKED, "loopback_only": True, "redirect_host": "127.0.0.1"}
    document = Document((await owner.get("/consent?ask=abc")).text)
    assert document.faults == []
    assert "This app runs on your own computer." in document.text
    assert "this computer" in document.text


@pytest.mark.requirement("pages.consent")
async def test_a_client_by_document_is_shown_by_where_that_stands(owner: Browser, asked: Verbs) -> None:
    uri = {"client_id": "https://app.example/<client>", "client_uri": "javascript:alert(1)"}
    asked.answers["authorization_request"] = {**ASKED, **uri}
    document = Document((await owner.get("/consent?ask=abc")).text)
    assert document.faults == []
    assert "https://app.example/<client>" in document.text
    assert "javascript:alert(1)" in document.text


async def test_without_agents_the_owner_itself_is_chosen(owner: Browser, asked: Verbs) -> None:
    asked.answers["my_agents"] = {"agents": []}
    document = Document((await owner.get("/consent?ask=abc")).text)
    assert document.one("subject-1").attributes["value"] == OWNER_ID
    assert "checked" in document.one("subject-1").attributes


@pytest.mark.requirement("pages.consent")
@pytest.mark.parametrize(("scopes", "told"), [(["arena"], True), (["message"], False)])
async def test_who_lets_an_app_play_as_the_owner_is_told_for_whom(
    owner: Browser, asked: Verbs, scopes: list[str], told: bool
) -> None:
    asked.answers["authorization_request"] = {**ASKED, "scopes": scopes}
    document = Document((await owner.get("/consent?ask=abc")).text)
    assert ("plays for any of yours" in document.text) is told


@pytest.mark.requirement("pages.consent")
async def test_allowing_leads_back_by_a_page_of_ours(owner: Browser, asked: Verbs) -> None:
    """Not by a redirect: browsers hold those of a form to form-action, also the app's own further ones."""
    await owner.get("/consent?ask=abc")
    fields = {
        "ask": "abc",
        "subject": AGENT_ID,
        "scope": ["message"],
        "decision": "allow",
        "owner_id": "ow_x",
    }
    answer = await owner.post("/consent", **fields)
    assert answer.status_code == 200
    assert "location" not in answer.headers
    decided = {"ask": "abc", "owner_id": OWNER_ID, "allow": True, "scopes": ["message"], "subject": AGENT_ID}
    assert asked.asked[-1] == ("decide_authorization", decided)
    document = Document(answer.text)
    assert document.faults == []
    refresh = next(each.attributes for each in document.all("meta") if "http-equiv" in each.attributes)
    assert refresh == {"http-equiv": "refresh", "content": f"0; url={BACK}"}
    assert document.one("back").attributes["href"] == BACK


async def test_no_link_ever_runs_anything(owner: Browser, asked: Verbs) -> None:
    asked.answers["decide_authorization"] = {"redirect": "javascript:alert(1)"}
    await owner.get("/consent?ask=abc")
    answer = await owner.post("/consent", ask="abc", subject=AGENT_ID, scope=["message"], decision="allow")
    assert answer.status_code == 500
    assert "javascript" not in answer.text


@pytest.mark.requirement("pages.consent")
async def test_not_allowing_needs_no_choice_and_gives_nothing(owner: Browser, asked: Verbs) -> None:
    await owner.get("/consent?ask=abc")
    answer = await owner.post("/consent", ask="abc", scope=["message"], decision="deny")
    assert "Not allowed" in answer.text
    decided = {"ask": "abc", "owner_id": OWNER_ID, "allow": False, "scopes": [], "subject": OWNER_ID}
    assert asked.asked[-1] == ("decide_authorization", decided)


@pytest.mark.requirement("pages.consent")
async def test_what_is_neither_is_not_allowing(owner: Browser, asked: Verbs) -> None:
    await owner.get("/consent?ask=abc")
    await owner.post("/consent", ask="abc", scope=["message"], subject=AGENT_ID)
    assert asked.asked[-1][1]["allow"] is False


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"scope": ["message"]}, ["subject"]),
        ({"subject": AGENT_ID}, ["scope"]),
        ({}, ["subject", "scope"]),
    ],
)
async def test_a_choice_that_is_missing_is_said_at_its_place(
    owner: Browser, asked: Verbs, fields: dict[str, Any], wrong: list[str]
) -> None:
    await owner.get("/consent?ask=abc")
    answer = await owner.post("/consent", ask="abc", decision="allow", **fields)
    document = Document(answer.text)
    assert (answer.status_code, document.faults) == (400, [])
    sets = [each.attributes.get("aria-describedby") for each in document.all("fieldset")]
    assert [each for each in sets if each] == [f"{name}-error" for name in wrong]
    ticked = [each.attributes["value"] for each in document.all("input") if "checked" in each.attributes]
    assert ticked == [*([fields["subject"]] if "subject" in fields else []), *fields.get("scope", [])]
    assert all(name != "decide_authorization" for name, _ in asked.asked)


@pytest.mark.requirement("pages.consent")
async def test_an_agent_that_is_not_the_owners_is_said_at_its_place(owner: Browser, asked: Verbs) -> None:
    asked.answers["decide_authorization"] = refuse("not_found", "x", path="subject")
    await owner.get("/consent?ask=abc")
    answer = await owner.post("/consent", ask="abc", decision="allow", subject="ag_other", scope=["message"])
    document = Document(answer.text)
    assert (answer.status_code, document.faults) == (400, [])
    assert "not yours any more" in document.one("subject-error").text


@pytest.mark.requirement("pages.errors")
async def test_a_request_that_is_over_says_what_to_do(owner: Browser, asked: Verbs) -> None:
    asked.answers["authorization_request"] = refuse("not_found", "x")
    for path in ("/consent?ask=abc", "/consent"):
        answer = await owner.get(path)
        assert (answer.status_code, Document(answer.text).faults) == (404, [])
        assert "Go back to the app" in answer.text
    asked.answers["decide_authorization"] = refuse("overloaded", "x")
    await owner.get("/owner/claim")
    answer = await owner.post("/consent", ask="abc", decision="deny")
    assert answer.status_code == 503
