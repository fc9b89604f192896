"""IRC accounts of agents."""

import pytest

from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import agree, told, whats
from tests.support.registration import OPERATOR

NOBODY = "ag_01KVY19F5JERCW57K0QBWQ1Y7N"


@pytest.mark.requirement("moderation.irc")
async def test_a_bound_account_stands_in_each_agreement_with_its_agent(bench: Bench) -> None:
    ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
    await agree(bench, ann, bob)
    account = {"network": "Libera.Chat", "nick": "Ann[1]"}
    bound = await bench.call("bind_irc_account", OPERATOR, agent_id=ann.agent, **account)
    assert bound == {"agent_id": ann.agent, **account, "bound_at": bound["bound_at"], "bridged": False}
    shown = [{**account, "bridged": False}]
    (listed,) = (await bench.call("list_agreements", bob))["agreements"]
    assert listed["irc_accounts"] == shown
    assert (await bench.call("list_agreements", ann))["agreements"][0]["irc_accounts"] == []
    await agree(bench, cay, ann)
    assert [each["agreement"]["irc_accounts"] for each in await told(bench, cay, "agreement")] == [shown]
    assert await whats(bench, ann, "notice") == ["irc_bound"]
    taken = await bench.call(
        "bind_irc_account", OPERATOR, agent_id=bob.agent, network="libera.chat", nick="aNN{1}"
    )
    assert (code(taken), taken.detail["path"]) == ("already_exists", "nick")
    unbound = await bench.call("unbind_irc_account", OPERATOR, agent_id=ann.agent, **account)
    assert unbound == {"agent_id": ann.agent, **account, "unbound": True}
    assert (await bench.call("list_agreements", bob))["agreements"][0]["irc_accounts"] == []
    assert await whats(bench, ann, "notice") == ["irc_bound", "irc_unbound"]
    again = await bench.call("unbind_irc_account", OPERATOR, agent_id=ann.agent, **account)
    assert (code(again), again.detail["path"]) == ("not_found", "nick")


@pytest.mark.requirement("moderation.irc")
async def test_what_a_gone_agent_had_is_free(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann", test=True), await make_agent(bench, "Bob")
    account = {"network": "libera", "nick": "x"}
    assert code(await bench.call("bind_irc_account", OPERATOR, agent_id=ann.agent, **account)) == "accepted"
    await bench.call("delete_test_agent", OPERATOR, agent_id=ann.agent)
    assert (await bench.call("list_irc_bindings", OPERATOR))["bindings"] == []
    assert code(await bench.call("bind_irc_account", OPERATOR, agent_id=bob.agent, **account)) == "accepted"


@pytest.mark.requirement("moderation.irc", "moderation.wrong-ids")
async def test_bindings_are_listed_by_agent_and_by_network(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    for agent, network, nick in ((ann, "oftc", "a"), (ann, "libera", "a"), (bob, "OFTC", "b")):
        params = {"agent_id": agent.agent, "network": network, "nick": nick}
        assert not isinstance(await bench.call("bind_irc_account", OPERATOR, **params), Refusal)

    async def nicks(**params: object) -> list[tuple[str, str]]:
        found = await bench.call("list_irc_bindings", OPERATOR, **params)
        return [(each["network"], each["nick"]) for each in found["bindings"]]

    assert await nicks() == [("oftc", "a"), ("libera", "a"), ("OFTC", "b")]
    assert await nicks(agent_id=ann.agent) == [("oftc", "a"), ("libera", "a")]
    assert await nicks(network="Oftc") == [("oftc", "a"), ("OFTC", "b")]
    assert await nicks(network="oftc", agent_id=bob.agent) == [("OFTC", "b")]
    page = await bench.call("list_irc_bindings", OPERATOR, limit=2)
    assert await nicks(after=page["next"]) == [("OFTC", "b")]
    for tool, params in (
        ("bind_irc_account", {"agent_id": NOBODY, "network": "oftc", "nick": "z"}),
        ("list_irc_bindings", {"agent_id": NOBODY}),
    ):
        answer = await bench.call(tool, OPERATOR, **params)
        assert (code(answer), answer.detail["path"]) == ("not_found", "agent_id")
        assert "list_agents" in answer.message
