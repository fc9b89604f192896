"""What is told of a tape that did not come."""

from typing import get_args

import pytest

from broker.core.push import Outcome
from broker.core.tapes.csvfile import Complaint
from broker.core.tapes.source import Missed, Why, refusal_of, unset, wrong

pytestmark = pytest.mark.requirement("tape.source-refused")
RETRYABLE = {"no_answer", "too_slow"}


@pytest.mark.parametrize("why", get_args(Why))
def test_each_end_has_its_own_words_and_says_whether_it_may_be_asked_again(why: Why) -> None:
    told = refusal_of(Missed(why))
    assert told.message.startswith("nothing was imported: ")
    assert (told.detail["reason"], told.retryable) == (why, why in RETRYABLE)
    assert len({refusal_of(Missed(each)).message for each in get_args(Why)}) == len(get_args(Why))


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "bad_request"),
        (404, "bad_request"),
        (429, "unavailable"),
        (500, "unavailable"),
        (503, "unavailable"),
    ],
)
def test_the_number_of_a_status_is_told_and_what_may_pass_is_retryable(status: int, code: str) -> None:
    told = refusal_of(Missed("status", status))
    assert (told.code, told.detail["http_status"], told.body()["status"]) == (code, status, told.status)
    assert f"HTTP {status}" in told.message


def test_a_wrong_line_is_told_by_its_number_without_its_words() -> None:
    told = wrong(Complaint(7, "the bid 'mine' is not a decimal", "the bid is not a decimal"))
    assert (told.detail["line"], told.detail["reason"]) == (7, "line")
    assert told.message == "nothing was imported: line 7: the bid is not a decimal"


@pytest.mark.parametrize("why", ["secret_unset", "secret_unreadable"])
def test_a_secret_that_is_not_to_be_had_is_named(why: str) -> None:
    told = unset(Outcome(None, why, secret="FEED"))  # type: ignore[arg-type]  # one of Why
    assert (told.detail["path"], told.detail["reason"], told.detail["secret"]) == ("headers", why, "FEED")
