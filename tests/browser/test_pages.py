"""The pages for one's own account, as a person uses them."""

from typing import Any

import pytest

from tests.browser.conftest import LOOKS, NARROW, WIDE, Look, Opened

EMAIL, PASSWORD = "ann@turret.example", "correct horse battery"


def sign_up(page: Any, url: str) -> None:
    page.goto(f"{url}/sign-up")
    page.fill("#email", EMAIL)
    page.fill("#password", PASSWORD)
    page.click("main button")


@pytest.mark.requirement("pages.plain")
@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_an_owner_signs_up_out_and_in_and_changes_the_password(
    broker: str, open_page: Opened, look: Look
) -> None:
    watched = open_page(look)
    page = watched.page
    page.goto(f"{broker}/owner")
    assert page.url == f"{broker}/sign-in?next=%2Fowner"
    watched.seen("sign-in")
    page.click("text=Sign up")
    page.fill("#email", EMAIL)
    page.fill("#password", "aaaaaaaaaaaaaaa")
    page.click("main button")
    assert page.title() == "Error: Sign up – Turret"
    watched.seen("sign-up-wrong")
    page.fill("#password", PASSWORD)
    page.click("main button")
    assert page.url == f"{broker}/owner"
    watched.seen("no-agents")
    page.click("text=Password")
    page.fill("#password", PASSWORD)
    page.fill("#new_password", "another good horse")
    page.click("main button")
    assert page.locator("[role=status]").inner_text().startswith("Your password is changed.")
    watched.seen("password-changed")
    page.click("text=Sign out")
    page.goto(f"{broker}/owner/requests")
    page.fill("#email", EMAIL)
    page.fill("#password", PASSWORD)
    page.click("main button")
    assert page.title() == "Error: Sign in – Turret"
    watched.seen("sign-in-wrong")
    page.fill("#password", "another good horse")
    page.click("main button")
    assert page.url == f"{broker}/owner/requests"
    watched.seen("no-requests")
    for path in ("owner/claim", "owner/grants", "directory"):
        page.goto(f"{broker}/{path}")
        watched.seen(path.replace("/", "-"))


@pytest.mark.requirement("pages.plain")
def test_a_keyboard_is_enough(broker: str, open_page: Opened) -> None:
    watched = open_page(NARROW)
    page = watched.page

    def focused() -> str:
        found: str = page.evaluate("(e => e.id || e.textContent.trim())(document.activeElement)")
        return found

    page.goto(f"{broker}/sign-up")
    page.keyboard.press("Tab")
    assert focused() == "Skip to the content"
    watched.seen("skip-link")
    page.keyboard.press("Enter")
    order = []
    for _ in range(4):
        page.keyboard.press("Tab")
        order.append(focused())
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert order == ["email", "password", "Sign up", "Sign in"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type(EMAIL)
    page.keyboard.press("Tab")
    page.keyboard.type("aaaaaaaaaaaaaaa")
    page.keyboard.press("Enter")
    page.wait_for_selector("#summary")
    page.keyboard.press("Tab")
    while focused() != "This password is too easy to guess; choose another.":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert focused() == "password"
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{broker}/owner")


@pytest.mark.requirement("pages.headers")
def test_no_other_page_frames_ours(broker: str, open_page: Opened) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.set_content(f'<iframe src="{broker}/sign-in"></iframe>')
    page.wait_for_timeout(500)
    assert "refused to connect" in page.frames[1].content() or not page.frames[1].locator("#email").count()
    assert [each for each in watched.wrong if "frame-ancestors" in each or "X-Frame-Options" in each]
    watched.wrong.clear()


@pytest.mark.requirement("pages.csrf")
def test_a_form_of_another_site_signs_nobody_in_or_out(broker: str, open_page: Opened) -> None:
    watched = open_page(WIDE)
    page = watched.page
    sign_up(page, broker)
    page.wait_for_url(f"{broker}/owner")
    page.route("http://evil.example/", lambda route: route.fulfill(content_type="text/html", body=f"""
        <form method="post" action="{broker}/sign-out"><button>win a prize</button></form>"""))  # fmt: skip
    page.goto("http://evil.example/")
    page.click("button")
    page.wait_for_url(f"{broker}/sign-out")
    assert "Origin" in page.content()
    page.goto(f"{broker}/owner")
    assert page.url == f"{broker}/owner"
    watched.wrong.clear()
