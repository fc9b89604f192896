"""Access tokens: their claims, and that no other token is taken for one."""

import base64
from typing import Any

import msgspec
import pytest
from joserfc.jwk import OKPKey

from broker.app import Caller
from gateways.oauth import access, jose
from gateways.oauth.keys import ACCESS_S, ROTATE_MS, SigningKeys

NOW = 1_782_345_678_900
ISSUER = "https://turret.example"
AGENT, OWNER = "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ow_01ARZ3NDEKTSV4RRFFQ69G5FAV"
CLAIMS: dict[str, Any] = {
    "sub": AGENT,
    "aud": f"{ISSUER}/mcp",
    "client_id": "cl_x",
    "scope": "message channel",
}


def mint(keys: SigningKeys, **changes: Any) -> str:
    return access.mint(keys, NOW, "jti", ISSUER, **{**CLAIMS, **changes})


def read(keys: SigningKeys, token: str, now: int = NOW, issuer: str = ISSUER) -> access.Access | None:
    return access.read(keys, now, issuer, token)


@pytest.mark.requirement("signin.tokens")
def test_a_token_says_what_rfc_9068_asks_for_and_whose_it_is() -> None:
    keys = SigningKeys.open(None, NOW)
    token = jose.read(mint(keys, owner=OWNER, grant="gr_x", akid="kid"))
    assert token is not None
    assert token.header == {"alg": "EdDSA", "typ": "at+jwt", "kid": keys.present(NOW).thumbprint()}
    assert token.claims == {
        "iss": ISSUER,
        **CLAIMS,
        "iat": NOW // 1000,
        "exp": NOW // 1000 + ACCESS_S,
        "jti": "jti",
        "owner": OWNER,
        "grant": "gr_x",
        "akid": "kid",
    }


@pytest.mark.requirement("signin.tokens")
def test_a_token_makes_a_caller() -> None:
    keys = SigningKeys.open(None, NOW)
    found = read(keys, mint(keys, owner=OWNER, grant="gr_x", akid="kid"))
    assert found is not None
    assert found.caller(Caller(address="203.0.113.9", loopback=False)) == Caller(
        address="203.0.113.9",
        loopback=False,
        principal=AGENT,
        agent=AGENT,
        owner=OWNER,
        client="cl_x",
        grant="gr_x",
        kid="kid",
        issued=NOW // 1000,
        scopes=frozenset({"message", "channel"}),
        until=NOW // 1000 + ACCESS_S,
    )
    own = read(keys, mint(keys, sub=OWNER, owner=OWNER))
    assert own is not None
    assert (own.caller(Caller()).agent, own.caller(Caller()).principal) == (None, OWNER)


@pytest.mark.requirement("signin.tokens")
def test_a_token_is_over_after_fifteen_minutes() -> None:
    keys = SigningKeys.open(None, NOW)
    token, end = mint(keys), (NOW // 1000 + ACCESS_S) * 1000
    assert read(keys, token, end - 1) is not None
    assert read(keys, token, end) is None


@pytest.mark.requirement("signin.rotation")
def test_a_token_outlives_the_rotation_of_its_key() -> None:
    keys = SigningKeys.open(None, NOW - ROTATE_MS + 1)
    token = mint(keys)
    keys.rotate(NOW + 1)
    assert read(keys, token, NOW + ACCESS_S * 1000 - 1000) is not None
    assert read(SigningKeys.open(None, NOW), token) is None


@pytest.mark.requirement("signin.tokens", "signin.jose")
@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({"typ": "JWT"}, {}),
        ({"typ": None}, {}),
        ({"alg": "Ed25519"}, {}),
        ({"kid": None}, {}),
        ({"kid": "another"}, {}),
        ({}, {"iss": f"{ISSUER}/"}),
        ({}, {"iss": "https://elsewhere.example"}),
        ({}, {"exp": None}),
        ({}, {"exp": "4000000000"}),
        ({}, {"exp": 4_000_000_000.5}),
        ({}, {"iat": None}),
        ({}, {"aud": [f"{ISSUER}/mcp"]}),
        ({}, {"sub": "somebody"}),
        ({}, {"sub": None}),
        ({}, {"scope": ["message"]}),
        ({}, {"jti": None}),
        ({}, {"owner": 7}),
    ],
)
def test_what_our_own_key_signed_is_no_access_token_unless_it_is_one(
    header: dict[str, Any], claims: dict[str, Any]
) -> None:
    keys = SigningKeys.open(None, NOW)
    key = keys.present(NOW)
    whole = {"iss": ISSUER, **CLAIMS, "iat": NOW // 1000, "exp": 4_000_000_000, "jti": "j"}
    head = {"alg": "EdDSA", "typ": "at+jwt", "kid": key.thumbprint()}
    assert read(keys, jose.signed(head, whole, key)) is not None
    changed = [
        {k: v for k, v in {**a, **b}.items() if v is not None} for a, b in ((head, header), (whole, claims))
    ]
    assert read(keys, jose.signed(changed[0], changed[1], key)) is None


@pytest.mark.requirement("signin.jose")
def test_a_stranger_who_knows_a_key_id_signs_nothing() -> None:
    keys = SigningKeys.open(None, NOW)
    token = jose.read(mint(keys))
    assert token is not None
    forged = jose.signed(token.header, token.claims, OKPKey.generate_key("Ed25519"))
    assert read(keys, forged) is None
    claims = msgspec.json.encode({**token.claims, "sub": OWNER})
    head, _, sig = token.text.split(".")
    middle = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
    assert read(keys, f"{head}.{middle}.{sig}") is None
