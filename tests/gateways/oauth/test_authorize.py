"""GET /oauth/authorize: who is led to the consent page, who is sent back, and who stays where it is."""

import html
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from broker.store.port import Unavailable
from gateways.oauth.server import AUTHORIZE
from gateways.outbound import Outbound
from tests.support.authserver import SignIns, signing_in
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.signin import REDIRECT, STATE, answer_in, signin

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": None}, "invalid_request"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
    ({"resource": "mcp"}, "invalid_target"),
    ({"scope": "operator everything"}, "invalid_scope"),
    ({"request": "x"}, "request_not_supported"),
    ({"request_uri": "https://app.example/x"}, "request_uri_not_supported"),
    ({"prompt": "none"}, "login_required"),
]
NOWHERE: list[dict[str, Any]] = [
    {"redirect_uri": "https://evil.example/"},
    {"redirect_uri": f"{REDIRECT}/more"},
    {"redirect_uri": "javascript:alert(1)"},
    {"client_id": "cl_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    {"client_id": "<script>alert(1)</script>"},
    {"client_id": None},
    {"client_id": "https://127.0.0.1/client"},
    {"client_id": "https://app.example"},
    {"client_id": "x" * 3000},
    {"state": "x" * 5000},
]


@pytest.mark.requirement("signin.authorize")
async def test_a_good_request_leads_to_the_consent_page(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    answer = await doors.ask("GET", AUTHORIZE, params=doors.query(client_id))
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location.startswith("/consent?ask=")
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    shown = await signin(doors.bench, "authorization_request", ask=location.removeprefix("/consent?ask="))
    assert (shown["scopes"], shown["resource"]) == (["message", "channel"], f"{doors.url}/mcp")


@pytest.mark.requirement("signin.authorize")
async def test_what_is_wrong_is_told_to_the_client_with_its_state_and_our_issuer(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    for changes, told in WRONG:
        answer = await doors.ask("GET", AUTHORIZE, params=doors.query(client_id, **changes))
        assert answer.status_code == 303
        assert answer.headers["location"].startswith(f"{REDIRECT}?")
        said = answer_in(answer.headers["location"])
        assert (said["error"], said["state"], said["iss"]) == (told, STATE, doors.url)
        assert "code" not in said


@pytest.mark.requirement("signin.authorize", "signin.unasked")
async def test_nobody_is_sent_to_another_site_unasked(doors: SignIns) -> None:
    """Anybody may register a client: our address would lead anywhere."""
    back = "https://app.example/back?a='b'&c=d"
    client_id = (await doors.register(redirect_uris=[back]))["client_id"]
    for changes, told in WRONG:
        params = doors.query(client_id, redirect_uri=back, **changes)
        answer = await doors.ask("GET", AUTHORIZE, params=params)
        assert (answer.status_code, "location" in answer.headers) == (400, False), changes
        assert "<bdi>app.example</bdi>" in answer.text
        (link,) = re.findall(r'<a href="([^"]*)">', answer.text)
        said = parse_qs(urlsplit(html.unescape(link)).query)
        assert (said["error"], said["state"], said["iss"]) == ([told], [STATE], [doors.url])
        assert html.unescape(link).startswith(back)


@pytest.mark.requirement("signin.bounds")
@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "image", 400),
        ("cross-site", "navigate", "iframe", 400),
        ("same-site", "no-cors", "empty", 400),
        ("cross-site", "navigate", "document", 303),
        ("none", "navigate", "document", 303),
        (None, "cors", None, 303),  # a program that says some of it
    ],
)
async def test_what_no_browser_shows_takes_no_place(
    doors: SignIns, site: str | None, mode: str, dest: str | None, status: int
) -> None:
    client_id = (await doors.register())["client_id"]
    given = {"site": site, "mode": mode, "dest": dest}
    headers = {f"sec-fetch-{name}": value for name, value in given.items() if value is not None}
    answer = await doors.ask("GET", AUTHORIZE, params=doors.query(client_id), headers=headers)
    assert answer.status_code == status
    assert len(doors.bench.broker._services.sign_in._asks) == (status == 303)


@pytest.mark.requirement("signin.redirect", "signin.authorize")
async def test_a_wrong_client_or_redirect_is_a_page_of_its_own(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    for changes in NOWHERE:
        answer = await doors.ask("GET", AUTHORIZE, params=doors.query(client_id, **changes))
        assert answer.status_code == 400, changes
        assert "location" not in answer.headers
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "<script" not in answer.text
        assert "evil.example" not in answer.text


@pytest.mark.requirement("signin.forms", "signin.authorize")
async def test_a_parameter_that_stands_twice_leads_nowhere(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    params = [*doors.query(client_id).items(), ("redirect_uri", "https://evil.example/")]
    answer = await doors.ask("GET", AUTHORIZE, params=params)
    assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.requirement("signin.resource")
async def test_scopes_that_are_not_asked_for_are_those_of_the_face(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    params = doors.query(client_id, scope=None, resource=f"{doors.url}/mcp/arena")
    answer = await doors.ask("GET", AUTHORIZE, params=params)
    shown = await signin(
        doors.bench, "authorization_request", ask=answer.headers["location"].removeprefix("/consent?ask=")
    )
    assert (shown["scopes"], shown["resource"]) == (["arena"], f"{doors.url}/mcp/arena")


@pytest.mark.requirement("signin.documents")
async def test_a_client_with_a_document_signs_in_without_registering(bench: Bench) -> None:
    """The document is on this machine, without TLS, which the way out is told to allow: see test_outbound."""
    document: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(document).encode()})

    class Here(Outbound):
        """Asks this machine for what is at https://app.example."""

        async def request(self, method: str, url: str, **options: Any) -> Any:
            assert url.startswith("https://app.example/")
            return await super().request(method, url.replace("https://app.example", served.url), **options)

    async with serving(app) as served, signing_in(bench, Here(loopback=True)) as doors:
        name = "https://app.example/client.json"
        document.update(client_id=name, client_name="App", redirect_uris=["http://127.0.0.1/back"])
        told = await doors.authorize(name)
        answer = await doors.token(**doors.redemption(name, told["code"]))
        assert answer.status_code == 200
        document.update(client_id="https://app.example/other.json")
        answer = await doors.ask("GET", AUTHORIZE, params=doors.query("https://app.example/new.json"))
        assert answer.status_code == 400


@pytest.mark.requirement("signin.authorize")
async def test_a_store_that_gives_nothing_now_is_a_page_that_says_so(
    doors: SignIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id = (await doors.register())["client_id"]

    async def broken(*_: Any) -> Any:
        raise Unavailable

    monkeypatch.setattr(doors.bench.store, "get", broken)
    answer = await doors.ask("GET", AUTHORIZE, params=doors.query(client_id))
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/html; charset=utf-8")
