"""An owner's row: e-mails in one form, passwords that will do, sessions that end."""

import pytest
from msgspec.structs import replace

from broker.core.owner import (
    MAX_SESSIONS,
    TOUCH_MS,
    Life,
    OwnerRow,
    change_password,
    end_session,
    find_session,
    judge_password,
    open_session,
    read_email,
    read_password,
    touch_session,
)
from broker.wire.refusals import Refusal

HOUR = 3_600_000
LIFE = Life(idle_ms=12 * HOUR, whole_ms=7 * 24 * HOUR)
NOW = 1_782_345_678_000
LONG, LONGER = "a" * 65 + "@x.de", "a@" + "x" * 253
OWNER = OwnerRow("ow_1", "a@example.org", "$argon2id$", NOW)


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        (" Ann@Example.ORG ", "ann@example.org"),
        ("ann+desk@localhost", "ann+desk@localhost"),
        ("STRASSE@x.de", "strasse@x.de"),
        ("straße@x.de", "strasse@x.de"),
        ("e\u0301@x.de", "\u00e9@x.de"),
        ("E\u0301@x.de", "\u00e9@x.de"),
    ],
)
def test_an_email_has_one_form(text: str, expect: str) -> None:
    assert read_email(text) == expect
    assert read_email(expect) == expect


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "@x.de",
        "ann@",
        "a@b@c",
        "a b@x.de",
        "a@x..de",
        "a@.de",
        "a@x\u202e.de",
        "a\0@x.de",
        LONG,
        LONGER,
    ],
)
def test_what_is_no_email_is_refused_at_its_field(text: str) -> None:
    refused = read_email(text)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == ("bad_request", {"path": "email"})


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("short horse", "at least 12"),
        ("x" * 257, "at most 256"),
        ("aaaaaaaaaaaab", "too easy"),
        ("ann@example.org", "too easy"),
        ("Ann@Example.org", "too easy"),
    ],
)
def test_a_password_that_will_not_do_is_told_why(password: str, words: str) -> None:
    refused = judge_password(password, "ann@example.org")
    assert refused is not None
    assert words in refused.message


def test_a_password_is_any_letters_long_enough() -> None:
    for password in ("twelve chars", "пароль из слов", "🐎🔋📎 staple staple", "x" * 128 + "yzw"):
        assert judge_password(password, "ann@example.org") is None
    assert read_password("ﬁne cafe\u0301") == "fine caf\u00e9"


@pytest.mark.requirement("owners.sessions-end")
def test_a_session_ends_unused_and_in_any_case() -> None:
    row = open_session(OWNER, "d", NOW, LIFE)
    assert find_session(row, "d", NOW + LIFE.idle_ms - 1, LIFE) is not None
    assert find_session(row, "d", NOW + LIFE.idle_ms, LIFE) is None
    assert find_session(row, "e", NOW, LIFE) is None
    now = NOW
    while now < NOW + LIFE.whole_ms:
        assert find_session(row, "d", now, LIFE) is not None
        row = touch_session(row, "d", now, LIFE)
        now += 11 * HOUR
    assert find_session(row, "d", now, LIFE) is None
    assert touch_session(row, "d", now, LIFE) is row


def test_a_use_is_written_now_and_then() -> None:
    row = open_session(OWNER, "d", NOW, LIFE)
    assert touch_session(row, "d", NOW + TOUCH_MS - 1, LIFE) is row
    touched = touch_session(row, "d", NOW + TOUCH_MS, LIFE)
    assert touched.sessions[0].used_at == NOW + TOUCH_MS
    assert touched.sessions[0].made_at == NOW


def test_the_quietest_session_goes_where_there_are_too_many() -> None:
    row = OWNER
    for n in range(MAX_SESSIONS):
        row = open_session(row, f"d{n}", NOW + n, LIFE)
    row = touch_session(row, "d0", NOW + TOUCH_MS, LIFE)
    row = open_session(row, "new", NOW + TOUCH_MS, LIFE)
    left = {each.digest for each in row.sessions}
    assert len(left) == MAX_SESSIONS
    assert {"d0", "new", "d2"} <= left
    assert "d1" not in left
    later = open_session(row, "last", NOW + 20 * HOUR, LIFE)
    assert [each.digest for each in later.sessions] == ["last"]  # those that are over are not kept


@pytest.mark.requirement("owners.sessions-end")
def test_signing_out_ends_one_session_and_a_new_password_all_others() -> None:
    row = open_session(open_session(OWNER, "d", NOW, LIFE), "e", NOW, LIFE)
    assert [each.digest for each in end_session(row, "d").sessions] == ["e"]
    assert end_session(row, "x") is row
    changed = change_password(row, "$new$", "f", NOW + 1)
    assert (changed.password, [each.digest for each in changed.sessions]) == ("$new$", ["f"])
    assert replace(changed, password=row.password, sessions=row.sessions) == row
