"""The console over a real broker, and an operator's browser without one."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from gateways.console import routes
from gateways.operator.gate import OperatorGate
from gateways.operator.token import OperatorToken
from gateways.web import quart_app
from tests.gateways.pages.conftest import Browser
from tests.support.broker import Bench
from tests.support.html import Document
from tests.support.operators import TOKEN

COOKIE = "turret-operator"
OF_FORMS = re.compile(r'name="(\w+)" value="([^"]*)"')


def document(text: str) -> Document:
    """A page, which must be sound: its three scripts are ours, by their address."""
    found = Document(text)
    assert [each for each in found.faults if "<script>" not in each] == []
    assert all(each.attributes["src"].startswith("/assets/") for each in found.all("script"))
    return found


@pytest.fixture
def counts() -> Counter[tuple[str, str]]:
    """Calls by (tool, outcome), as the metrics count them."""
    return Counter()


@pytest.fixture
def open_client(bench: Bench, counts: Counter[tuple[str, str]]) -> Callable[..., httpx.AsyncClient]:
    """A client of one console."""
    app = quart_app()
    gate = OperatorGate(bench.broker, OperatorToken(TOKEN))
    routes.register(app, bench.broker, gate, counts=counts)

    def opened(**options: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=app, client=("203.0.113.7", 1234))  # type: ignore[arg-type]
        return httpx.AsyncClient(transport=transport, base_url="http://console.test", **options)

    return opened


@pytest.fixture
async def nobody(open_client: Callable[..., httpx.AsyncClient]) -> AsyncIterator[Browser]:
    """A browser in which nobody is signed in."""
    async with open_client() as client:
        yield Browser(client)


@pytest.fixture
async def operator(open_client: Callable[..., httpx.AsyncClient]) -> AsyncIterator[Browser]:
    """A browser in which an operator is signed in."""
    async with open_client() as client:
        browser = Browser(client)
        await browser.get("/sign-in")
        assert (await browser.post("/sign-in", operator_token=TOKEN)).status_code == 303
        yield browser
