"""Signed tokens and what is done to them: algorithms swapped, keys confused, texts that can be read in two ways."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from gateways.oauth import jose

KEY = OKPKey.generate_key("Ed25519")
OTHER = OKPKey.generate_key("Ed25519")
CURVE = ECKey.generate_key("P-256")
MODULUS = RSAKey.generate_key(2048)
CLAIMS = {"iss": "a", "exp": 5}


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def decoded(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def made(header: Any = None, claims: Any = None, key: OKPKey = KEY) -> str:
    """A token whose header and claims are texts, signed over just these."""
    texts = [
        each if isinstance(each, str) else json.dumps(each)
        for each in (header or {"alg": "EdDSA"}, claims or CLAIMS)
    ]
    signed = ".".join(b64(each.encode()) for each in texts)
    return f"{signed}.{b64(key.private_key.sign(signed.encode()))}"  # type: ignore[union-attr]


def good(text: str, *keys: Key, algorithms: Any = jose.ASYMMETRIC, types: Any = ()) -> bool:
    token = jose.read(text)
    return token is not None and jose.verified(token, keys or (KEY,), algorithms, types) is not None


@pytest.mark.requirement("signin.jose")
@pytest.mark.parametrize(
    ("algorithm", "key"),
    [("EdDSA", KEY), ("Ed25519", KEY), ("ES256", CURVE), ("RS256", MODULUS), ("PS256", MODULUS)],
)
def test_a_token_is_verified_by_the_key_that_signed_it(algorithm: str, key: Any) -> None:
    if algorithm == "EdDSA":
        text = jose.signed({"alg": "EdDSA"}, CLAIMS, key)
    else:
        text = jwt.encode({"alg": algorithm}, CLAIMS, key, algorithms=[algorithm])
    public = type(key).import_key(key.as_dict(private=False))
    token = jose.read(text)
    assert token is not None
    assert token.claims == CLAIMS
    assert jose.verified(token, [OTHER, public], jose.ASYMMETRIC) is public
    assert jose.verified(token, [OTHER], jose.ASYMMETRIC) is None
    assert jose.verified(token, [public], ["ES512"]) is None
    forged = text[:-4] + ("AAAA" if not text.endswith("AAAA") else "BBBB")
    assert not good(forged, public)


@pytest.mark.requirement("signin.jose")
def test_none_and_shared_secrets_are_no_algorithms() -> None:
    head, claims = b64(b'{"alg":"none"}'), b64(b'{"iss":"a"}')
    for text in (f"{head}.{claims}.", f"{head}.{claims}.AA", f"{head}.{claims}"):
        assert not good(text)
    for cased in ("None", "NONE", "nOnE"):
        assert not good(made({"alg": cased}))
    public = KEY.as_dict(private=False)
    for secret in (public["x"].encode(), json.dumps(public).encode(), KEY.as_pem(private=False)):  # type: ignore[union-attr]
        signed = b64(b'{"alg":"HS256"}') + "." + claims
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        assert not good(f"{signed}.{b64(mac)}")
        assert not good(f"{signed}.{b64(mac)}", OctKey.import_key(b64(secret)[:40]))


@pytest.mark.requirement("signin.jose")
@pytest.mark.parametrize(
    "header",
    [
        {"alg": "EdDSA", "jwk": OTHER.as_dict(private=False)},
        {"alg": "EdDSA", "jku": "https://evil.example/keys"},
        {"alg": "EdDSA", "x5u": "https://evil.example/cert"},
        {"alg": "EdDSA", "kid": OTHER.thumbprint()},
        {"alg": "EdDSA", "kid": "../../../dev/null"},
        {"alg": "EdDSA", "kid": 7},
    ],
)
def test_what_a_header_says_of_keys_is_not_followed(header: dict[str, Any]) -> None:
    assert not good(made(header, key=OTHER))


@pytest.mark.requirement("signin.jose")
def test_a_key_id_picks_its_key_and_no_other_is_tried() -> None:
    assert good(made({"alg": "EdDSA", "kid": KEY.thumbprint()}), OTHER, KEY)
    assert not good(made({"alg": "EdDSA", "kid": OTHER.thumbprint()}), OTHER, KEY)


@pytest.mark.requirement("signin.jose")
@pytest.mark.parametrize(
    "header",
    [
        {"alg": "EdDSA", "crit": ["exp"], "exp": 1},
        {"alg": "EdDSA", "crit": []},
        {"alg": "EdDSA", "b64": False, "crit": ["b64"]},
        {"alg": ["EdDSA"]},
        {"alg": "ES256"},
        {"alg": "RS256"},
        {"alg": ""},
        {"typ": "JWT"},
    ],
)
def test_a_header_that_asks_for_more_or_does_not_fit_the_key_is_refused(header: dict[str, Any]) -> None:
    assert not good(made(header))


@pytest.mark.requirement("signin.jose")
@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ('{"alg":"EdDSA","alg":"none"}', '{"iss":"a"}'),
        ('{"alg":"EdDSA"}', '{"sub":"a","sub":"b"}'),
        ('{"alg":"EdDSA"}', '{"sub":"a","\\u0073ub":"b"}'),
        ('{"alg":"EdDSA"}', '{"exp":1e999}'),
        ('{"alg":"EdDSA"}', '{"exp":NaN}'),
        ('{"alg":"EdDSA"}', "[]"),
        ('{"alg":"EdDSA"}', '"x"'),
        ('{"alg":"EdDSA"}', "{} {}"),
        ('{"alg":"EdDSA"}', '{"a":' + "[" * 40 + "]" * 40 + "}"),
        ("[]", '{"iss":"a"}'),
    ],
)
def test_a_text_that_could_be_read_in_two_ways_is_none(header: str, claims: str) -> None:
    assert jose.read(made(header, claims)) is None


@pytest.mark.requirement("signin.jose")
def test_a_token_has_one_spelling() -> None:
    text = made()
    head, claims, sig = text.split(".")
    assert good(text)
    for other in (
        text + "=", text + "\n", " " + text, f"{head}.{claims}.{sig}.", f"{head}.{claims}", f"{head}=.{claims}.{sig}",
        f"{head}..{sig}", text.replace(".", "", 1), "", ".", "..", "a.b.c", "x" * 9000,
    ):  # fmt: skip
        assert not good(other), other
    for each in (head, claims, sig):
        spellings = [each[:-1] + mark for mark in ALPHABET if mark != each[-1]]
        alike = [other for other in spellings if decoded(other) == decoded(each)]
        assert alike or len(each) % 4 == 0
        assert not [other for other in alike if good(text.replace(each, other))]


def test_a_type_is_compared_without_its_case_and_its_prefix() -> None:
    for kind in ("at+jwt", "AT+JWT", "application/at+jwt"):
        assert good(made({"alg": "EdDSA", "typ": kind}), types=("at+jwt",))
    for kind in ("JWT", "", 7, None):
        assert not good(made({"alg": "EdDSA", "typ": kind}), types=("at+jwt",))


@pytest.mark.requirement("signin.jose")
def test_a_key_set_gives_the_public_keys_that_sign_and_passes_over_the_rest() -> None:
    small = {"kty": "RSA", "n": b64(b"\x80" + b"\x01" * 127), "e": "AQAB"}
    padded = {"kty": "RSA", "n": b64(bytes(200) + b"\x80" + b"\x01" * 127), "e": "AQAB"}
    huge = {"kty": "RSA", "n": b64(b"\x80" + b"\x01" * 2047), "e": "AQAB"}
    slow = {**MODULUS.as_dict(private=False), "e": b64(b"\x7f" * 200)}
    rows: list[Any] = [
        KEY.as_dict(private=False),
        CURVE.as_dict(private=False),
        MODULUS.as_dict(private=False),
        OTHER.as_dict(private=True),
        {"kty": "oct", "k": b64(b"k" * 32)},
        {**CURVE.as_dict(private=False), "use": "enc"},
        {**CURVE.as_dict(private=False), "key_ops": ["encrypt"]},
        {**CURVE.as_dict(private=False), "y": "AA"},
        {"kty": "OKP", "crv": "Ed25519", "x": 7},
        {"kty": "new"},
        {},
        7,
        small,
        padded,
        huge,
        slow,
    ]
    assert [key.key_type for key in jose.read_keys({"keys": rows})] == ["OKP", "EC", "RSA"]
    for nothing in (None, [], {}, {"keys": {}}, {"keys": "x"}):
        assert jose.read_keys(nothing) == []


def test_a_hex_key_is_the_same_key() -> None:
    assert jose.public_key(KEY.public_key.public_bytes_raw().hex()).thumbprint() == KEY.thumbprint()  # type: ignore[union-attr]


def test_claims_of_one_text_or_many_and_times() -> None:
    assert jose.texts("a") == jose.texts(["a", 7, None]) == {"a"}
    assert jose.texts(None) == frozenset()
    assert [jose.is_time(each) for each in (1, 1.5, True, "1", None)] == [True, True, False, False, False]
