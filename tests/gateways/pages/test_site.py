"""From a request to a page: who is signed in, which forms are taken, and what goes wrong."""

from collections.abc import Callable

import httpx
import pytest

from broker.wire.refusals import refuse
from gateways.pages.browser import token_of
from gateways.pages.shell import HEADERS
from gateways.pages.site import away, sentence, wait_words
from tests.gateways.pages.conftest import SESSION, Browser, Verbs
from tests.support.html import Document

OPEN = ("/sign-in", "/sign-up", "/directory")
OWNED = ("/owner", "/owner/claim", "/owner/requests", "/owner/grants", "/owner/password")
FORMS = ("/sign-in", "/sign-up", "/sign-out", "/owner/claim", "/owner/requests", "/owner/grants", "/owner/password",
         "/consent")  # fmt: skip


@pytest.mark.requirement("pages.plain")
@pytest.mark.parametrize("path", OPEN + OWNED)
async def test_every_page_is_sound_html(owner: Browser, nobody: Browser, path: str) -> None:
    for browser in (owner, nobody):
        answer = await browser.get(path)
        if answer.status_code == 200:
            assert Document(answer.text).faults == []
        else:
            assert answer.status_code == 303
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.requirement("pages.signed-in")
@pytest.mark.parametrize("path", [*OWNED, "/consent?ask=a%26b"])
async def test_who_is_not_signed_in_is_led_there_and_back(nobody: Browser, path: str) -> None:
    answer = await nobody.get(path)
    assert answer.status_code == 303
    led = httpx.URL(answer.headers["location"])
    assert (led.path, led.params["next"]) == ("/sign-in", path)
    assert nobody.page == ""


@pytest.mark.requirement("pages.signed-in")
@pytest.mark.parametrize("path", [path for path in FORMS if path.startswith("/owner") or path == "/consent"])
async def test_a_form_of_nobody_does_nothing(nobody: Browser, verbs: Verbs, path: str) -> None:
    await nobody.get("/sign-in")
    answer = await nobody.post(path, code="x", grant_id="x", **({"ask": "a&b"} if path == "/consent" else {}))
    assert answer.status_code == 303
    led = httpx.URL(answer.headers["location"])
    assert (led.path, led.params["next"]) == (
        "/sign-in",
        "/consent?ask=a%26b" if path == "/consent" else path,
    )
    assert verbs.asked == []


@pytest.mark.requirement("pages.csrf")
@pytest.mark.parametrize("path", FORMS)
async def test_a_form_without_this_browsers_token_is_not_taken(
    owner: Browser, verbs: Verbs, path: str
) -> None:
    await owner.get("/owner/claim")
    for token in ("", "x", token_of("t" * 43)):
        answer = await owner.post(path, token, code="x", email="a@x", password="x" * 12, ask="x")
        assert answer.status_code == 403
        assert Document(answer.text).faults == []
        assert "Nothing was changed" in answer.text
        back = Document(answer.text).all("a")[-1].attributes["href"]
        assert back == ("/owner" if path in ("/sign-out", "/consent") else path)
    assert verbs.asked == []


@pytest.mark.requirement("pages.csrf")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://turret.test:8080"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_form_from_elsewhere_is_not_taken_even_with_the_token(
    owner: Browser, verbs: Verbs, headers: dict[str, str]
) -> None:
    owner.client.headers.update(headers)
    await owner.get("/owner/claim")
    assert (await owner.post("/owner/claim", code="x")).status_code == 403
    assert verbs.asked == []


@pytest.mark.requirement("pages.csrf")
async def test_a_sign_in_form_is_bound_to_its_browser(
    open_browser: Callable[..., httpx.AsyncClient], verbs: Verbs
) -> None:
    """Nobody signs somebody else in as himself: his token is of another cookie."""
    verbs.answers["sign_in"] = refuse("unauthenticated", "x")
    async with open_browser() as his, open_browser() as hers:
        theirs, mine = Browser(his), Browser(hers)
        await theirs.get("/sign-in")
        assert (await theirs.post("/sign-in", email="a@x", password="x")).status_code == 401
        await mine.get("/sign-in")
        mine.page = theirs.page
        assert (await mine.post("/sign-in", email="a@x", password="x")).status_code == 403
        hers.cookies.clear()
        assert (await mine.post("/sign-in", email="a@x", password="x")).status_code == 403


@pytest.mark.requirement("pages.cookie")
async def test_a_browser_gets_its_cookie_with_the_first_form_and_keeps_it(nobody: Browser) -> None:
    assert "set-cookie" not in (await nobody.get("/directory")).headers
    first = await nobody.get("/sign-in")
    assert "HttpOnly; SameSite=Lax" in first.headers["set-cookie"]
    assert "set-cookie" not in (await nobody.get("/sign-up")).headers
    assert "set-cookie" not in (await nobody.get("/directory")).headers


@pytest.mark.requirement("pages.cookie")
@pytest.mark.parametrize("url", ["https://turret.test", "http://turret.test"])
async def test_a_cookie_is_secure_where_we_are_found_by_tls(
    open_browser: Callable[..., httpx.AsyncClient], url: str
) -> None:
    async with open_browser(public_url=url) as client:
        cookie = (await client.get("/sign-in")).headers["set-cookie"]
        assert cookie.startswith("__Host-turret=") == cookie.endswith("; Secure") == url.startswith("https")


async def test_a_session_that_is_over_is_nobody(nobody: Browser) -> None:
    nobody.client.cookies.set("turret", SESSION[:-1] + "x", domain="turret.test")
    assert (await nobody.get("/owner")).status_code == 303


@pytest.mark.requirement("pages.errors")
async def test_a_fault_is_told_by_a_number_and_nothing_of_the_inside(
    owner: Browser, verbs: Verbs, caplog: pytest.LogCaptureFixture
) -> None:
    verbs.answers["my_agents"] = ZeroDivisionError("secret of the inside")
    answer = await owner.get("/owner")
    assert answer.status_code == 500
    assert Document(answer.text).faults == []
    number = caplog.records[0].getMessage().split()[1]
    assert number in answer.text
    for word in ("ZeroDivision", "secret of", "Traceback"):
        assert word not in answer.text


@pytest.mark.requirement("pages.errors")
@pytest.mark.parametrize("code", ["unavailable", "overloaded", "in_doubt"])
async def test_a_store_that_gives_nothing_signs_nobody_out(owner: Browser, verbs: Verbs, code: str) -> None:
    verbs.answers["session"] = refuse(code, "the store …")
    answer = await owner.get("/owner")
    assert (answer.status_code, "set-cookie" in answer.headers) == (503, False)
    assert "try again" in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
async def test_other_methods_are_none_of_a_page(owner: Browser, method: str) -> None:
    assert (await owner.client.request(method, "/owner")).status_code == 405


async def test_the_verbs_hear_from_where_the_browser_asks(owner: Browser, verbs: Verbs) -> None:
    await owner.get("/owner")
    assert [(each.address, each.loopback) for each in verbs.callers] == [("203.0.113.7", False)]


def test_a_refusal_is_told_to_people() -> None:
    shown = away(refuse("rate_limited", "x", retry_after_ms=61_000))
    assert "61 seconds" in shown.values["text"]
    assert away(refuse("not_found", "x")).status == 404
    assert (
        away(refuse("quota_exceeded", "this owner has no more")).values["text"] == "This owner has no more."
    )
    assert sentence("Done.") == "Done."
    assert [
        wait_words(refuse("rate_limited", "x", retry_after_ms=ms)) for ms in (1, 1000, 89_001, 3_600_000)
    ] == [
        "1 second",
        "1 second",
        "2 minutes",
        "60 minutes",
    ]
