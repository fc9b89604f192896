"""The official client's own OAuth support gets in with nothing but the URL; a scripted browser plays the owner."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientMetadata,
)

from tests.support.agents import make_agent
from tests.support.authserver import SignIns, claims_of
from tests.support.official import Kept
from tests.support.signin import REDIRECT, answer_in


@pytest.fixture
def collected() -> Iterator[None]:
    """What the official client leaves behind is collected here, under the test's filter."""
    yield
    gc.collect()


class Browser:
    """Goes where it is sent, and has the owner consent."""

    def __init__(self, doors: SignIns, subject: str | None) -> None:
        self.doors = doors
        self.subject = subject
        self.told: dict[str, str] = {}
        self.visits = 0

    async def visit(self, url: str) -> None:
        self.visits += 1
        answer = await self.doors.ask("GET", url)
        assert answer.status_code == 303, answer.text
        self.told = answer_in(await self.doors.consent(answer.headers["location"], self.subject))

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.told["code"], state=self.told["state"], iss=self.told["iss"])


@pytest.mark.requirement("signin.flow")
# The client leaves its response iterators to the garbage collector; nothing of ours.
@pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(
    ("mode", "path"),
    [("legacy", "/mcp/network"), ("auto", "/mcp/network/"), ("legacy", "/mcp"), ("auto", "/mcp")],
)
async def test_the_official_client_gets_in_with_nothing_but_the_url(
    doors: SignIns, mode: str, path: str
) -> None:
    agent = (await make_agent(doors.bench, "mine", owner_id=doors.owner)).agent
    browser, kept, typed = Browser(doors, agent), Kept(), f"{doors.url}{path}"
    redirect: Any = REDIRECT
    provider = OAuthClientProvider(
        typed, OAuthClientMetadata(redirect_uris=[redirect]), kept, browser.visit, browser.come_back
    )
    with trio.fail_after(20):
        for _ in range(2):  # the second time with what it has kept
            async with create_mcp_http_client(auth=provider) as http:
                transport = streamable_http_client(typed, http_client=http)
                async with Client(transport, mode=mode) as client:
                    assert (await client.list_tools()).tools
                    mine = await client.call_tool("whoami", {})
                    assert not mine.is_error
                    assert mine.structured_content is not None
                    assert mine.structured_content["agent_id"] == agent
    assert browser.visits == 1
    assert kept.tokens is not None
    claims = claims_of(kept.tokens.access_token)
    assert (claims["sub"], claims["aud"]) == (agent, typed)
