"""Signed statements: exactly the members of the table, each in its form."""

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.keys import verify
from broker.wire.refusals import Refusal
from broker.wire.statement import (
    FOLLOW_S,
    MAX_SCREENED,
    TABLE,
    Statement,
    build_statement,
    check_time,
    check_wire,
    read_statement,
)
from tests.support.vectors import KEYS, spellings

KEY = KEYS["alpha"]
ALPHA, BRAVO, WIRE = KEY.pk, KEYS["bravo"].pk, KEYS["wire"].pk
TS = 1_782_345_678
NONCE = "0123456789abcdef" * 2
AGENT = "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV"
GOOD: dict[str, dict[str, Any]] = {
    "open_desk": {"code": "ALFA", "recovery_pk": BRAVO},
    "move_desk": {"code": "ALFA", "new_pk": BRAVO},
    "close_desk": {"code": "ALFA"},
    "authenticate": {},
    "follow": {"code": "ALFA", "until": TS + FOLLOW_S},
    "cancel_move": {"code": "ALFA"},
    "register_agent": {"name": "Dealing agent"},
    "screen_desk": {"code": "ALFA", "allow": [BRAVO], "deny": [], "mode": "known"},
    "bind_key": {"agent_id": AGENT},
}
OPTIONAL = {("open_desk", "recovery_pk"), ("follow", "code")}


def value(do: str, /, **changed: Any) -> dict[str, Any]:
    """A good statement as an object; a member given as `...` is left out."""
    members = {"do": do, "nonce": NONCE, "pk": ALPHA, "ts": TS, "wire": WIRE, **GOOD[do], **changed}
    return {name: each for name, each in members.items() if each is not ...}


def refused(given: dict[str, Any] | bytes, do: str | None = None) -> Refusal:
    found = read_statement(given if isinstance(given, bytes) else json.dumps(given).encode(), do=do)
    assert isinstance(found, Refusal), found
    return found


def taken(given: dict[str, Any] | bytes) -> Statement:
    found = read_statement(given if isinstance(given, bytes) else json.dumps(given).encode())
    assert isinstance(found, Statement), found
    return found


def test_every_statement_of_the_table_is_tried() -> None:
    assert set(GOOD) == set(TABLE)
    assert {
        (do, name) for do, forms in TABLE.items() for name, form in forms.items() if form.optional
    } == OPTIONAL


@pytest.mark.requirement("statements.canonical")
@pytest.mark.parametrize("do", GOOD)
def test_a_statement_is_signed_over_its_canonical_text_and_reads_back(do: str) -> None:
    text, sig = build_statement(do, KEY, WIRE, TS, NONCE, **GOOD[do])
    assert text == rfc8785.dumps(value(do))
    assert verify(ALPHA, text, sig)
    statement = taken(text)
    assert statement == Statement(do, ALPHA, NONCE, TS, WIRE, GOOD[do], text)
    assert statement.digest == hashlib.sha256(text).digest()


@pytest.mark.requirement("statements.canonical")
@given(st.data(), st.sampled_from(sorted(GOOD)))
def test_however_a_statement_is_written_it_reads_alike(data: st.DataObject, do: str) -> None:
    assert taken(data.draw(spellings(value(do))).encode()) == taken(rfc8785.dumps(value(do)))


@pytest.mark.requirement("statements.exact-members", "refusals.path")
@pytest.mark.parametrize("do", GOOD)
def test_a_statement_has_exactly_the_members_of_its_row(do: str) -> None:
    for name in value(do):
        if (do, name) in OPTIONAL:
            assert name not in taken(value(do, **{name: ...})).members
            continue
        refusal = refused(value(do, **{name: ...}))
        assert (refusal.code, refusal.detail) == ("bad_statement", {"path": name})
    for name in ("x", "sig", "until" if do != "follow" else "new_pk", ""):
        refusal = refused(value(do, **{name: 1}))
        assert (refusal.code, refusal.detail) == ("bad_statement", {"path": name})


@pytest.mark.requirement("statements.exact-members", "refusals.path")
@pytest.mark.parametrize(
    ("do", "name", "bad"),
    [
        ("close_desk", "nonce", NONCE.upper()), ("close_desk", "nonce", NONCE[1:]), ("close_desk",
        "nonce", NONCE + "\n"),
        ("close_desk", "pk", ALPHA.upper()), ("close_desk", "pk", 1), ("close_desk", "ts", -1),
        ("close_desk", "ts", "1"),
        ("close_desk", "ts", 1.5), ("close_desk", "ts", True), ("close_desk", "wire", ""),
        ("close_desk", "wire", None),
        ("close_desk", "code", "alfa"), ("close_desk", "code", "ALFAA"), ("close_desk", "code", "ALF\n"),
        ("open_desk", "recovery_pk", "00" * 32), ("open_desk", "recovery_pk", "xx" * 32), ("open_desk",
        "recovery_pk", None),
        ("move_desk", "new_pk", "01" + "00" * 31), ("move_desk", "new_pk", BRAVO[1:]), ("move_desk",
        "new_pk", []),
        ("follow", "until", -1), ("follow", "until", "1"), ("follow", "until", TS + FOLLOW_S + 1),
        ("follow", "code", 7),
        ("register_agent", "name", ""), ("register_agent", "name", "x" * 65), ("register_agent", "name",
        "a\nb"),
        ("register_agent", "name", 1), ("bind_key", "agent_id", "ag_1"), ("bind_key",
        "agent_id", AGENT.lower()),
        ("screen_desk", "allow", BRAVO), ("screen_desk", "allow", [BRAVO.upper()]), ("screen_desk",
        "deny", [1]),
        ("screen_desk", "deny", [BRAVO] * (MAX_SCREENED + 1)), ("screen_desk", "mode", "ALL"),
        ("screen_desk", "mode", []),
        ("screen_desk", "mode", None), ("screen_desk", "allow", None), ("screen_desk", "deny", {}),
    ],
)  # fmt: skip
def test_a_member_of_another_form_is_refused_by_its_path(do: str, name: str, bad: Any) -> None:
    refusal = refused(value(do, **{name: bad}))
    assert (refusal.code, refusal.detail) == ("bad_statement", {"path": name})


@pytest.mark.requirement("statements.screen")
def test_a_screen_holds_up_to_256_keys_in_each_list_and_one_of_three_modes() -> None:
    for mode in ("all", "known", "nobody"):
        members = taken(value("screen_desk", allow=[BRAVO] * MAX_SCREENED, mode=mode)).members
        assert len(members["allow"]) == MAX_SCREENED
        assert members["mode"] == mode


@pytest.mark.requirement("statements.follow-life")
def test_a_follow_statement_lives_a_day_at_most() -> None:
    assert taken(value("follow", until=TS + 86_400)).members["until"] == TS + 86_400
    assert refused(value("follow", until=TS + 86_401)).detail == {"path": "until"}


@pytest.mark.parametrize("do", ["", "open", "OPEN_DESK", "receipt", None, 1, ["follow"], {}])
@pytest.mark.requirement("statements.exact-members")
def test_a_statement_that_the_table_does_not_have_is_refused(do: Any) -> None:
    refusal = refused({**value("close_desk"), "do": do})
    assert (refusal.code, refusal.detail) == ("bad_statement", {"path": "do"})


@pytest.mark.requirement("statements.exact-members")
def test_a_place_takes_only_the_statements_that_it_asked_for() -> None:
    text = rfc8785.dumps(value("follow"))
    assert isinstance(read_statement(text, do="follow"), Statement)
    assert isinstance(read_statement(text, do=("follow", "authenticate")), Statement)
    assert refused(text, do="close_desk").detail == {"path": "do"}


@pytest.mark.requirement("statements.code", "canonical.code-of-the-place")
@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        (b"{", "bad_request", {}),
        (b"NaN", "bad_request", {}),
        (b"[]", "bad_statement", {"path": ""}),
        (b'{"ts":1,"ts":1}', "bad_statement", {"path": "ts"}),
        (b'{"ts":1e99}', "bad_statement", {"path": "ts"}),
        (b"[" * 33 + b"]" * 33, "bad_statement", {"path": "[0]" * 32}),
    ],
)
def test_a_forbidden_text_is_a_bad_statement_and_no_json_a_bad_request(
    text: bytes, code: str, detail: Any
) -> None:
    assert (refused(text).code, refused(text).detail) == (code, detail)


@pytest.mark.requirement("statements.hostile-bytes")
@given(st.data(), st.sampled_from(sorted(GOOD)), st.binary(max_size=3))
def test_a_statement_with_bytes_changed_is_another_one_or_refused(
    data: st.DataObject, do: str, change: bytes
) -> None:
    text = rfc8785.dumps(value(do))
    at = data.draw(st.integers(0, len(text)))
    found = read_statement(text[:at] + change + text[at + data.draw(st.integers(0, 3)) :])
    if isinstance(found, Refusal):
        assert found.code in ("bad_request", "bad_statement")


@pytest.mark.requirement("statements.wire")
def test_a_statement_for_another_wire_is_refused() -> None:
    statement = taken(value("close_desk"))
    assert check_wire(statement, (WIRE,)) is None
    assert check_wire(statement, {BRAVO, WIRE}) is None
    refusal = check_wire(statement, (BRAVO,))
    assert refusal is not None
    assert (refusal.code, refusal.detail) == ("bad_statement", {"path": "wire"})


@pytest.mark.requirement("statements.age")
@pytest.mark.parametrize(("off", "good"), [(0, True), (300, True), (-300, True), (301, False), (-301, False)])
def test_a_statement_is_good_for_300_seconds_on_either_side(off: int, good: bool) -> None:
    found = check_time(taken(value("close_desk")), TS + off)
    assert (found is None) == good
    if found is not None:
        assert (found.code, found.detail["path"], found.detail["wire_ts"]) == (
            "bad_statement",
            "ts",
            TS + off,
        )


@pytest.mark.requirement("statements.follow-life")
def test_a_follow_statement_is_good_until_its_time_whatever_its_ts() -> None:
    statement = taken(value("follow"))
    assert check_time(statement, TS + FOLLOW_S - 1) is None
    assert check_time(statement, TS - 9999) is None
    over = check_time(statement, TS + FOLLOW_S)
    assert over is not None
    assert over.detail["path"] == "until"


def test_a_statement_that_would_be_refused_is_not_built() -> None:
    for bad in ({"code": "alfa"}, {}, {"code": "ALFA", "x": 1}, {"code": 2**60}):
        with pytest.raises(ValueError, match=r"."):
            build_statement("close_desk", KEY, WIRE, TS, NONCE, **bad)
    text, _ = build_statement("open_desk", KEY, WIRE, TS, NONCE, code="ALFA", recovery_pk=None)
    assert taken(text).members == {"code": "ALFA"}
