"""Cookies, tokens, origins, and where one may be led: what keeps a browser's forms ours."""

import pytest

from gateways.pages.browser import (
    FIELDS,
    Form,
    cookie_name,
    is_ours,
    is_token,
    new_secret,
    read_cookie,
    read_form,
    read_next,
    token_of,
    write_cookie,
)

SECRET = "s" * 43


def test_a_form_is_read_with_all_its_values_in_order() -> None:
    form = read_form(b"email=a%40x&scope=message&scope=channel&empty=&sp=a+b&u=%E2%82%AC")
    assert form is not None
    assert (form.one("email"), form.one("sp"), form.one("u")) == ("a@x", "a b", "\u20ac")
    assert form.many("scope") == ["message", "channel"]
    assert (form.one("empty"), form.one("absent"), form.many("absent")) == ("", "", [])
    assert read_form(b"") == Form()


@pytest.mark.requirement("pages.hostile")
@pytest.mark.parametrize("text", [b"a=%ff", b"a=\xff", b"&".join(b"a=b" for _ in range(FIELDS + 1))])
def test_what_is_no_form_is_none(text: bytes) -> None:
    assert read_form(text) is None


@pytest.mark.requirement("pages.csrf")
def test_a_token_is_bound_to_the_browsers_secret() -> None:
    assert is_token(token_of(SECRET), SECRET)
    for given in ("", token_of(SECRET)[:-1], token_of("t" * 43), SECRET, "\u20ac"):
        assert not is_token(given, SECRET)
    assert SECRET not in token_of(SECRET)
    assert len(new_secret()) == 43
    assert new_secret() != new_secret()


@pytest.mark.requirement("pages.cookie")
def test_a_cookie_is_for_this_site_alone_and_no_script_reads_it() -> None:
    assert write_cookie(SECRET, secure=False) == f"turret={SECRET}; Path=/; HttpOnly; SameSite=Lax"
    assert write_cookie(SECRET, secure=True) == (
        f"__Host-turret={SECRET}; Path=/; HttpOnly; SameSite=Lax; Secure"
    )


@pytest.mark.parametrize(
    ("headers", "expect"),
    [
        ([f"turret={SECRET}"], SECRET),
        ([f"other={{odd; x; =; turret={SECRET} ; y=1"], SECRET),
        (["a=b", f"turret={SECRET}"], SECRET),
        ([], None),
        ([""], None),
        (["turret=short"], None),
        (["turret=" + "x" * 200], None),
        (["turret=" + "\u20ac" * 43], None),
        ([f"Turret={SECRET}"], None),
        ([f"__Host-turret={SECRET}"], None),
    ],
)
def test_a_cookie_is_found_among_others(headers: list[str], expect: str | None) -> None:
    assert read_cookie(headers, secure=False) == expect


@pytest.mark.requirement("pages.cookie")
def test_under_tls_a_cookie_that_came_without_it_is_none() -> None:
    assert read_cookie([f"turret={SECRET}"], secure=True) is None
    assert read_cookie([f"{cookie_name(True)}={SECRET}"], secure=True) == SECRET


@pytest.mark.requirement("pages.csrf")
@pytest.mark.parametrize(
    ("origin", "site", "expect"),
    [
        ("", "", True),
        ("http://localhost:8766", "same-origin", True),
        ("http://LOCALHOST:8766", "", True),
        ("https://turret.example", "same-origin", True),
        ("", "none", True),
        ("http://localhost:9999", "", False),
        ("http://localhost", "", False),
        ("http://evil.example", "", False),
        ("null", "", False),
        ("", "cross-site", False),
        ("http://localhost:8766", "same-site", False),
    ],
)
def test_a_form_comes_from_this_very_origin(origin: str, site: str, expect: bool) -> None:
    given = {"origin": origin, "site": site, "host": "localhost:8766"}
    assert is_ours(**given, public_url="https://turret.example/") is expect


@pytest.mark.requirement("pages.next")
@pytest.mark.parametrize(
    "text",
    [
        "/owner",
        "/owner/requests",
        "/owner/grants?done=revoked",
        "/consent?ask=a-b_c",
        "/directory?q=a%20b&after=3",
    ],
)
def test_who_signs_in_goes_on_to_a_page_of_ours(text: str) -> None:
    assert read_next(text) == text


@pytest.mark.requirement("pages.next")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "owner",
        "//evil.example",
        "//evil.example/owner",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/owner",
        "http:/owner",
        "javascript:alert(1)",
        "/owner\n//evil.example",
        "/owner\r\nset-cookie: a=b",
        "/sign-out",
        "/mcp",
        "/owner/../mcp",
        "/owner/",
        "/owner#x",
        "/%6fwner",
        " /owner",
        "/owner\u20ac",
        "/directory?q=\u20ac",
        "/directory?q=\x01",
        "/directory?q=a\r\nset-cookie: b",
        "//[",
    ],
)
def test_and_nowhere_else(text: str) -> None:
    assert read_next(text) == "/owner"
