"""The token's faces through the real doors: a stub issuer and a broker on real sockets."""

import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
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

from broker.clock import SystemClock
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.mcp.tools import BESIDE
from gateways.metrics import Metrics
from gateways.oauth.bearer import Bearers
from gateways.oauth.metadata import GUARDED, WELL_KNOWN, Resources
from gateways.oauth.outside import open_tokens
from gateways.web import web_app
from tests.gateways.mcp.harness import BOTH, modern, request
from tests.support.broker import Bench
from tests.support.broker_fake import proof
from tests.support.issuer import CLIENT, SECRET, Issuer, issuing
from tests.support.network import serving
from tests.support.official import Kept

FACES = tuple(f"/mcp/{name}" for name in GUARDED)
OPEN = ("/mcp", "/mcp/wire")
LIST = request("tools/list", 7)
HELLO = request(
    "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
)


@pytest.fixture
def collected() -> Iterator[None]:
    """What the official client leaves behind is collected here, under the test's filter."""
    yield
    gc.collect()


class Doors:
    """A broker's public port under an issuer."""

    def __init__(self, issuer: Issuer, url: str, http: httpx.AsyncClient) -> None:
        self.issuer = issuer
        self.url = url
        self.http = http

    def token(self, name: str = "t", place: str = "/mcp", **claims: Any) -> str:
        """A token for a resource of ours, with all scopes."""
        scope = " ".join(scope for scopes in GUARDED.values() for scope in scopes)
        return self.issuer.give(name, f"{self.url}{place}", **{"scope": scope, **claims})

    async def post(self, path: str, body: Any, token: str | None = None, **headers: str) -> httpx.Response:
        """A POST; header names take _ for -."""
        shown = {"authorization": f"Bearer {token}"} if token is not None else {}
        named = {
            name.replace("_", "-"): value for name, value in {"accept": BOTH, **shown, **headers}.items()
        }
        with trio.fail_after(5):
            return await self.http.post(path, json=body, headers=named)


@asynccontextmanager
async def opened(bench: Bench, issuer: Issuer) -> AsyncIterator[Doors]:
    """The real doors. The port is known only when they stand, so that the application comes a moment later."""
    inner: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await inner[0](scope, receive, send)

    async with serving(app) as server, open_tokens(issuer.url, CLIENT, SECRET, SystemClock()) as tokens:
        here = (server.url, server.url.replace("127.0.0.1", "localhost"))
        resources = Resources(issuer=issuer.url, origins=here)
        mcp = mcp_app(bench.broker, protected=Protected(resources, Bearers(bench.broker, tokens)))
        inner.append(web_app(bench.broker, Metrics(bench.broker), mcp_app=mcp, resources=resources))
        async with httpx.AsyncClient(base_url=server.url, verify=False) as http:
            yield Doors(issuer, server.url, http)
        mcp.drain()


@pytest.fixture
async def doors(bench: Bench) -> AsyncIterator[Doors]:
    async with issuing() as issuer, opened(bench, issuer) as found:
        yield found


def names_of(bench: Bench, path: str) -> set[str]:
    """The tools of the face that a path names."""
    face = path.strip("/").removeprefix("mcp/")
    named = {tool.name for tool in bench.broker.tools.values() if tool.face == face}
    return named | BESIDE.get(face, frozenset())


def challenge_of(answer: httpx.Response) -> str:
    found: str = answer.headers["www-authenticate"]
    return found


@pytest.mark.requirement("oauth.guarded-faces", "oauth.challenge")
@pytest.mark.parametrize("path", FACES)
async def test_a_guarded_face_asks_for_a_token_before_anything_else(doors: Doors, path: str) -> None:
    expected = (
        f'Bearer resource_metadata="{doors.url}{WELL_KNOWN}{path}", scope="{" ".join(GUARDED[path[5:]])}"'
    )
    for answer in (
        await doors.post(path, LIST),
        await doors.post(path, HELLO),
        await doors.post(path, {}, mcp_session_id="x", accept="text/plain"),
        await doors.http.post(path, content=b"\xff" * 100_000),
        await doors.http.get(path),
        await doors.http.delete(path, headers={"mcp-session-id": "x"}),
        await doors.http.put(path),
        await doors.post(path, LIST, authorization=f"Turret {proof()}"),
    ):
        assert answer.status_code == 401
        assert answer.json()["error"]["data"]["code"] in ("unauthenticated", "bad_statement")
        assert challenge_of(answer) == expected
    assert doors.issuer.asked == []


@pytest.mark.requirement("oauth.bad-token", "oauth.audience")
@pytest.mark.parametrize("path", [*FACES, *OPEN])
async def test_a_bad_an_expired_and_a_token_for_another_resource_are_401(doors: Doors, path: str) -> None:
    others = "/mcp/trial" if path == "/mcp/arena" else "/mcp/arena"
    doors.token("old", exp=1_000_000_000)
    doors.token("theirs", others)
    doors.issuer.give("elsewhere", "https://elsewhere.example/mcp")
    doors.issuer.give("origin", doors.url)
    for token in ("unknown", "old", "theirs", "elsewhere", "origin", "a,b"):
        answer = await doors.post(path, LIST, token)
        assert answer.status_code == 401, token
        assert 'error="invalid_token"' in challenge_of(answer)
        assert challenge_of(answer).startswith(f'Bearer resource_metadata="{doors.url}{WELL_KNOWN}{path}"')


@pytest.mark.requirement("oauth.bad-token")
@pytest.mark.parametrize("words", ["Bearer", "bearer", "BEARER  x y"])
async def test_a_bearer_without_a_token_is_a_bad_one(doors: Doors, words: str) -> None:
    for path in ("/mcp", "/mcp/arena"):
        answer = await doors.post(path, LIST, authorization=words)
        assert answer.status_code == 401
        assert 'error="invalid_token"' in challenge_of(answer)


@pytest.mark.requirement("oauth.secrecy")
async def test_no_door_tells_or_logs_a_token(doors: Doors, caplog: pytest.LogCaptureFixture) -> None:
    doors.token("t0psecret-good")
    with caplog.at_level("INFO"):
        for token in ("t0psecret-good", "t0psecret-bad"):
            for path in ("/mcp", "/mcp/arena"):
                answer = await doors.post(path, LIST, token)
                assert "t0psecret" not in answer.text + str(answer.headers)
    assert "t0psecret" not in caplog.text


@pytest.mark.requirement("oauth.guarded-faces", "oauth.audience")
@pytest.mark.parametrize("path", FACES)
async def test_with_a_good_token_a_guarded_face_answers_in_both_eras(
    bench: Bench, doors: Doors, path: str
) -> None:
    doors.token("own", path, sub="a")
    doors.token("whole", "/mcp", sub="b")
    doors.token("slash", f"{path}/", sub="c")
    for token in ("own", "whole", "slash"):
        hello = await doors.post(path, HELLO, token)
        assert hello.status_code == 200
        session = {"mcp_session_id": hello.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
        legacy = await doors.post(f"{path}/", LIST, token, **session)
        assert {tool["name"] for tool in legacy.json()["result"]["tools"]} == names_of(bench, path)
        for method in ("server/discover", "tools/list"):
            body, headers = modern(method)
            answer = await doors.post(path, body, token, **headers)
            assert answer.status_code == 200, answer.text
        listed = {tool["name"] for tool in answer.json()["result"]["tools"]}
        assert listed == names_of(bench, path)


@pytest.mark.requirement("oauth.scope")
async def test_a_token_without_a_scope_of_the_face_is_403_with_all_of_them(doors: Doors) -> None:
    doors.token("poor", scope="arena message")
    answer = await doors.post("/mcp/trial", LIST, "poor")
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (403, "insufficient_scope")
    assert 'error="insufficient_scope", scope="trial"' in challenge_of(answer)
    assert (await doors.post("/mcp/network", LIST, "poor")).status_code == 200, "one of the face's is enough"


@pytest.mark.requirement("oauth.open-faces")
@pytest.mark.parametrize("path", OPEN)
async def test_an_open_face_needs_no_token_and_takes_a_good_one(doors: Doors, path: str) -> None:
    doors.token("good", scope="")
    for token in (None, "good"):
        answer = await doors.post(path, LIST, token)
        assert answer.status_code == 200
        assert answer.json()["result"]["tools"]
    bad = await doors.post(path, LIST, "bad", mcp_session_id="nobody's")
    assert (bad.status_code, bad.json()["id"]) == (401, 7)


async def test_a_bad_statement_on_an_open_face_is_told_of_both_ways_in(doors: Doors) -> None:
    answer = await doors.post("/mcp", LIST, authorization="Turret x")
    assert answer.status_code == 401
    ways = answer.headers.get_list("www-authenticate")
    assert ways[0].startswith("Bearer resource_metadata=")
    assert "invalid_token" not in ways[0]
    assert ways[1:] == ["Turret"]


@pytest.mark.requirement("oauth.session")
async def test_a_session_survives_a_refreshed_token_and_is_nobody_elses(doors: Doors) -> None:
    for name, sub, client in (
        ("one", "a", "app"),
        ("two", "a", "app"),
        ("app", "a", "x"),
        ("other", "b", "app"),
    ):
        doors.token(name, sub=sub, client_id=client)
    session = (await doors.post("/mcp/arena", HELLO, "one")).headers["mcp-session-id"]
    named = {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}
    for same in ("two", "app"):
        assert (await doors.post("/mcp/arena", LIST, same, **named)).status_code == 200
    assert (await doors.post("/mcp/arena", LIST, "other", **named)).status_code == 404
    assert (await doors.post("/mcp", LIST, **named)).status_code == 404
    assert (await doors.post("/mcp/arena", LIST, **named)).status_code == 401, "a session is no token"


@pytest.mark.requirement("oauth.issuer-away")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/arena"])
async def test_an_issuer_that_is_away_is_503_and_only_for_those_with_a_token(doors: Doors, path: str) -> None:
    doors.token("good")
    doors.issuer.fails = 500
    answer = await doors.post(path, LIST, "good")
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "5"
    assert "www-authenticate" not in answer.headers
    assert (await doors.post(path, LIST)).status_code == (200 if path == "/mcp" else 401)


@pytest.mark.requirement("oauth.document", "oauth.typed-url")
@pytest.mark.parametrize("path", [*OPEN, *FACES])
@pytest.mark.parametrize("slash", ["", "/"])
async def test_24_the_resource_of_a_document_is_the_url_that_was_typed(
    doors: Doors, path: str, slash: str
) -> None:
    for origin in (doors.url, doors.url.replace("127.0.0.1", "localhost")):
        answer = await doors.http.get(f"{WELL_KNOWN}{path}{slash}", headers={"host": urlsplit(origin).netloc})
        assert answer.status_code == 200
        assert answer.json()["resource"] == f"{origin}{path}{slash}"
        assert answer.json()["authorization_servers"] == [doors.issuer.url]
        refused = await doors.post(f"{path}{slash}", LIST, "bad", host=urlsplit(origin).netloc)
        assert f'resource_metadata="{origin}{WELL_KNOWN}{path}{slash}"' in challenge_of(refused)


@pytest.mark.requirement("oauth.document")
async def test_any_page_may_read_the_documents(doors: Doors) -> None:
    page = {"origin": "https://anywhere.example"}
    for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp", f"{WELL_KNOWN}/mcp/arena"):
        ask = {
            **page,
            "access-control-request-method": "GET",
            "access-control-request-headers": "mcp-protocol-version",
        }
        for answer in (await doors.http.get(path, headers=page), await doors.http.options(path, headers=ask)):
            assert answer.status_code in (200, 204)
            assert answer.headers.get_list("access-control-allow-origin") == ["*"]
    missing = await doors.http.get(f"{WELL_KNOWN}/mcp/nothing", headers=page)
    assert (missing.status_code, missing.headers["access-control-allow-origin"]) == (404, "*")
    assert (await doors.http.get("/healthz", headers=page)).status_code == 403
    assert (await doors.http.get(WELL_KNOWN, headers={"host": "evil.example"})).status_code == 421


@pytest.mark.requirement("oauth.guarded-faces")
async def test_without_an_issuer_there_are_no_documents_and_no_guarded_faces(bench: Bench) -> None:
    app = web_app(bench.broker, Metrics(bench.broker), mcp_app=mcp_app(bench.broker))
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as http:
        for path in FACES:
            assert (await http.post(path, json=LIST)).status_code == 404
            assert (await http.get(f"{WELL_KNOWN}{path}")).status_code == 404
        answer = await http.post("/mcp", json=LIST, headers={"authorization": "Bearer x"})
        assert (answer.status_code, challenge_of(answer)) == (401, "Turret")


@pytest.mark.requirement("oauth.challenge", "oauth.document")
# The client leaves its response iterators to the garbage collector; nothing of ours.
@pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(("mode", "path"), [("legacy", "/mcp/arena"), ("auto", "/mcp/network/")])
async def test_the_official_client_finds_its_way_in_from_the_401_alone(
    bench: Bench, doors: Doors, mode: str, path: str
) -> None:
    asked: list[dict[str, list[str]]] = []
    typed = f"{doors.url}{path}"

    async def visit(url: str) -> None:
        asked.append(parse_qs(urlsplit(url).query))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code="c", state=asked[-1]["state"][0])

    doors.issuer.grants = typed
    redirect: Any = "http://127.0.0.1:1/back"
    provider = OAuthClientProvider(
        typed, OAuthClientMetadata(redirect_uris=[redirect]), Kept(), visit, come_back
    )
    with trio.fail_after(10):
        async with create_mcp_http_client(auth=provider) as http:
            transport = streamable_http_client(typed, http_client=http)
            async with Client(transport, mode=mode) as client:
                listed = {tool.name for tool in (await client.list_tools()).tools}
                assert listed == names_of(bench, path)
    assert asked[0]["resource"] == [typed]
    assert asked[0]["scope"] == [" ".join(GUARDED[path.strip("/")[4:]])]
    assert isinstance(http, httpx2.AsyncClient)
