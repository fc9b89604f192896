"""An agent's tiers, its end, and how its row changes."""

import pytest
from msgspec.structs import replace

from broker.core.agent import (
    DAY_MS,
    MAX_KEYS,
    AgentRow,
    Key,
    Sending,
    allowance,
    capabilities_of,
    count_message,
    is_over,
    judge_description,
    owned,
    with_key,
    without_key,
)
from broker.core.claim import ClaimCode
from broker.wire.refusals import Refusal

UNCLAIMED = AgentRow("ag_1", "a", "unclaimed", 0, expires_at=10, claim=ClaimCode("ABCD", "00"))
KEYS = (Key("k1", "aa", 1), Key("k2", "bb", 2))


@pytest.mark.requirement("identity.tiers")
def test_an_unclaimed_agent_has_little_and_ends() -> None:
    limits = allowance(UNCLAIMED)
    assert (limits.agreements, limits.messages_a_day, limits.own_channels, limits.webhook) == (
        1,
        20,
        0,
        False,
    )
    assert [is_over(UNCLAIMED, at) for at in (9, 10)] == [False, True]


@pytest.mark.requirement("identity.tiers")
def test_the_others_have_no_limits_of_their_tier_and_no_end() -> None:
    for tier in ("standard", "claimed"):
        row = AgentRow("ag_1", "a", tier, 0)  # type: ignore[arg-type]  # each is a Tier
        assert allowance(row).agreements is None
        assert not is_over(row, 2**50)
        assert count_message(row, Sending(tuple(range(1000))), 1000) == Sending(tuple(range(1001)))


@pytest.mark.requirement("identity.tiers")
def test_the_21st_message_of_24_hours_is_refused_and_each_comes_back_after_a_day() -> None:
    sending = Sending()
    for at in range(20):
        sending = count_message(UNCLAIMED, sending, at)  # type: ignore[assignment]  # none is refused
    assert sending.at == tuple(range(20))
    refused = count_message(UNCLAIMED, sending, DAY_MS - 1)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == ("quota_exceeded", {"reason": "messages_a_day", "limit": 20})
    assert count_message(UNCLAIMED, sending, DAY_MS) == Sending((*range(1, 20), DAY_MS))


@pytest.mark.requirement("identity.tiers")
def test_an_owners_agent_has_no_end_and_no_code() -> None:
    row = owned(UNCLAIMED, "ow_1", 7)
    assert (row.tier, row.owner_id, row.expires_at, row.claim, row.tokens_after) == (
        "claimed",
        "ow_1",
        None,
        None,
        0,
    )
    assert owned(row, "ow_1", 7).tokens_after == 0
    assert owned(row, "ow_2", 7).tokens_after == 8  # tokens that the first owner's clients hold end


def test_keys_join_and_leave_by_their_kid_and_there_are_ten_at_most() -> None:
    row = replace(UNCLAIMED, keys=KEYS)
    less = without_key(row, "k1", True)
    assert isinstance(less, AgentRow)
    assert less.keys == KEYS[1:]
    missing = without_key(row, "k3", True)
    assert isinstance(missing, Refusal)
    assert missing.code == "not_found"
    full = replace(row, keys=tuple(Key(f"k{n}", f"{n}", n) for n in range(MAX_KEYS)))
    more = with_key(full, KEYS[0])
    assert isinstance(more, Refusal)
    assert more.detail["limit"] == MAX_KEYS
    assert with_key(less, KEYS[0]).keys == (KEYS[1], KEYS[0])  # type: ignore[union-attr]  # it has room


def test_an_agent_keeps_its_last_key_unless_it_has_a_credential_or_an_operator_says_so() -> None:
    row = replace(UNCLAIMED, keys=KEYS[:1])
    refused = without_key(row, "k1", True)
    assert isinstance(refused, Refusal)
    assert "operators" in refused.message
    assert isinstance(without_key(row, "k1", False), AgentRow)
    assert isinstance(without_key(replace(row, secret_hash="00"), "k1", True), AgentRow)


def test_descriptions_and_capabilities_keep_their_bounds() -> None:
    assert judge_description("x" * 300 + "") is None
    assert judge_description("two\nlines\tand more ☃") is None
    for text in ("x" * 301, "a\x00", "a\x1b[2J", "a\r\n"):
        assert judge_description(text) is not None
    assert capabilities_of(["b", "a-1", "b"]) == ("b", "a-1")
    for tags in (["A"], ["-a"], ["a" * 33], [""], ["a\n"], [f"t{n}" for n in range(11)]):
        assert isinstance(capabilities_of(tags), Refusal)
