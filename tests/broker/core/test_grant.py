"""The law of codes and refresh tokens, as a table; what is seen of it from outside is in tools/test_tokens.py."""

import msgspec
import pytest

from broker.core.grant import (
    IDLE_MS,
    Code,
    Fresh,
    GrantRow,
    Shown,
    Stolen,
    knows,
    read_code,
    read_refresh,
    redeem,
    refresh,
)
from broker.core.secret import digest
from broker.wire.refusals import Refusal
from tests.support.signin import CHALLENGE, REDIRECT, RESOURCE, VERIFIER

ID = "gr_01ARZ3NDEKTSV4RRFFQ69G5FAV"
NOW = 1_000
WAITING = GrantRow(
    grant_id=ID,
    client_id="cl_x",
    client_name="x",
    redirect_host="127.0.0.1",
    owner_id="ow_x",
    subject="ow_x",
    scopes=("message", "channel"),
    resource=RESOURCE,
    made_at=NOW,
    used_at=NOW,
    code=Code(digest("code"), CHALLENGE, REDIRECT, True, NOW + 60_000),
)
SHOWN = Shown(client_id="cl_x", digest=digest("code"), redirect_uri=REDIRECT, verifier=VERIFIER)
LIVE = msgspec.structs.replace(
    WAITING, code=None, spent=digest("code"), family=digest("family"), refresh=digest("token")
)
AGAIN = Shown(client_id="cl_x", digest=digest("token"), family=digest("family"))
FRESH = Fresh(digest("family"), digest("token"))


@pytest.mark.requirement("signin.code")
def test_a_code_makes_the_grant_live() -> None:
    assert redeem(WAITING, SHOWN, FRESH, NOW + 59_999) == msgspec.structs.replace(LIVE, used_at=NOW + 59_999)
    assert isinstance(redeem(WAITING, SHOWN, FRESH, NOW + 60_000), Refusal)


@pytest.mark.requirement("signin.stolen")
def test_a_spent_code_is_stolen_whatever_comes_with_it() -> None:
    for shown in (SHOWN, Shown(client_id="other", digest=digest("code"))):
        assert isinstance(redeem(LIVE, shown, FRESH, NOW), Stolen)
    assert isinstance(redeem(LIVE, Shown(client_id="cl_x", digest=digest("guess")), FRESH, NOW), Refusal)


@pytest.mark.requirement("signin.code")
def test_a_redirect_that_was_not_named_need_not_be_named_again() -> None:
    assert WAITING.code is not None
    unnamed = msgspec.structs.replace(WAITING, code=msgspec.structs.replace(WAITING.code, named=False))
    without = msgspec.structs.replace(SHOWN, redirect_uri=None)
    assert isinstance(redeem(unnamed, without, FRESH, NOW), GrantRow)
    assert isinstance(redeem(WAITING, without, FRESH, NOW), Refusal)
    other = msgspec.structs.replace(SHOWN, redirect_uri=f"{REDIRECT}/x")
    assert isinstance(redeem(unnamed, other, FRESH, NOW), Refusal)


@pytest.mark.requirement("signin.refresh", "signin.stolen")
def test_a_refresh_token_of_the_family_is_the_present_one_or_stolen() -> None:
    assert refresh(LIVE, AGAIN, digest("next"), NOW) == msgspec.structs.replace(LIVE, refresh=digest("next"))
    old = msgspec.structs.replace(AGAIN, digest=digest("old"))
    assert isinstance(refresh(LIVE, old, digest("next"), NOW), Stolen)
    for harmless in (
        msgspec.structs.replace(old, family=digest("made up")),
        msgspec.structs.replace(old, family=None),
        msgspec.structs.replace(old, client_id="other"),
        msgspec.structs.replace(AGAIN, scopes=("contacts",)),
        msgspec.structs.replace(AGAIN, resource="https://elsewhere.example/"),
    ):
        assert isinstance(refresh(LIVE, harmless, digest("next"), NOW), Refusal)
    assert isinstance(refresh(LIVE, AGAIN, digest("next"), NOW + IDLE_MS), Refusal)
    assert isinstance(refresh(WAITING, AGAIN, digest("next"), NOW), Refusal)


def test_secrets_name_their_grant_and_are_read_in_one_form() -> None:
    code, token = f"{ID}.{'c' * 43}", f"{ID}.{'f' * 22}.{'t' * 43}"
    assert read_code(code) == (ID, digest("c" * 43))
    assert read_refresh(token) == (ID, digest("f" * 22), digest("t" * 43))
    for wrong in ("", ID, code + "\n", code[:-1], token, "x" + code, code.replace("gr_", "GR_")):
        assert read_code(wrong) is None
    for wrong in ("", code, token + "=", token[:-1], f"{token}.x"):
        assert read_refresh(wrong) is None
    assert knows(LIVE, digest("family"))
    assert not knows(LIVE, digest("x"))
    assert not knows(WAITING, digest("family"))
