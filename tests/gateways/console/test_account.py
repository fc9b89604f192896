"""Signing in with the operators' token, and out."""

from collections.abc import Callable

import httpx
import pytest

from gateways.console import routes
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.gateways.console.conftest import COOKIE, document
from tests.gateways.pages.conftest import Browser
from tests.support.asgi import asked
from tests.support.broker import Bench
from tests.support.operators import TOKEN


@pytest.mark.requirement("console.sign-in")
async def test_the_token_opens_a_session_with_another_cookie_and_a_wrong_one_does_not(
    nobody: Browser,
) -> None:
    shown = await nobody.get("/sign-in")
    document(shown.text)
    before = shown.headers["set-cookie"]
    assert before.startswith(f"{COOKIE}=")
    assert before.endswith("; Path=/; HttpOnly; SameSite=Strict")
    for wrong, status in (("not the token", 401), ("", 400), (TOKEN.upper(), 401)):
        refused = await nobody.post("/sign-in", operator_token=wrong)
        assert refused.status_code == status
        assert 'aria-invalid="true"' in refused.text
        assert (await nobody.get("/agents")).headers["location"] == "/sign-in"
        await nobody.get("/sign-in")
    opened = await nobody.post("/sign-in", operator_token=f" {TOKEN}\n")
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert opened.headers["set-cookie"].split(";")[0] != before.split(";")[0]
    assert "SameSite=Strict" in opened.headers["set-cookie"]
    assert (await nobody.get("/agents")).status_code == 200
    assert (await nobody.get("/sign-in")).headers["location"] == "/"


@pytest.mark.requirement("console.sign-in")
async def test_by_tls_the_cookie_is_of_this_host_and_goes_by_tls_alone(
    open_client: Callable[..., httpx.AsyncClient],
) -> None:
    async with open_client() as client:
        browser = Browser(client)
        await browser.get("https://console.test/sign-in")
        answer = await browser.post("https://console.test/sign-in", operator_token=TOKEN)
        assert answer.status_code == 303
        assert answer.headers["set-cookie"].startswith(f"__Host-{COOKIE}=")
        assert answer.headers["set-cookie"].endswith("; Secure")
        assert (await browser.get("https://console.test/agents")).status_code == 200


@pytest.mark.requirement("console.sign-in")
async def test_behind_a_proxys_tls_the_cookie_goes_by_tls_alone_too(bench: Bench) -> None:
    app = operator_app(bench.broker, OperatorToken(TOKEN), url="https://ops.example", pages=[routes.register])
    there = await asked(app, "/sign-in", {"host": "ops.example"})
    assert there.headers["set-cookie"].startswith(f"__Host-{COOKIE}=")
    assert there.headers["set-cookie"].endswith("; Secure")
    here = await asked(app, "/sign-in")
    assert here.headers["set-cookie"].startswith(f"{COOKIE}=")


@pytest.mark.requirement("console.sign-in")
async def test_signing_out_ends_the_session_and_not_the_cookie_alone(
    operator: Browser, open_client: Callable[..., httpx.AsyncClient]
) -> None:
    stolen = operator.client.cookies[COOKIE]
    await operator.get("/")
    assert (await operator.post("/sign-out")).headers["location"] == "/sign-in"
    async with open_client(cookies={COOKIE: stolen}) as client:
        assert (await client.get("/agents")).headers["location"] == "/sign-in"


@pytest.mark.requirement("console.sign-in")
async def test_tries_are_limited(nobody: Browser) -> None:
    statuses = []
    for _ in range(60):
        await nobody.get("/sign-in")
        statuses.append((await nobody.post("/sign-in", operator_token="guess")).status_code)
        if statuses[-1] == 429:
            break
    assert statuses[-1] == 429
    assert "Too many tries. Wait" in nobody.page
    await nobody.get("/sign-in")
    assert (await nobody.post("/sign-in", operator_token=TOKEN)).status_code == 303


@pytest.mark.requirement("console.csrf")
async def test_a_form_of_another_page_signs_nobody_in(nobody: Browser) -> None:
    await nobody.get("/sign-in")
    refused = await nobody.post("/sign-in", "no token of ours", operator_token=TOKEN)
    assert refused.status_code == 403
    nobody.client.headers["origin"] = "http://evil.test"
    await nobody.get("/sign-in")
    assert (await nobody.post("/sign-in", operator_token=TOKEN)).status_code == 403
