"""Passwords that are guessed first."""

import pytest

from broker.core.guessable import is_guessable
from broker.core.owner import judge_password
from broker.wire.refusals import Refusal


@pytest.mark.requirement("moderation.passwords")
@pytest.mark.parametrize(
    "password",
    [
        "password1234", "Password123!", "passwordpassword", "P@ssw0rd2024", "123456789012", "210987654321",
        "aaaaaaaaaaaa", "abcabcabcabc", "qwertyuiop12", "1qaz2wsx3edc", "iloveyou1234", "letmein12345",
        "administrator", "trustno1trustno1", "Summer2024!!!", "!!!welcome!!!1", "poiuytrewq99",
        "correcthorsebatterystaple", "changeme-now1"[:-4] + "1234",
    ],
)  # fmt: skip
def test_what_is_tried_first_is_refused(password: str) -> None:
    assert is_guessable(password)
    refused = judge_password(password, "ann@x.example", "new_password")
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == ("bad_request", {"path": "new_password"})


@pytest.mark.requirement("moderation.passwords")
@pytest.mark.parametrize(
    "password", ["ann.smith1984", "annsmith2024!", "Smith1999!9", "ann.smith@x.example", "4nn5m1th1234"]
)
def test_what_an_owner_is_called_is_refused(password: str) -> None:
    assert is_guessable(password, "Ann.Smith@x.example")
    assert not is_guessable(password, "bob@y.example")


@pytest.mark.requirement("moderation.passwords")
@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery", "tulip anchor seventy", "kX9#vLq2!mZp", "glasswing-orbit", "a password of mine",
        "ich mag grünen Tee", "密码是很长的一句话呀你说呢", "7d8c1f0a9b3e", "ann likes green tea",
    ],
)  # fmt: skip
def test_what_is_not_tried_first_is_taken(password: str) -> None:
    assert judge_password(password, "ann@x.example") is None


def test_of_a_long_text_it_is_looked_whether_it_repeats_itself() -> None:
    assert is_guessable("a" * 256)
    assert is_guessable("password1234" * 21)
    assert not is_guessable("a" * 255 + "é")
    assert not is_guessable("ab1!" * 10 + "xkcd" + "q9" * 106)
