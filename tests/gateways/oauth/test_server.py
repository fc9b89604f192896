"""What the server says of itself, to the letter, and for what it makes tokens."""

import pytest

from broker.app import Caller
from gateways.oauth import access, server
from gateways.oauth.keys import ACCESS_S
from gateways.oauth.metadata import GUARDED, WELL_KNOWN
from gateways.oauth.server import DOCUMENT, JWKS, SCOPES
from tests.support.authserver import SignIns


@pytest.mark.requirement("signin.metadata")
async def test_the_metadata_names_the_issuer_byte_for_byte_and_each_endpoint(doors: SignIns) -> None:
    answer = await doors.ask("GET", DOCUMENT)
    document = answer.json()
    protected = (await doors.ask("GET", f"{WELL_KNOWN}/mcp")).json()
    assert protected["authorization_servers"] == [document["issuer"]] == [doors.url]
    assert not document["issuer"].endswith("/")
    assert document == {
        "issuer": doors.url,
        "authorization_endpoint": f"{doors.url}/oauth/authorize",
        "token_endpoint": f"{doors.url}/oauth/token",
        "registration_endpoint": f"{doors.url}/oauth/register",
        "revocation_endpoint": f"{doors.url}/oauth/revoke",
        "introspection_endpoint": f"{doors.url}/oauth/introspect",
        "jwks_uri": f"{doors.url}/oauth/jwks",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": [
            "none",
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ],
        "token_endpoint_auth_signing_alg_values_supported": ["EdDSA", "Ed25519"],
        "revocation_endpoint_auth_methods_supported": [
            "none",
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ],
        "introspection_endpoint_auth_methods_supported": [
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }
    for path in (document["authorization_endpoint"], document["jwks_uri"]):
        assert (await doors.ask("GET", path.removeprefix(doors.url))).status_code in (200, 400)
    for name in ("token_endpoint", "registration_endpoint", "revocation_endpoint", "introspection_endpoint"):
        answer = await doors.ask("POST", document[name].removeprefix(doors.url))
        assert (answer.status_code, answer.headers["cache-control"]) == (400, "no-store")


@pytest.mark.requirement("signin.metadata")
@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        f"{DOCUMENT}/mcp",
        "/.well-known/openid-configuration/mcp",
        "/oauth/userinfo",
    ],
)
async def test_what_we_are_not_is_a_clean_404(doors: SignIns, path: str) -> None:
    answer = await doors.ask("GET", path)
    assert (answer.status_code, answer.json()["refusal"]["code"]) == (404, "not_found")


@pytest.mark.requirement("signin.metadata")
async def test_any_page_may_read_what_is_public_and_nothing_else(doors: SignIns) -> None:
    page = {"origin": "https://anywhere.example", "access-control-request-method": "GET"}
    for path in (DOCUMENT, JWKS):
        for method in ("GET", "OPTIONS"):
            answer = await doors.ask(method, path, headers=page)
            assert answer.status_code in (200, 204)
            assert answer.headers["access-control-allow-origin"] == "*"
    for path in ("/oauth/token", "/oauth/register", "/oauth/authorize"):
        assert (await doors.ask("POST", path, headers=page)).status_code == 403


@pytest.mark.requirement("signin.resource")
async def test_a_token_is_for_a_resource_of_ours_and_without_one_for_the_endpoint(doors: SignIns) -> None:
    whole = doors.server.target(None)
    assert whole is not None
    assert (whole.resource, whole.scopes) == (f"{doors.url}/mcp", SCOPES)
    named = doors.url.replace("127.0.0.1", "localhost")
    for face, scopes in GUARDED.items():
        for origin in (doors.url, named):
            for slash in ("", "/"):
                found = doors.server.target(f"{origin}/mcp/{face}{slash}")
                assert found is not None
                assert (found.resource, found.scopes) == (f"{origin}/mcp/{face}{slash}", scopes)
    wire = doors.server.target(f"{doors.url}/mcp/wire")
    assert wire is not None
    assert wire.scopes == SCOPES
    for other in (doors.url, f"{doors.url}/", f"{doors.url}/mcp/none", f"{doors.url}/mcp?x", f"{doors.url}/mcp#x",
                  "https://elsewhere.example/mcp", f"{doors.url}.evil.example/mcp", "mcp", " "):  # fmt: skip
        assert doors.server.target(other) is None


@pytest.mark.requirement("signin.rotation")
async def test_the_set_of_keys_shows_a_rotation_at_once(doors: SignIns) -> None:
    first = (await doors.sign_in())["access_token"]
    old = (await doors.ask("GET", JWKS)).json()["keys"]
    new = doors.server.keys.rotate(doors.bench.clock.now_ms())
    rows = (await doors.ask("GET", JWKS)).json()["keys"]
    assert [row["kid"] for row in rows] == [old[0]["kid"], new]
    second = (await doors.sign_in())["access_token"]
    for token in (first, second):
        assert isinstance(await doors.identify(token), Caller)


@pytest.mark.requirement("signin.bearer")
async def test_a_signature_is_verified_once_and_a_token_still_ends_in_time(
    doors: SignIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await doors.sign_in())["access_token"]
    asked = []
    real = access.read
    monkeypatch.setattr(access, "read", lambda *args: asked.append(args) or real(*args))
    for _ in range(3):
        assert doors.server.read(token) is not None
    assert len(asked) == 1
    doors.bench.clock.step(ACCESS_S * 1000)
    assert doors.server.read(token) is None
    monkeypatch.setattr(server, "KEPT", 2)
    tokens = [(await doors.sign_in())["access_token"] for _ in range(4)]
    assert all(doors.server.read(each) is not None for each in tokens)
    assert len(doors.server._read) == 2
