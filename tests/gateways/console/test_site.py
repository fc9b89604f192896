"""Who is not signed in sees nothing and changes nothing; every page has the headers that keep others out."""

import hashlib
import tomllib
from typing import Any

import pytest

from broker.wire.refusals import refuse
from gateways.console.site import ASSETS, NAV, POLICY, Console, away
from gateways.operator.gate import OperatorGate
from gateways.operator.token import OperatorToken
from gateways.web import quart_app
from tests.gateways.console.conftest import document
from tests.gateways.pages.conftest import Browser
from tests.sizes import ROOT
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.operators import TOKEN


@pytest.mark.requirement("console.sign-in")
async def test_who_is_not_signed_in_is_led_to_sign_in_from_every_page(nobody: Browser) -> None:
    for path in [path for path, _ in NAV] + ["/agents/ag_1", "/conversations/0123456789abcdef", "/none"]:
        answer = await nobody.get(path)
        if path == "/none":
            assert answer.status_code == 404
        else:
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path
            assert answer.text == ""


@pytest.mark.requirement("console.sign-in")
async def test_a_page_without_a_session_can_ask_the_broker_for_nothing(bench: Bench) -> None:
    gate = OperatorGate(bench.broker, OperatorToken(TOKEN))
    with pytest.raises(AssertionError):
        await Console(quart_app(), bench.broker, gate).ask(None, "list_agents")


@pytest.mark.requirement("console.sign-in")
async def test_who_comes_by_a_link_of_another_site_keeps_the_session(nobody: Browser) -> None:
    """The browser keeps a Strict cookie back there; a fresh one would take its place."""
    nobody.client.headers["sec-fetch-site"] = "cross-site"
    for path in ("/agents", "/sign-in"):
        answer = await nobody.get(path)
        assert "set-cookie" not in answer.headers
        assert f'<a class="button" href="{path}">' in answer.text


@pytest.mark.requirement("console.csrf")
@pytest.mark.parametrize("path", ["/agents", "/desks", "/calls/end", "/reports", "/audit/verify"])
async def test_a_form_does_nothing_without_a_session_or_the_browsers_token(
    bench: Bench, nobody: Browser, operator: Browser, path: str
) -> None:
    ann = await make_agent(bench, "ann")
    fields = {"agent_id": ann.agent, "do": "suspend", "key": "k", "reason": "r"}
    await nobody.get("/sign-in")
    assert (await nobody.post(path, **fields)).headers["location"] == "/sign-in"
    await operator.get("/")
    assert (await operator.post(path, "x", **fields)).status_code == 403
    operator.client.headers.update({"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"})
    await operator.get("/")
    assert (await operator.post(path, **fields)).status_code == 403
    held = await operator.get("/agents?only=suspended")
    assert ann.agent not in held.text


@pytest.mark.requirement("console.csrf")
@pytest.mark.parametrize(
    ("site", "dest", "known"),
    [
        ("same-origin", "empty", True),
        ("none", "document", True),
        ("same-site", "document", True),
        ("same-site", "image", False),
        ("same-site", "iframe", False),
        ("cross-site", "empty", False),
    ],
)
async def test_as_a_part_of_anothers_page_nothing_is_of_the_session(
    operator: Browser, site: str, dest: str, known: bool
) -> None:
    shown = await operator.client.get("/health", headers={"sec-fetch-site": site, "sec-fetch-dest": dest})
    assert shown.status_code == (200 if known else 303)
    assert (await operator.get("/health")).status_code == 200, "the session stays"


@pytest.mark.requirement("console.alone")
async def test_every_page_loads_our_own_files_alone_and_is_in_no_frame_and_no_cache(
    operator: Browser,
) -> None:
    for path, _ in NAV:
        answer = await operator.get(path)
        assert answer.status_code == 200, path
        document(answer.text)
        assert answer.headers["content-security-policy"] == POLICY
        assert "unsafe" not in POLICY
        assert answer.headers["cache-control"] == "no-store"
        assert f'<li><a href="{path}" aria-current="page">' in answer.text
    for place in ("htmx.min.js", "htmx-ext-sse.js", "console.js", "console.css"):
        asset = await operator.get(f"/assets/{place}")
        assert asset.status_code == 200
        assert asset.headers["x-content-type-options"] == "nosniff"
        assert asset.headers["content-type"].startswith("text/")
    assert (await operator.get("/assets/NOTICE")).status_code == 404
    for path in ("/report", "/agents/x/y"):
        astray = await operator.get(path)
        assert (astray.status_code, 'href="/"' in astray.text) == (404, True), "no page is a dead end"


async def test_a_fault_is_a_page_with_a_number_and_nothing_of_the_inside(
    bench: Bench, operator: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(bench.broker, "call", fail)
    answer = await operator.get("/agents")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    document(answer.text)


def test_a_refusal_is_a_page_with_its_status() -> None:
    assert away(refuse("not_found", "there is no such agent")).status == 404
    assert away(refuse("rate_limited", "wait", retry_after_ms=3000)).values["text"].endswith("in 3 seconds.")


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("htmx.min.js", "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"),
        ("htmx-ext-sse.js", "3b5992a541619babefc4c169505af474df5c3039da51e59b96ccf9241ecd61d2"),
    ],
)
def test_what_is_others_is_as_they_published_it(name: str, digest: str) -> None:
    assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
    assert name in (ASSETS / "NOTICE").read_text()


def test_every_file_is_packed() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    for folder in ("console/assets", "console/templates", "verifying/parts"):
        assert f"{folder}/*" in packed["gateways"]
