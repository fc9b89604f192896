"""The table of refusals and the one body that every gateway shows."""

import pytest

from broker.wire.refusals import CODES, Refusal, refuse

RETRYABLE = {"rate_limited", "desk_busy", "overloaded", "unavailable", "in_doubt", "conflict", "CONFLICT"}


@pytest.mark.requirement("refusals.retryable")
def test_exactly_these_codes_are_retryable() -> None:
    assert {code for code, row in CODES.items() if row.retryable} == RETRYABLE


@pytest.mark.requirement("refusals.table")
@pytest.mark.parametrize(
    ("status", "codes"),
    [
        (400, "bad_request bad_envelope clock_skew"),
        (401, "bad_signature bad_statement"),
        (403, "not_a_party"),
        (404, "unknown_desk unknown_conv not_found"),
        (
            409,
            "bad_prev_sig conflict out_of_turn conv_exists code_taken code_reserved desk_exists desk_moved",
        ),
        (410, "conv_ended"),
        (413, "too_large"),
        (429, "rate_limited"),
        (503, "desk_busy overloaded unavailable in_doubt"),
    ],
)
def test_a_code_has_its_status(status: int, codes: str) -> None:
    for code in codes.split():
        assert refuse(code, "no").status == status
        assert CODES[code].meaning


@pytest.mark.requirement("refusals.body")
def test_the_body_has_code_status_message_retryable_and_the_members_of_its_own() -> None:
    refusal = refuse("rate_limited", "too many", retry_after_ms=7)
    assert refusal.body() == {
        "code": "rate_limited",
        "status": 429,
        "message": "too many",
        "retryable": True,
        "retry_after_ms": 7,
    }
    assert refuse("bad_envelope", "no", path="n") == Refusal("bad_envelope", "no", {"path": "n"})


@pytest.mark.requirement("refusals.rebuild")
def test_conflict_alone_says_rebuild() -> None:
    for code in CODES:
        assert refuse(code, "no").detail == ({"rebuild": True} if code == "conflict" else {})


def test_a_code_outside_the_table_is_a_fault() -> None:
    with pytest.raises(LookupError, match="nonsense"):
        refuse("nonsense", "no")
