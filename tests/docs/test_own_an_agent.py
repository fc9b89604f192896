"""The page for owners: its settings are settings, its paths are pages, its code looks like one."""

import re
from pathlib import Path

import httpx
import pytest

from broker.core.claim import read_code
from gateways.configure import load
from gateways.pages.routes import register
from gateways.web import quart_app
from tests.docs.pages import HOW_TO, blocks
from tests.gateways.pages.conftest import SESSION, Verbs

PAGE = "own-an-agent.md"
TEXT = (HOW_TO / PAGE).read_text()


def test_its_settings_are_taken(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "toml")
    file = tmp_path / "turret.toml"
    file.write_text(text)
    owners = load(file, {}).settings.owners
    assert (owners.sign_up, owners.session_idle_h, owners.session_days) == ("invitation", 12, 7)


def test_its_claim_code_has_the_form_of_one() -> None:
    (shown,) = re.findall(r"`(\w{5}(?:-\w{5})+)`", TEXT)
    assert read_code(shown) is not None


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(?:http://127.0.0.1:8766)?(/[a-z/-]+)`", TEXT))))
async def test_its_paths_are_pages(path: str) -> None:
    app, verbs = quart_app(), Verbs()
    verbs.answers["authorization_request"] = {
        "client_name": "An app",
        "client_id": "cl_1",
        "redirect_host": "app.example",
        "loopback_only": False,
        "scopes": ["message"],
        "resource": "http://turret.test/mcp",
    }
    register(app, verbs)  # type: ignore[arg-type]
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://turret.test") as client:
        if not path.startswith("/sign"):
            client.cookies.set("turret", SESSION, domain="turret.test")
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
