"""The pages to sign up, in and out, and to change the password."""

from collections.abc import Callable

import httpx
import msgspec
import pytest

from broker.config import Settings
from broker.wire.refusals import refuse
from tests.gateways.pages.conftest import OWNER_ID, SESSION, Browser, Verbs
from tests.support.html import Document
from tests.support.owners import CHEAP

SIGNED_IN = {"owner_id": OWNER_ID, "email": "ann@x.example", "session": SESSION}


def errors_of(page: str) -> dict[str, str]:
    """The field that each error is tied to, by what a screen reader follows."""
    document = Document(page)
    assert document.faults == []
    found = {}
    for field in document.all("input"):
        if field.attributes.get("aria-invalid") == "true":
            error = field.attributes["aria-describedby"].split()[-1]
            found[field.attributes["name"]] = document.one(error).text.removeprefix("Error: ")
    if found:
        assert document.all("title")[0].text.startswith("Error: ")
        assert [
            each.attributes["href"] for each in document.all("a") if each.inside("ul") and each.inside("main")
        ] == [f"#{name}" for name in found]
    return found


@pytest.mark.requirement("pages.sign-in")
async def test_who_signs_in_gets_another_cookie_and_goes_on(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_in"] = SIGNED_IN
    await nobody.get("/sign-in?next=/consent%3Fask%3Dabc")
    before = nobody.client.cookies["turret"]
    fields = {"email": "ann@x.example", "password": "a good horse", "next": "/consent?ask=abc"}
    assert 'value="/consent?ask=abc"' in nobody.page
    answer = await nobody.post("/sign-in", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/consent?ask=abc")
    assert nobody.client.cookies["turret"] == SESSION != before
    assert verbs.asked == [("sign_in", {"email": "ann@x.example", "password": "a good horse"})]
    assert (await nobody.get("/sign-in")).headers["location"] == "/owner"


@pytest.mark.requirement("pages.next")
async def test_nobody_is_led_to_another_site(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_in"] = verbs.answers["sign_up"] = SIGNED_IN
    for path in ("/sign-in", "/sign-up"):
        nobody.client.cookies.clear()
        await nobody.get(path)
        answer = await nobody.post(path, email="a@x", password="x", next="https://evil.example/")
        assert answer.headers["location"] == "/owner"
        assert (await nobody.get(f"{path}?next=//evil.example")).headers["location"] == "/owner"


@pytest.mark.requirement("pages.sign-in")
async def test_a_wrong_sign_in_says_so_at_the_field_and_keeps_no_password(
    nobody: Browser, verbs: Verbs
) -> None:
    verbs.answers["sign_in"] = refuse("unauthenticated", "x")
    await nobody.get("/sign-in?next=/owner/claim")
    answer = await nobody.post("/sign-in", email="<b>@x", password="wrong horse", next="/owner/claim")
    assert answer.status_code == 401
    assert errors_of(answer.text) == {
        "email": "The e-mail or the password is wrong. Check both, and try again."
    }
    document = Document(answer.text)
    assert document.one("email").attributes["value"] == "<b>@x"
    assert "value" not in document.one("password").attributes
    assert "wrong horse" not in answer.text
    assert 'value="/owner/claim"' in answer.text


async def test_an_empty_sign_in_asks_nobody(nobody: Browser, verbs: Verbs) -> None:
    await nobody.get("/sign-in")
    answer = await nobody.post("/sign-in", email=" ")
    assert answer.status_code == 400
    assert set(errors_of(answer.text)) == {"email", "password"}
    assert verbs.asked == []


@pytest.mark.requirement("owners.throttled", "pages.errors")
async def test_too_many_tries_say_how_long_to_wait(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_in"] = refuse("rate_limited", "x", retry_after_ms=41_500)
    await nobody.get("/sign-in")
    answer = await nobody.post("/sign-in", email="a@x", password="x")
    assert answer.status_code == 429
    assert "Wait 42 seconds" in errors_of(answer.text)["email"]
    verbs.answers["sign_in"] = refuse("overloaded", "x", retry_after_ms=41_500)
    assert (await nobody.post("/sign-in", email="a@x", password="x")).status_code == 503


async def test_a_field_beyond_any_size_is_a_wrong_one(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_in"] = refuse("bad_request", "email: too long", path="email")
    await nobody.get("/sign-in")
    assert (await nobody.post("/sign-in", email="a" * 5000, password="x")).status_code == 401


@pytest.mark.requirement("pages.sign-up")
async def test_who_signs_up_is_signed_in(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_up"] = SIGNED_IN
    await nobody.get("/sign-up?next=/owner/claim")
    assert "Invitation" not in nobody.page
    answer = await nobody.post("/sign-up", email="a@x", password="a good horse", next="/owner/claim")
    assert (answer.status_code, answer.headers["location"]) == (303, "/owner/claim")
    assert nobody.client.cookies["turret"] == SESSION
    assert verbs.asked == [("sign_up", {"email": "a@x", "password": "a good horse"})]


@pytest.mark.requirement("pages.sign-up")
@pytest.mark.parametrize(
    ("refusal", "field", "words"),
    [
        (refuse("bad_request", "x", path="email"), "email", "name@example.org"),
        (
            refuse("bad_request", "a password has at least 12 characters", path="password"),
            "password",
            "A password has",
        ),
        (refuse("already_exists", "x", path="email"), "email", "Sign in instead"),
    ],
)
async def test_what_is_wrong_in_signing_up_is_said_at_its_field(
    nobody: Browser, verbs: Verbs, refusal: object, field: str, words: str
) -> None:
    verbs.answers["sign_up"] = refusal
    await nobody.get("/sign-up")
    answer = await nobody.post("/sign-up", email="a@x", password="x")
    assert answer.status_code == 400
    errors = errors_of(answer.text)
    assert list(errors) == [field]
    assert words in errors[field]


@pytest.mark.requirement("owners.invitations")
@pytest.mark.parametrize("mode", ["invitation", "closed", None])
async def test_the_page_knows_who_may_sign_up(
    verbs: Verbs, open_browser: Callable[..., httpx.AsyncClient], mode: str | None
) -> None:
    verbs.settings = Settings(owners=msgspec.structs.replace(CHEAP, sign_up=mode))
    verbs.answers["sign_up"] = refuse("not_found", "x", path="invitation")
    async with open_browser() as client:
        browser = Browser(client)
        shown = await browser.get("/sign-up")
        assert shown.status_code == (403 if mode == "closed" else 200)
        assert ('name="invitation"' in shown.text) == (mode != "closed")
        await browser.get("/sign-in")
        if mode == "closed":
            sent = await browser.post("/sign-up", email="a@x", password="x", invitation=" ")
            assert (sent.status_code, verbs.asked) == (403, [])
        shown = await browser.get("/sign-up?invitation=abc")  # the operators' invitation serves in any case
        assert Document(shown.text).faults == []
        assert (shown.status_code, 'value="abc"' in shown.text) == (200, True)
        sent = await browser.post("/sign-up", email="a@x", password="x", invitation="abc")
        assert list(errors_of(sent.text)) == ["invitation"]
        assert verbs.asked == [("sign_up", {"email": "a@x", "password": "x", "invitation": "abc"})]


async def test_an_invitation_is_taken_where_anybody_may_sign_up(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_up"] = SIGNED_IN
    await nobody.get("/sign-up?invitation=abc")
    assert 'value="abc"' in nobody.page
    await nobody.post("/sign-up", email="a@x", password="x", invitation="abc")
    assert verbs.asked == [("sign_up", {"email": "a@x", "password": "x", "invitation": "abc"})]


@pytest.mark.requirement("pages.sign-in")
async def test_signing_out_ends_the_session_and_changes_the_cookie(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_out"] = {}
    await owner.get("/owner")
    answer = await owner.post("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert ("sign_out", {"session": SESSION}) in verbs.asked
    assert owner.client.cookies["turret"] != SESSION
    assert (await owner.get("/owner")).status_code == 303


async def test_a_sign_out_that_could_not_be_written_is_none(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["sign_out"] = refuse("unavailable", "x")
    await owner.get("/owner")
    assert (await owner.post("/sign-out")).status_code == 503
    assert owner.client.cookies["turret"] == SESSION


@pytest.mark.requirement("pages.password")
async def test_a_changed_password_gives_another_cookie(owner: Browser, verbs: Verbs) -> None:
    other = SESSION[:-1] + "o"
    verbs.answers["change_password"] = {**SIGNED_IN, "session": other}
    await owner.get("/owner/password")
    answer = await owner.post(
        "/owner/password", password="old", new_password="a new horse", owner_id="ow_other"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/owner/password?done=changed")
    assert owner.client.cookies["turret"] == other
    asked = {"owner_id": OWNER_ID, "password": "old", "new_password": "a new horse"}
    assert verbs.asked == [("change_password", asked)]


@pytest.mark.requirement("pages.password")
@pytest.mark.parametrize("field", ["password", "new_password"])
async def test_what_is_wrong_with_a_password_is_said_at_its_field(
    owner: Browser, verbs: Verbs, field: str
) -> None:
    verbs.answers["change_password"] = refuse("bad_request", "this will not do", path=field)
    await owner.get("/owner/password?done=changed")
    assert Document(owner.page).all("p")[0].attributes["role"] == "status"
    answer = await owner.post("/owner/password", password="old", new_password="new")
    assert errors_of(answer.text) == {field: "This will not do."}
    verbs.answers["change_password"] = refuse("rate_limited", "x", retry_after_ms=1000)
    await owner.get("/owner/password")
    assert (await owner.post("/owner/password", password="old", new_password="new")).status_code == 429
