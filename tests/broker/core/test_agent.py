"""An agent's tiers and its end."""

from broker.core.agent import AgentRow, allowance, is_over


def test_an_unclaimed_agent_has_little_and_ends() -> None:
    row = AgentRow("ag_1", "a", "unclaimed", 0, expires_at=10)
    limits = allowance(row)
    assert (limits.agreements, limits.messages_a_day, limits.own_channels, limits.webhook) == (
        1,
        20,
        0,
        False,
    )
    assert [is_over(row, at) for at in (9, 10)] == [False, True]


def test_the_others_have_no_limits_of_their_tier_and_no_end() -> None:
    for tier in ("standard", "claimed"):
        row = AgentRow("ag_1", "a", tier, 0)  # type: ignore[arg-type]  # each is a Tier
        assert allowance(row).agreements is None
        assert not is_over(row, 2**50)
