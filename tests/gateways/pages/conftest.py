"""The pages in front of verbs that a test answers for, and a browser without one."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from broker.app import Caller
from broker.config import Settings
from broker.wire.refusals import Refusal, refuse
from gateways.pages.routes import register
from gateways.web import quart_app
from tests.support.owners import CHEAP

OWNER_ID = "ow_01JZ0000000000000000000000"
AGENT_ID = "ag_01JZ0000000000000000000000"
SESSION = f"{OWNER_ID}.{'s' * 43}"
TOKEN = re.compile(r'name="token" value="([^"]+)"')


class Verbs:
    """The broker as the pages know it: `answers[verb]` is a value, a Refusal, an exception to raise, or a function of
    the params. `asked` is what was asked, but for `session`."""

    mcp_url = "http://turret.test/mcp"

    def __init__(self) -> None:
        self.settings = Settings(owners=CHEAP)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.callers: list[Caller] = []
        self.answers: dict[str, Any] = {
            "session": lambda params: (
                {"owner_id": OWNER_ID, "email": "ann@x.example"}
                if params["session"] == SESSION
                else refuse("unauthenticated", "sign in")
            ),
            "my_agents": {"agents": []},
            "my_agent": refuse("not_found", "there is no such agent"),
            "my_sessions": refuse("not_found", "there is no such agent"),
            "my_trials": refuse("not_found", "there is no such agent"),
            "my_session": refuse("NOT_FOUND", "there is no such session"),
            "my_session_mark": refuse("NOT_FOUND", "there is no such session"),
            "stop_my_session": refuse("NOT_FOUND", "there is no such session"),
            "waiting_requests": {"requests": []},
            "list_grants": {"grants": []},
            "search_directory": {"agents": []},
        }

    async def signin(self, caller: Caller, name: str, params: bytes) -> Any:
        given = httpx.Response(200, content=params).json()
        if name != "session":
            self.asked.append((name, given))
            self.callers.append(caller)
        answer = self.answers[name]
        if callable(answer):
            answer = answer(given)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Browser:
    """Follows no redirect by itself, keeps cookies, fills in forms by the page that it has."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.page = ""

    async def get(self, path: str, **options: Any) -> httpx.Response:
        answer = await self.client.get(path, **options)
        self.page = answer.text
        return answer

    async def post(self, path: str, _token: str | None = None, **fields: Any) -> httpx.Response:
        """Send a form with the token of the page last shown."""
        found = TOKEN.search(self.page)
        token = _token if _token is not None else found[1] if found else ""
        answer = await self.client.post(path, data={"token": token, **fields})
        self.page = answer.text
        return answer


@pytest.fixture
def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
def open_browser(verbs: Verbs) -> Callable[..., httpx.AsyncClient]:
    """A client of the pages; `signed_in` puts the session's cookie in it."""

    def opened(signed_in: bool = False, **options: Any) -> httpx.AsyncClient:
        app = quart_app()
        register(app, verbs, **options)  # type: ignore[arg-type]
        transport = httpx.ASGITransport(app=app, client=("203.0.113.7", 1234))  # type: ignore[arg-type]
        client = httpx.AsyncClient(transport=transport, base_url="http://turret.test")
        if signed_in:
            client.cookies.set("turret", SESSION, domain="turret.test")
        return client

    return opened


@pytest.fixture
async def owner(open_browser: Callable[..., httpx.AsyncClient]) -> AsyncIterator[Browser]:
    """A browser in which an owner is signed in."""
    async with open_browser(signed_in=True) as client:
        yield Browser(client)


@pytest.fixture
async def nobody(open_browser: Callable[..., httpx.AsyncClient]) -> AsyncIterator[Browser]:
    """A browser in which nobody is signed in."""
    async with open_browser() as client:
        yield Browser(client)


def code_of(answer: Any) -> str:
    return answer.code if isinstance(answer, Refusal) else "accepted"
