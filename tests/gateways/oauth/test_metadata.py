"""The documents and challenges of the faces: pure."""

import pytest

from gateways.oauth.metadata import GUARDED, OPEN, WELL_KNOWN, Resources, face_of, origins_of, scopes_of

HERE = Resources(
    issuer="https://id.example/realm", origins=("https://turret.example", "https://other.example:8443")
)
FACES = ("", *(name for name in (*OPEN, *GUARDED) if name))


@pytest.mark.requirement("oauth.document")
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("slash", ["", "/"])
def test_each_face_has_a_document_whose_resource_is_the_typed_url(face: str, slash: str) -> None:
    place = (f"/mcp/{face}" if face else "/mcp") + slash
    document = HERE.document(f"{WELL_KNOWN}{place}", "turret.example")
    assert document is not None
    assert document["resource"] == f"https://turret.example{place}"
    assert document["authorization_servers"] == ["https://id.example/realm"]
    assert document["bearer_methods_supported"] == ["header"]
    assert document.get("scopes_supported", []) == list(scopes_of(face))
    assert "offline_access" not in scopes_of(face)


@pytest.mark.requirement("oauth.document")
@pytest.mark.parametrize("path", [WELL_KNOWN, f"{WELL_KNOWN}/"])
def test_the_root_form_is_the_document_of_the_endpoint(path: str) -> None:
    document = HERE.document(path, None)
    assert document is not None
    assert document["resource"] == "https://turret.example/mcp"


@pytest.mark.parametrize(
    "place", ["/mcp/nothing", "/mcp//", "/mcpx", "/v1", "/mcp/operator", "/mcp/wire/x", "x"]
)
def test_what_is_no_face_has_no_document(place: str) -> None:
    assert HERE.document(f"{WELL_KNOWN}{place}", "turret.example") is None
    assert HERE.document(place, "turret.example") is None


@pytest.mark.requirement("oauth.typed-url")
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("turret.example", "https://turret.example"),
        ("TURRET.example", "https://turret.example"),
        ("other.example:8443", "https://other.example:8443"),
        ("other.example", "https://turret.example"),
        ("evil.example", "https://turret.example"),
        ("", "https://turret.example"),
        (None, "https://turret.example"),
    ],
)
def test_a_host_chooses_among_our_origins_and_makes_none(host: str | None, origin: str) -> None:
    document = HERE.document(f"{WELL_KNOWN}/mcp", host)
    assert document is not None
    assert document["resource"] == f"{origin}/mcp"


@pytest.mark.requirement("oauth.challenge")
def test_a_challenge_leads_to_the_document_and_names_all_scopes_of_the_face() -> None:
    assert HERE.challenge("/mcp/arena/", "turret.example") == (
        f'Bearer resource_metadata="https://turret.example{WELL_KNOWN}/mcp/arena/", scope="arena"'
    )
    assert HERE.challenge("/mcp/wire", None, "invalid_token") == (
        f'Bearer resource_metadata="https://turret.example{WELL_KNOWN}/mcp/wire", error="invalid_token"'
    )
    assert 'scope="profile contacts message channel task resource"' in HERE.challenge("/mcp/network", None)
    assert 'scope="message"' in HERE.challenge("/mcp/network", None, "insufficient_scope", "message")


def test_a_mark_in_a_url_can_not_end_the_challenges_text() -> None:
    odd = Resources(issuer="https://id.example", origins=('https://a"b',))
    assert odd.challenge("/mcp/arena", None).startswith(r'Bearer resource_metadata="https://a\"b/.well-known')


@pytest.mark.requirement("oauth.audience")
def test_a_token_is_for_its_face_or_for_the_endpoint() -> None:
    arena = HERE.audiences("arena")
    assert {
        "https://turret.example/mcp",
        "https://turret.example/mcp/arena",
        "https://other.example:8443/mcp",
    } < arena
    assert "https://turret.example/mcp/trial" not in arena
    assert "https://turret.example" not in arena
    assert "https://turret.example/mcp/arena" not in HERE.audiences("")


def test_origins_are_lower_case_and_on_loopback_the_machines_own_name_is_one() -> None:
    assert origins_of("HTTPS://Turret.Example/", loopback=False) == ("https://turret.example",)
    assert origins_of("http://127.0.0.1:8766", loopback=True) == (
        "http://127.0.0.1:8766",
        "http://localhost:8766",
    )
    assert origins_of("http://localhost:1", loopback=True) == ("http://localhost:1",)


def test_a_path_names_a_face_or_none() -> None:
    assert [face_of(path) for path in ("/mcp", "/mcp/", "/mcp/trial", "/mcp/trial/")] == [
        "",
        "",
        "trial",
        "trial",
    ]
    assert [face_of(path) for path in ("/mcp//", "/", "", "/mcp/x", "mcp")] == [None] * 5
