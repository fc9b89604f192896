"""What an agent has in the arena, and who is shown it."""

from typing import Any

import pytest

from broker.app import Caller
from broker.core.agent import AgentRow, Suspension
from broker.tools.play import RECENT, may_play
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent, owner_caller
from tests.support.arena import open_session, submit
from tests.support.broker import Bench
from tests.support.signin import new_owner

ROW = AgentRow("ag_1", "Ann", "claimed", 0, owner_id="ow_1")


async def arena_of(bench: Bench, who: Caller, agent_id: str | None = None) -> Any:
    answer = await bench.call("get_agent", who, agent_id=agent_id or who.agent)
    assert not isinstance(answer, Refusal), answer
    return answer.get("arena")


@pytest.mark.requirement("arena.owners")
@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (Caller(principal="ag_1", agent="ag_1", owner="ow_1"), True),
        (Caller(principal="ow_1", owner="ow_1"), True),
        (Caller(principal="ag_2", agent="ag_2", owner="ow_1"), False),
        (Caller(principal="ow_2", owner="ow_2"), False),
        (Caller(principal="iss|sub"), False),
        (Caller(), False),
    ],
)
def test_an_agent_is_played_by_itself_and_its_owner_alone(caller: Caller, may: bool) -> None:
    assert may_play(caller, ROW) is may


@pytest.mark.requirement("arena.owners")
def test_an_agent_without_an_owner_is_not_anybodys() -> None:
    assert not may_play(Caller(principal="iss|sub"), AgentRow("ag_1", "Ann", "standard", 0))


@pytest.mark.requirement("arena.profile")
async def test_an_agents_profile_has_its_accounts_limits_commit_and_sessions(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    first = await arena_of(bench, ann)
    assert first["accounts"] == [
        {"kind": "persistent", "account_id": f"agent:{ann.agent}", "balance": 10_000}
    ]
    assert (first["games"], first["recent_sessions"]) == (0, [])
    session = await open_session(bench, ann, config={"points": 50})
    assert session["commit"] == first["next_commit"]
    then = await arena_of(bench, ann)
    assert then["next_commit"] != first["next_commit"]
    assert then["games"] == 1
    assert [each["session_id"] for each in then["recent_sessions"]] == [session["session_id"]]
    assert then["accounts"][1:] == [session["account"]]


@pytest.mark.requirement("arena.profile")
async def test_an_agent_finds_each_session_that_is_open_however_old(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    kept = [(await open_session(bench, ann))["session_id"] for _ in range(RECENT + 2)]
    last = await open_session(bench, ann)
    assert not isinstance(await submit(bench, ann, last, {"type": "stop"}), Refusal)
    arena = await arena_of(bench, ann)
    assert kept[0] not in [each["session_id"] for each in arena["recent_sessions"]]
    assert arena["open_sessions"] == kept[::-1]


@pytest.mark.requirement("arena.profile")
async def test_a_caller_is_told_for_which_agents_it_plays(bench: Bench) -> None:
    owner_id = await new_owner(bench)
    ann, bob = (
        await make_agent(bench, "Ann", owner_id=owner_id, tier="claimed"),
        await make_agent(bench, "Bob"),
    )
    await make_agent(bench, "Abe", owner_id=owner_id, tier="claimed", suspended=Suspension(0, "x"))
    olga, other = owner_caller(bench, owner_id), owner_caller(bench, await new_owner(bench))
    for caller, known in ((ann, [ann.agent]), (olga, [ann.agent]), (bob, [bob.agent]), (other, [])):
        arena: Any = await bench.call("describe_arena", caller)
        assert arena["agents"] == known


@pytest.mark.requirement("arena.profile")
async def test_nobody_else_is_shown_what_an_agent_has(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    assert await arena_of(bench, bob, ann.agent) is None
