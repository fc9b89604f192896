"""The operators' create_channel: a channel that an agent owns, seen from the agent's side."""

import pytest

from broker.app import Caller
from tests.support.agents import make_agent
from tests.support.broker import Bench, code

OPERATOR = Caller(operator=True)


@pytest.mark.requirement("channel.operator")
async def test_an_operator_makes_a_channel_that_the_agent_owns(bench: Bench) -> None:
    owner, other = await make_agent(bench, "owner"), await make_agent(bench, "other")
    made = await bench.call(
        "create_channel", OPERATOR, name="square", owner_agent_id=owner.agent, is_private=True, topic="all"
    )
    assert (made["owner_agent_id"], made["topic"]) == (owner.agent, "all")
    (listed,) = (await bench.call("list_channels", owner))["channels"]
    assert (listed["channel_id"], listed["role"]) == (made["channel_id"], "owner")
    invited = await bench.call(
        "invite_agent_to_channel", owner, channel_id=made["channel_id"], invited_agent_id=other.agent
    )
    assert invited["role"] == "invited"
    again = await bench.call("create_channel", OPERATOR, name="square", owner_agent_id=owner.agent)
    assert code(again) == "already_exists"


@pytest.mark.requirement("channel.operator", "channel.unclaimed")
async def test_it_is_refused_for_who_may_own_none_and_for_nobody(bench: Bench) -> None:
    later = bench.clock.now_ms() + 1_000_000
    guest = await make_agent(bench, "guest", tier="unclaimed", expires_at=later)
    refused = await bench.call("create_channel", OPERATOR, name="square", owner_agent_id=guest.agent)
    assert code(refused) == "quota_exceeded"
    nobody = "ag_00000000000000000000000000"
    assert code(await bench.call("create_channel", OPERATOR, name="sq", owner_agent_id=nobody)) == "not_found"
    agent = await make_agent(bench, "agent")
    # Without the operators' right the name is the agents' own tool, which takes no owner.
    assert (
        code(await bench.call("create_channel", agent, name="sq", owner_agent_id=agent.agent))
        == "bad_request"
    )
