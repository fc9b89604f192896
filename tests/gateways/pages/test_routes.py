"""The pages on the public port of a real broker: signed up, signed in, and behind its checks."""

from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from broker.app import Broker
from gateways.metrics import Metrics
from gateways.oauth.server import AUTHORIZE
from gateways.web import web_app
from gateways.wrappers import Origins
from tests.gateways.pages.conftest import Browser
from tests.support.agents import make_agent
from tests.support.authserver import signing_in
from tests.support.broker import open_bench, tuned
from tests.support.html import Document
from tests.support.owners import CHEAP, PASSWORD, new_owner
from tests.support.signin import answer_in


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        broker: Broker = bench.broker
        app = web_app(broker, Metrics(broker), origins=Origins())
        transport = httpx.ASGITransport(app=app, client=("203.0.113.7", 1234))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://turret.test") as client:
            yield Browser(client)


async def test_an_owner_signs_up_changes_the_password_and_signs_in_again(browser: Browser) -> None:
    await browser.get("/sign-up")
    assert (await browser.post("/sign-up", email="Ann@x.example", password=PASSWORD)).status_code == 303
    shown = await browser.get("/owner")
    assert (shown.status_code, Document(shown.text).faults) == (200, [])
    assert "ann@x.example" in shown.text
    assert "You have no agents yet." in shown.text
    await browser.get("/owner/password")
    fields = {"password": PASSWORD, "new_password": "another good horse"}
    assert (await browser.post("/owner/password", **fields)).status_code == 303
    assert (await browser.get("/owner/password?done=changed")).status_code == 200
    assert (await browser.post("/sign-out")).status_code == 303
    assert (await browser.get("/owner")).status_code == 303
    await browser.get("/sign-in")
    assert (await browser.post("/sign-in", email="ann@x.example", password=PASSWORD)).status_code == 401
    answer = await browser.post("/sign-in", email="ann@x.example", password="another good horse")
    assert answer.status_code == 303
    assert (await browser.get("/owner")).status_code == 200


@pytest.mark.requirement("pages.csrf")
async def test_a_form_of_another_page_does_not_even_come_here(browser: Browser) -> None:
    await browser.get("/sign-in")
    browser.client.headers["origin"] = "http://evil.example"
    answer = await browser.post("/sign-in", email="ann@x.example", password=PASSWORD)
    assert (answer.status_code, answer.headers["content-type"][:16]) == (403, "application/json")


async def test_a_form_beyond_any_size_is_not_read(browser: Browser) -> None:
    await browser.get("/sign-in")
    assert (await browser.post("/sign-in", email="a" * 100_000)).status_code == 413


async def test_the_style_is_served(browser: Browser) -> None:
    await browser.get("/sign-in")
    (link,) = Document(browser.page).all("link")
    style = await browser.get(link.attributes["href"])
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")


@pytest.mark.requirement("pages.consent", "pages.grants", "pages.not-mine")
async def test_an_app_is_let_in_for_an_agent_and_signed_out_again() -> None:
    """The whole way over real doors: authorize, sign in, consent, token, and refused once it is signed out."""
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench, signing_in(bench) as doors:
        browser, client_id = Browser(doors.http), (await doors.register())["client_id"]
        asked = await browser.get(AUTHORIZE, params=doors.query(client_id, scope="profile message channel"))
        shown = await browser.get(asked.headers["location"])
        await browser.get(shown.headers["location"])
        led = Document(browser.page).all("a")[-1].attributes["href"]
        await browser.get(led)
        (next,) = [each.attributes["value"] for each in Document(browser.page).all("input") if
                   each.attributes["name"] == "next"]  # fmt: skip
        signed_up = await browser.post("/sign-up", email="ann@x.example", password=PASSWORD, next=next)
        assert signed_up.headers["location"] == asked.headers["location"]
        owner_id = doors.http.cookies["turret"].partition(".")[0]
        mine = await make_agent(bench, "Mine", owner_id=owner_id, tier="claimed")
        other = await make_agent(bench, "Another", owner_id=await new_owner(bench), tier="claimed")
        page = await browser.get(asked.headers["location"])
        assert Document(page.text).faults == []
        (ask,) = httpx.URL(asked.headers["location"]).params.get_list("ask")
        fields = {"ask": ask, "scope": ["profile", "message"], "decision": "allow"}
        refused = await browser.post("/consent", **fields, subject=other.agent)
        assert (refused.status_code, "not yours" in refused.text) == (400, True)
        allowed = await browser.post("/consent", **fields, subject=mine.agent)
        back = answer_in(Document(allowed.text).one("back").attributes["href"])
        answer = await doors.token(**doors.redemption(client_id, back["code"]))
        bearer = {"authorization": f"Bearer {answer.json()['access_token']}"}
        me = await doors.ask("POST", "/v1/whoami", json={}, headers=bearer)
        assert (me.json()["agent_id"], me.json()["scopes"]) == (mine.agent, ["message", "profile"])
        await browser.get("/owner/grants")
        assert "An app" in browser.page
        (grant_id,) = [each.attributes["value"] for each in Document(browser.page).all("input") if
                       each.attributes["name"] == "grant_id"]  # fmt: skip
        assert (await browser.post("/owner/grants", grant_id=grant_id)).status_code == 303
        assert (await doors.ask("POST", "/v1/whoami", json={}, headers=bearer)).status_code == 401
        await browser.get("/owner/claim")
        assert (await browser.post("/owner/grants", grant_id="gr_" + "0" * 26)).status_code == 404
