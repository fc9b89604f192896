"""The arena's tools: games, sessions, actions; who may, and what is refused."""

from typing import Any

from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.arena import call, ledger_sum, open_session, submit
from tests.support.broker import Bench


async def test_a_session_is_played_to_its_end_and_published(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    profile: Any = await bench.call("get_agent", ann, agent_id=ann.agent)
    commit = profile["arena"]["next_commit"]
    session = await open_session(bench, ann, config={"commit": commit, "client_seed": "mine", "points": 100})
    assert session["commit"] == commit
    assert session["account"]["balance"] == 100
    version = 0
    while session["status"] == "open":
        answer = await submit(bench, ann, session)
        assert not isinstance(answer, Refusal), answer
        session = answer["session"]
        version += 1
        assert session["version"] == version
    assert session["over"] in ("shoe_empty", "bust")
    assert session["seed"]
    assert session["artifact"]["uri"].startswith("kestrel://artifact/")
    over = await submit(bench, ann, session, call("higher"))
    assert over.code == "SESSION_OVER"
    store = bench.broker._services.store
    assert await ledger_sum(store, [session["session_id"]]) == 0


async def test_a_stale_version_is_a_conflict(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, mode="persistent")
    first = await submit(bench, ann, session)
    assert not isinstance(first, Refusal)
    stale = await submit(bench, ann, session)
    assert (stale.code, stale.retryable, stale.detail["version"]) == ("CONFLICT", True, 1)
    seen: Any = await bench.call(
        "get_session", ann, session_id=session["session_id"], rejected_after=-1, events_after=-1
    )
    assert [each["code"] for each in seen["rejected"]] == ["CONFLICT"]
    assert [each["n"] for each in seen["events"]] == [0, 1]
