"""From a stranger's first visit to an app signed out again: an agent claimed, an app let in, a request decided."""

from typing import Any

import pytest

from tests.browser.clients import Agent, App, app, call
from tests.browser.conftest import LOOKS, NARROW, Look, Opened, Watched

HOSTILE = '<img src="//evil.example/x" onerror="alert(1)"> مرحبا \u202eevil'
PASSWORD = "correct horse battery"


def sign_up_and_claim(watched: Watched, url: str, agent: Agent) -> None:
    page = watched.page
    page.goto(f"{url}/owner/claim")
    page.click("text=Sign up")
    page.fill("#email", "ann@turret.example")
    page.fill("#password", PASSWORD)
    page.click("main button")
    assert page.url == f"{url}/owner/claim"
    page.fill("#code", agent.claim_code[:-1])
    page.click("main button")
    assert "leads to no agent" in page.inner_text("#summary")
    watched.seen("claim-wrong")
    page.fill("#code", agent.claim_code.lower())
    page.click("main button")
    assert page.inner_text("[role=status]") == "The agent is yours now."
    assert agent.agent_id in page.inner_text("main")
    watched.seen("agents")


def let_in(watched: Watched, client: App, agent: Agent) -> str:
    """The owner lets the app in for the agent, with less than it asks for; the app's token."""
    page = watched.page
    page.goto(client.asking("profile contacts message channel"))
    assert page.inner_text("h1") == f"Allow “{client.name}” to act for you?"
    assert "This app runs on your own computer." in page.inner_text("main")
    watched.seen("consent")
    page.check(f"input[value='{agent.agent_id}']")
    page.uncheck("input[value=channel]")
    page.click("button[value=allow]")
    page.wait_for_selector("text=Back in the app")
    assert page.url.startswith("http://localhost:")
    assert client.came[-1]["state"] == "a state"
    token = client.token()
    assert call(client.url, token, "whoami").json()["agent_id"] == agent.agent_id
    refused = call(client.url, token, "list_channels")
    assert (refused.status_code, refused.json()["refusal"]["code"]) == (403, "insufficient_scope")
    return token


@pytest.mark.requirement("pages.consent", "pages.requests", "pages.grants", "pages.claim")
@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_an_owner_lets_an_app_in_decides_a_request_and_signs_the_app_out(
    broker: str, open_page: Opened, look: Look
) -> None:
    watched = open_page(look)
    page = watched.page
    mine, other = Agent(broker, "Quote desk"), Agent(broker, "Basel options")
    sign_up_and_claim(watched, broker, mine)
    with app(broker, "Desk assistant") as client:
        token = let_in(watched, client, mine)
        answer = call(broker, token, "set_contact_policy", policy="owner-decides")
        assert answer.status_code == 200, answer.text
        asked = other.call(
            "request_contact", target_agent_id=mine.agent_id, purpose=HOSTILE, scopes=["message", "channel"]
        )
        assert asked["status"] == "pending"
        page.goto(f"{broker}/owner/requests")
        assert '<img src="//evil.example/x"' in page.inner_text("blockquote")
        watched.seen("request")
        page.uncheck("input[value=channel]")
        page.fill("input[name=ttl_days]", "7")
        page.click("button[value=accept]")
        assert "You accepted the request." in page.inner_text("[role=status]")
        watched.seen("request-accepted")
        (made,) = other.call("list_agreements")["agreements"]
        assert made["scopes"] == ["message"]
        page.goto(f"{broker}/owner/grants")
        assert "Desk assistant" in page.inner_text("main")
        watched.seen("apps")
        page.click("text=Sign it out")
        assert "The app is signed out." in page.inner_text("[role=status]")
        assert call(broker, token, "whoami").status_code == 401
        page.goto(f"{broker}/owner")
        assert "Quote desk" in page.inner_text("main")


@pytest.mark.requirement("moderation.care")
@pytest.mark.parametrize("look", [LOOKS[0], NARROW], ids=str)
def test_an_owner_takes_care_of_its_agent(broker: str, open_page: Opened, look: Look) -> None:
    watched = open_page(look)
    page = watched.page
    mine, other = Agent(broker, "Quote desk"), Agent(broker, "Basel options")
    sign_up_and_claim(watched, broker, mine)
    page.click("text=Take care of Quote desk")
    page.check("text=all are accepted")
    page.click("text=Save")
    assert "requests to the agent are handled so" in page.inner_text("[role=status]")
    asked = other.call("request_contact", target_agent_id=mine.agent_id, purpose="to talk")
    assert asked["status"] == "accepted"
    page.reload()
    assert "Basel options" in page.inner_text("main")
    watched.seen("agent")
    page.click("text=End this agreement")
    assert "The agreement has ended." in page.inner_text("[role=status]")
    assert other.call("list_agreements")["agreements"] == []
    page.click("text=Revoke this key")
    assert "The key is revoked." in page.inner_text("[role=status]")
    assert "The agent has no key." in page.inner_text("main")
    watched.seen("agent-without-key")


@pytest.mark.requirement("pages.consent")
def test_an_app_that_is_not_let_in_is_told_so(broker: str, open_page: Opened) -> None:
    watched = open_page(NARROW)
    page = watched.page
    sign_up_and_claim(watched, broker, Agent(broker, "Quote desk"))
    with app(broker, '<b>Desk</b> & "assistant" مرحبا') as client:
        page.goto(client.asking("message"))
        watched.seen("consent-hostile")
        page.click("button[value=deny]")
        page.wait_for_selector("text=Back in the app")
        assert client.came[-1]["error"] == "access_denied"
        page.go_back()
        page.goto(client.asking("message"))
        page.click("button[value=deny]")
        page.wait_for_selector("text=Back in the app")


@pytest.mark.requirement("pages.plain")
def test_a_keyboard_is_enough_to_let_an_app_in(broker: str, open_page: Opened) -> None:
    watched = open_page(NARROW)
    page = watched.page
    agent = Agent(broker, "Quote desk")
    sign_up_and_claim(watched, broker, agent)

    def press(key: str, until: str) -> None:
        for _ in range(40):
            page.keyboard.press(key)
            if page.evaluate("found => document.activeElement.matches(found)", until):
                return
        raise AssertionError(f"{until} can't be reached")

    with app(broker, "Desk assistant") as client:
        page.goto(client.asking("profile message channel"))
        press("Tab", "input[type=radio]")
        page.keyboard.press("Space")
        assert page.is_checked(f"input[value='{agent.agent_id}']")
        press("Tab", "input[value=channel]")
        page.keyboard.press("Space")
        assert not page.is_checked("input[value=channel]")
        press("Tab", "button[value=allow]")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Back in the app")
        assert call(broker, client.token(), "whoami").json()["agent_id"] == agent.agent_id


@pytest.mark.requirement("pages.directory")
@pytest.mark.parametrize("look", LOOKS[:2], ids=str)
def test_anybody_finds_an_agent_that_wants_to_be_found(broker: str, open_page: Opened, look: Look) -> None:
    watched = open_page(look)
    page: Any = watched.page
    agent, _ = Agent(broker, "Quote desk"), Agent(broker, "Basel options")
    agent.call("set_directory_visibility", public=True)
    page.goto(f"{broker}/directory")
    page.fill("#q", "quote")
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    assert page.locator("article").count() == 1
    assert agent.agent_id in page.inner_text("article")
    watched.seen("directory-found")
    page.fill("#q", "nobody of this name")
    page.click("text=Search")
    page.wait_for_selector("text=Nothing found")
    watched.seen("directory-nothing")
