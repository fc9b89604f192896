"""The operators' token: what can serve as one, and what is kept of it."""

import secrets
from pathlib import Path

import pytest

from gateways.operator.token import OperatorToken, WeakToken, bits_of, find_token
from tests.support.operators import TOKEN


@pytest.mark.requirement("operator.token")
@pytest.mark.parametrize(
    "text",
    [
        secrets.token_urlsafe(16),
        secrets.token_hex(16),
        secrets.token_hex(16).upper(),
        secrets.token_urlsafe(32) + "==",
        "turret_" + secrets.token_urlsafe(32),
    ],
    ids=[
        "base64url",
        "hex",
        "capital hex",
        "padded",
        "named",
    ],  # by chance no two workers would name them alike
)
def test_a_token_of_128_bits_serves_whatever_it_is_written_in(text: str) -> None:
    token = OperatorToken(f"  {text}\n")
    assert token.matches(text)
    assert not token.matches(text[:-1])
    assert not token.matches(text + "A")
    assert not token.matches("")
    assert not token.matches("\udcff é")


@pytest.mark.requirement("operator.token")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected one line"),
        ("two words of which there are many", "expected one line"),
        ("a" * 1025, "expected one line"),
        ("ü" * 40, "expected one line"),
        ("Tr0ub4dor&3", "expected one line"),
        ("correct-Horse-battery", "too easy"),
        ("0123456789abcdef0123456789abcde", "too easy"),  # 31 hex digits: 124 bits
        ("31415926535897932384626433832795028841", "too easy"),  # 38 digits: 126 bits
        ("abcdefghijklmnopqrstuvwx", "too easy"),  # 24 of 36: 124 bits
        ("aB" * 30, "too easy"),
        ("=" * 40, "expected one line"),
    ],
)
def test_what_is_guessed_sooner_is_refused_without_being_shown(text: str, said: str) -> None:
    with pytest.raises(WeakToken) as refused:
        OperatorToken(text)
    assert said in str(refused.value)
    assert not text or text not in str(refused.value)


@pytest.mark.requirement("operator.token")
def test_the_token_itself_is_not_kept() -> None:
    text = secrets.token_urlsafe(32)
    token = OperatorToken(text)
    assert text not in repr(token)
    assert text not in repr(vars(token))


def test_padding_is_no_chance() -> None:
    assert bits_of("abcdef==") == bits_of("abcdef")


@pytest.mark.requirement("operator.token")
def test_a_file_stands_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    found = find_token(str(file), {"TURRET_OPERATOR_TOKEN": secrets.token_urlsafe(32)})
    assert found is not None
    assert found.matches(TOKEN)
    given = find_token(None, {"TURRET_OPERATOR_TOKEN": TOKEN})
    assert given is not None
    assert given.matches(TOKEN)
    assert find_token(None, {"TURRET_OPERATOR_TOKEN_FILE": "x"}) is None


@pytest.mark.requirement("operator.token")
@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40, b"a1-" * 1000])
def test_where_a_token_that_can_not_serve_came_from_is_said(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(WeakToken, match=f"^{file}: "):
        find_token(str(file), {})
    with pytest.raises(WeakToken, match=r"^TURRET_OPERATOR_TOKEN: "):
        find_token(None, {"TURRET_OPERATOR_TOKEN": content.decode("latin-1")})
    with pytest.raises(OSError, match="gone"):
        find_token(str(tmp_path / "gone"), {})
