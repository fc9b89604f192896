"""Whose a session is: the agent's and its owner's; to all others it is not there."""

import json
from typing import Any

import msgspec
import pytest

from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.agents import SCOPES, make_agent, owner_caller
from tests.support.arena import call, new_key, open_session, submit
from tests.support.broker import Bench, code
from tests.support.signin import new_owner

NOBODYS = {"session_id": "as_" + "0" * 26, "version": 0}
OUTSIDE = Caller(principal="https://login.example|u1", scopes=SCOPES, client="cl_x")


class Family:
    """Olga owns Ann and Abe; Bob is another owner's agent, Sue nobody's."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    async def begin(self) -> "Family":
        bench = self.bench
        self.owner_id, self.other_id = await new_owner(bench), await new_owner(bench)
        self.olga, self.oleg = owner_caller(bench, self.owner_id), owner_caller(bench, self.other_id)
        self.ann = await make_agent(bench, "Ann", owner_id=self.owner_id, tier="claimed")
        self.abe = await make_agent(bench, "Abe", owner_id=self.owner_id, tier="claimed")
        self.bob = await make_agent(bench, "Bob", owner_id=self.other_id, tier="claimed")
        self.sue = await make_agent(bench, "Sue")
        return self

    async def operate(self, name: str, **params: Any) -> Any:
        answer = await self.bench.broker.call(Caller(operator=True), name, json.dumps(params).encode())
        assert not isinstance(answer, Refusal), answer
        return answer


@pytest.fixture
async def family(bench: Bench) -> Family:
    return await Family(bench).begin()


async def look(bench: Bench, who: Caller, session: dict[str, Any], **params: Any) -> Any:
    return await bench.call("get_session", who, session_id=session["session_id"], **params)


async def opening(bench: Bench, who: Caller, **params: Any) -> Any:
    params.setdefault("idempotency_key", new_key())
    return await bench.call("open_session", who, game="hilo", **params)


@pytest.mark.requirement("arena.owners")
async def test_agent_and_owner_play_the_same_session(family: Family) -> None:
    bench, ann, olga = family.bench, family.ann, family.olga
    session = await open_session(bench, olga, agent_id=ann.agent, mode="persistent")
    assert session["agent_id"] == ann.agent
    session = (await submit(bench, ann, session))["session"]
    session = (await submit(bench, olga, session))["session"]
    for who in (ann, olga):
        assert (await look(bench, who, session))["session"] == session
    await submit(bench, olga, session, call("higher"), expected_version=0)
    rejected = (await look(bench, ann, session, rejected_after=-1))["rejected"]
    assert [each["by"] for each in rejected] == [olga.principal]


@pytest.mark.requirement("arena.owners", "arena.agent-id")
async def test_an_owner_says_for_which_of_its_agents(family: Family) -> None:
    bench, olga = family.bench, family.olga
    for agent in (family.ann, family.abe):
        assert (await open_session(bench, olga, agent_id=agent.agent))["agent_id"] == agent.agent
    unsaid = await opening(bench, olga)
    assert (unsaid.code, unsaid.detail["path"]) == ("bad_request", "agent_id")


@pytest.mark.requirement("arena.profile")
async def test_an_owner_is_shown_what_its_agents_have_and_nobody_elses(family: Family) -> None:
    bench, ann = family.bench, family.ann
    session = await open_session(bench, ann, mode="persistent")

    async def shown(who: Caller) -> Any:
        return (await bench.call("get_agent", who, agent_id=ann.agent)).get("arena")

    mine = await shown(ann)
    assert [each["session_id"] for each in mine["recent_sessions"]] == [session["session_id"]]
    assert await shown(family.olga) == mine
    for who in (family.abe, family.bob, family.sue, family.oleg, OUTSIDE):
        assert await shown(who) is None, who


@pytest.mark.requirement("arena.foreign")
async def test_to_others_a_session_is_like_one_that_never_was(family: Family) -> None:
    bench = family.bench
    session = await open_session(bench, family.ann)
    for who in (family.abe, family.bob, family.sue, family.oleg, OUTSIDE):
        for one in (session, NOBODYS):
            seen = await look(bench, who, one)
            acted = await submit(bench, who, one, call("higher"))
            assert seen == acted, who
            assert (seen.code, seen.message) == ("NOT_FOUND", "there is no such session")
    assert (await look(bench, family.ann, session, rejected_after=-1))["rejected"] == []


@pytest.mark.requirement("arena.agent-id")
async def test_a_session_is_opened_for_no_agent_but_ones_own(family: Family) -> None:
    bench, ann = family.bench, family.ann
    for who in (family.abe, family.bob, family.sue, family.oleg, OUTSIDE):
        assert code(await opening(bench, who, agent_id=ann.agent)) == "FORBIDDEN", who
        assert code(await opening(bench, who, agent_id="ag_" + "0" * 26)) == "NOT_FOUND"
    assert code(await opening(bench, OUTSIDE)) == "bad_request"
    assert code(await opening(bench, ann, agent_id=ann.agent)) == "accepted"


@pytest.mark.requirement("arena.suspended")
async def test_for_a_suspended_agent_nobody_plays(family: Family) -> None:
    bench, ann, olga = family.bench, family.ann, family.olga
    session = await open_session(bench, ann)
    await family.operate("suspend_agent", agent_id=ann.agent, reason="a test")
    assert code(await look(bench, ann, session)) == "suspended"
    assert code(await submit(bench, ann, session, idempotency_key="k")) == "suspended"
    assert code(await submit(bench, olga, session, idempotency_key="k")) == "suspended"
    assert code(await opening(bench, olga, agent_id=ann.agent, idempotency_key="k")) == "suspended"
    assert code(await opening(bench, family.bob, agent_id=ann.agent)) == "NOT_FOUND"
    assert (await look(bench, olga, session))["session"]["version"] == 0
    assert code(await submit(bench, family.oleg, session)) == "NOT_FOUND"
    await family.operate("unsuspend_agent", agent_id=ann.agent)
    assert code(await submit(bench, olga, session, idempotency_key="k")) == "accepted"
    assert code(await opening(bench, olga, agent_id=ann.agent, idempotency_key="k")) == "accepted"


@pytest.mark.requirement("arena.owners", "arena.foreign")
async def test_an_agents_sessions_go_with_it_to_another_owner(family: Family) -> None:
    bench, ann = family.bench, family.ann
    session = await open_session(bench, family.olga, agent_id=ann.agent)
    await family.operate("assign_agent_owner", agent_id=ann.agent, owner_id=family.other_id)
    assert code(await look(bench, family.olga, session)) == "NOT_FOUND"
    assert code(await submit(bench, family.olga, session)) == "NOT_FOUND"
    assert code(await opening(bench, family.olga, agent_id=ann.agent)) == "FORBIDDEN"
    assert code(await submit(bench, family.oleg, session)) == "accepted"


@pytest.mark.requirement("arena.limits")
async def test_who_is_claimed_may_have_more_from_then_on(family: Family) -> None:
    bench = family.bench
    new = await make_agent(bench, "New", tier="unclaimed")
    for _ in range(3):
        await open_session(bench, new)
    assert code(await opening(bench, new)) == "LIMIT_EXCEEDED"
    profile = await bench.call("get_agent", new, agent_id=new.agent)
    assert profile["arena"]["limits"]["open_sessions"] == 3
    await family.operate("assign_agent_owner", agent_id=new.agent, owner_id=family.owner_id)
    assert code(await opening(bench, family.olga, agent_id=new.agent)) == "accepted"


@pytest.mark.requirement("arena.scope")
@pytest.mark.parametrize(
    "name", ["describe_arena", "get_game", "open_session", "get_session", "submit_action"]
)
async def test_without_the_scope_nothing_is_told(family: Family, name: str) -> None:
    params: dict[str, Any] = {
        "describe_arena": {},
        "get_game": {"game": "hilo"},
        "open_session": {"game": "hilo", "idempotency_key": "k"},
        "get_session": {"session_id": NOBODYS["session_id"]},
        "submit_action": {
            "session_id": NOBODYS["session_id"],
            "expected_version": 0,
            "action": {},
            "idempotency_key": "k",
        },
    }[name]
    bare = msgspec.structs.replace(family.ann, scopes=SCOPES - {"arena"})
    assert code(await family.bench.call(name, bare, **params)) == "insufficient_scope"
    assert code(await family.bench.call(name, **params)) == "unauthenticated"
