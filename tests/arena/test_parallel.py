"""Many at once: one outcome of each version and of each key, and no point is lost."""

import json
from collections import Counter
from functools import partial
from typing import Any

import pytest
import trio

from broker.actors.player import read_account
from broker.core.arena import rejected_log
from broker.store.sqlite import SqliteStore
from tests.arena.ledger import raw
from tests.support.agents import make_agent
from tests.support.arena import call, open_session, submit
from tests.support.broker import Bench, code, open_bench


async def at_once(*asks: Any) -> list[Any]:
    """The answers of these calls, asked together, in their order."""
    answers: dict[int, Any] = {}

    async def ask(number: int, one: Any) -> None:
        answers[number] = await one()

    async with trio.open_nursery() as nursery:
        for number, one in enumerate(asks):
            nursery.start_soon(ask, number, one)
    return [answers[number] for number in range(len(asks))]


@pytest.mark.requirement("arena.parallel", "arena.alike")
async def test_fifty_identical_actions_have_one_outcome_and_one_answer(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, mode="persistent")
    params = {"session_id": session["session_id"], "expected_version": 0, "action": call("same", 7)}
    ask = partial(raw, bench, ann, "submit_action", **params, idempotency_key="k")
    answers = await at_once(*[ask] * 50)
    assert len(set(answers)) == 1
    assert answers[0].startswith(b'{"facts"')
    seen = await bench.call("get_session", ann, session_id=session["session_id"], events_after=-1)
    assert seen["session"]["version"] == 1
    assert len(seen["events"]) == 2
    assert seen["session"]["account"]["balance"] == 10_000 + seen["session"]["net"]


@pytest.mark.requirement("arena.parallel", "arena.rejected")
async def test_of_twenty_bots_on_one_version_one_acts_and_the_others_hear_that_it_did(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, mode="persistent")
    asks = [partial(submit, bench, ann, session, call("same", stake)) for stake in range(1, 21)]
    answers = await at_once(*asks)
    assert Counter(map(code, answers)) == {"accepted": 1, "CONFLICT": 19}
    assert {each.detail["version"] for each in answers if code(each) == "CONFLICT"} == {1}
    (accepted,) = (each for each in answers if code(each) == "accepted")
    account = await read_account(bench.store, ann.agent or "")
    assert account is not None
    assert account[0].balance == 10_000 + accepted["change"]
    kept = [json.loads(row.data) for row in await bench.store.entries(rejected_log(session["session_id"]))]
    assert len(kept) == 19
    event = await bench.call("get_session", ann, session_id=session["session_id"], events_after=0)
    stakes = [each["action"]["stake"] for each in (*kept, event["events"][0]["event"])]
    assert sorted(stakes) == list(range(1, 21)), "each attempt is kept as it was"


@pytest.mark.requirement("arena.parallel")
async def test_identical_openings_at_once_open_one_session(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    ask = partial(raw, bench, ann, "open_session", game="hilo", mode="persistent", idempotency_key="k")
    assert len(set(await at_once(*[ask] * 20))) == 1
    assert len(await bench.store.find("arena", "agent", ann.agent or "")) == 1


async def play(bench: Bench, who: Any, actions: int) -> Counter[str]:
    """Open a session with the persistent account and play it; how often which answer came."""
    codes = Counter[str]()
    session = await open_session(bench, who, mode="persistent")
    for _ in range(actions):
        answer = await submit(bench, who, session)
        codes[code(answer)] += 1
        session = answer["session"]
    return codes


@pytest.mark.requirement("arena.busy", "arena.balanced")
async def test_an_agent_plays_many_sessions_with_its_persistent_account_at_once(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    codes = await at_once(*[partial(play, bench, ann, 4)] * 40)
    assert sum(codes, Counter[str]()) == {"accepted": 160}
    assert bench.broker._services.house.turned_away == 0
    assert len(bench.broker._services.playing) == 0


@pytest.mark.requirement("arena.busy")
async def test_the_account_is_changed_one_after_the_other_on_the_disk_too(tmp_path: Any) -> None:
    store = await SqliteStore.open(tmp_path / "store", hop="inline")
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        codes = await at_once(*[partial(play, bench, ann, 3)] * 8)
        assert sum(codes, Counter[str]()) == {"accepted": 24}
        rows = await store.find("arena", "agent", ann.agent or "")
        account = await read_account(store, ann.agent or "")
        assert account is not None
        assert account[0].balance == 10_000 + sum(json.loads(row.doc)["net"] for row in rows)
    await store.aclose()


@pytest.mark.requirement("arena.parallel")
async def test_who_plays_and_who_stops_at_once_do_not_both(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    actions = [call("same"), {"type": "stop"}, call("same", 2), {"type": "stop"}]
    answers = await at_once(*(partial(submit, bench, ann, session, each) for each in actions))
    codes = Counter(map(code, answers))
    assert codes["accepted"] == 1
    assert codes["CONFLICT"] + codes["SESSION_OVER"] == 3
