"""An owner watches an agent play, in a real browser, with scripts and without, and stops the session."""

from typing import Any

import pytest

from tests.browser.clients import Agent
from tests.browser.conftest import LOOKS, Look, Opened
from tests.browser.test_journey import sign_up_and_claim

HOSTILE = '<img src="//evil.example/x" onerror="alert(1)"> \u202eevil'


class Player:
    """An agent in one session."""

    def __init__(self, agent: Agent, game: str, **config: Any) -> None:
        self._agent = agent
        self._keys = 0
        self.session = agent.call("open_session", game=game, config=config, idempotency_key=f"open-{game}")

    def act(self, action: dict[str, Any]) -> None:
        self._keys += 1
        session = self.session
        self.session = self._agent.call(
            "submit_action",
            session_id=session["session_id"],
            expected_version=session["version"],
            action=action,
            idempotency_key=f"{session['session_id']}-{self._keys}",
        )["session"]


@pytest.mark.requirement("pages.arena-live", "pages.arena-chart", "pages.arena-stop")
@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_an_owner_watches_an_agent_play_and_stops_it(broker: str, open_page: Opened, look: Look) -> None:
    watched = open_page(look)
    page = watched.page
    mine = Agent(broker, "Quote desk")
    sign_up_and_claim(watched, broker, mine)
    dealer = Player(mine, "rfq")
    for n in range(8):
        reference = dealer.session["observation"]["reference"]
        dealer.act({"type": "quote", "bid": reference - 8 - n % 3, "ask": reference + 8 + n % 3})
    page.click("text=Sessions of Quote desk in the arena")
    watched.seen("sessions")
    page.click("text=rfq 1,")
    chart = page.locator("svg.chart")
    box, place = chart.bounding_box(), page.locator("#points-title").bounding_box()
    assert box["height"] > 150
    assert box["width"] > 200
    assert box["x"] > place["x"]
    assert page.get_by_role("img", name="Points, action by action").count() == 1
    before = page.get_attribute("svg.chart path", "d")
    watched.seen("session")
    dealer.act({"type": "pass"})
    if look.scripts:
        page.wait_for_selector("#version:text-is('9')")
    else:
        page.click("text=Look again")
        assert page.inner_text("#version") == "9"
    assert page.get_attribute("svg.chart path", "d") != before
    page.click("text=Stop the session")
    assert page.inner_text("[role=status]") == "You stopped the session."
    assert "it was stopped" in page.inner_text("#live")
    assert page.locator("button:text('Stop the session')").count() == 0
    watched.seen("session-over")
    shown = mine.call("get_session", session_id=dealer.session["session_id"])["session"]
    assert (shown["over"], shown["version"]) == ("stopped", 10)
    assert shown["seed"] in page.inner_text("#live")


@pytest.mark.requirement("pages.arena-live")
def test_a_page_renews_itself_until_the_session_is_over_or_the_owner_is_signed_out(
    broker: str, open_page: Opened
) -> None:
    watched = open_page(LOOKS[2])
    page = watched.page
    mine = Agent(broker, "Quote desk")
    sign_up_and_claim(watched, broker, mine)
    player = Player(mine, "hilo", client_seed="<b>" + "y" * 40)
    session_id = player.session["session_id"]
    page.goto(f"{broker}/owner/session?id={session_id}")
    watched.seen("hilo-opened")
    player.act({"type": "stop"})
    page.wait_for_selector("#live:not([hx-get]) >> text=it was stopped")
    assert page.locator("button:text('Stop the session')").count() == 0
    watched.seen("hilo-over")
    player = Player(mine, "rfq")
    page.goto(f"{broker}/owner/session?id={player.session['session_id']}")
    page.context.clear_cookies()
    page.wait_for_selector("text=You are signed out.")
    assert page.locator("svg.chart").count() == 0
    watched.seen("signed-out")
