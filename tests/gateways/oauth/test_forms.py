"""Strict forms in, OAuth's errors out."""

import base64

import pytest

from broker.wire.refusals import Refusal, refuse, refuse_oauth
from gateways.oauth.forms import read_basic, read_form, refused, scopes_in


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", {}),
        ("a=b&c=d+e%20f", {"a": "b", "c": "d e f"}),
        ("a=&b=c", {"b": "c"}),
        ("a=%C3%A9", {"a": "é"}),
    ],
)
def test_a_form_is_read(text: str, form: dict[str, str]) -> None:
    assert read_form(text) == form


@pytest.mark.requirement("signin.forms")
@pytest.mark.parametrize(
    "text", ["a=b&a=b", "a=b&%61=c", "a", "a=b&&c", "a=%FF", "&".join(f"a{n}=b" for n in range(65))]
)
def test_what_is_no_form_or_says_a_thing_twice_is_refused(text: str) -> None:
    found = read_form(text)
    assert isinstance(found, Refusal)
    assert found.detail["error"] == "invalid_request"


def basic(text: bytes) -> str:
    return "Basic " + base64.b64encode(text).decode()


@pytest.mark.requirement("signin.forms")
def test_basic_gives_client_and_secret_each_form_encoded() -> None:
    assert read_basic(basic(b"a%3Ab:s+%25")) == ("a:b", "s %")
    assert read_basic(basic(b"a:")) == ("a", "")
    for nothing in (
        "Basic",
        "Basic !!",
        basic(b"no colon"),
        basic(b"\xff:x"),
        basic(b"%ff:x"),
        "Basic YTpi\n=",
    ):
        assert read_basic(nothing) is None


@pytest.mark.requirement("signin.forms")
@pytest.mark.parametrize(
    ("refusal", "status", "error", "headers"),
    [
        (refuse_oauth("invalid_grant", "x"), 400, "invalid_grant", {}),
        (
            refuse_oauth("invalid_client", "x"),
            401,
            "invalid_client",
            {"WWW-Authenticate": 'Basic realm="turret"'},
        ),
        (refuse("bad_request", "x", path="code"), 400, "invalid_request", {}),
        (
            refuse("rate_limited", "x", retry_after_ms=1500),
            429,
            "temporarily_unavailable",
            {"Retry-After": "2"},
        ),
        (refuse("unavailable", "x"), 503, "temporarily_unavailable", {}),
        (refuse("not_found", "x"), 400, "invalid_request", {}),
    ],
)
def test_a_refusal_is_told_as_oauth_tells_it(
    refusal: Refusal, status: int, error: str, headers: dict[str, str]
) -> None:
    reply = refused(refusal)
    assert (reply.status, reply.value["error"], reply.headers) == (status, error, headers)


def test_a_description_has_no_marks_that_oauth_forbids() -> None:
    assert refused(refuse_oauth("x", 'a "b" \\ é')).value["error_description"] == "a 'b' / ?"


def test_scopes_are_words() -> None:
    assert scopes_in({"scope": " a  b "}) == ["a", "b"]
    assert scopes_in({"scope": " "}) is None
    assert scopes_in({}) is None
