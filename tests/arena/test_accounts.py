"""Points: whose they are, what they open with, and that they never move from one kind of account to the other."""

from typing import Any

import pytest

from broker.actors.player import read_account
from broker.app import Caller
from tests.arena.ledger import open_arena
from tests.support.agents import make_agent
from tests.support.arena import call, new_key, open_session, submit
from tests.support.broker import Bench, code, tuned


async def balances(bench: Bench, who: Caller) -> dict[str, int]:
    """Account → balance, as the agent's profile has them."""
    profile = await bench.call("get_agent", who, agent_id=who.agent)
    return {each["account_id"]: each["balance"] for each in profile["arena"]["accounts"]}


async def lose(bench: Bench, who: Caller, session: dict[str, Any], stake: int) -> dict[str, Any]:
    """Guess `same` until it was wrong; the session after it. (Of 51 cards 3 are.)"""
    while True:
        answer = await submit(bench, who, session, call("same", stake))
        session = answer["session"]
        if answer["change"] < 0:
            return session


@pytest.mark.requirement("arena.persistent")
@pytest.mark.parametrize("points", [10_000, 77])
async def test_a_persistent_account_opens_once_with_what_the_setting_says(points: int) -> None:
    async with open_arena(tuned(arena={"points": points})) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann, mode="persistent", config={"points": 5})
        mine = {"kind": "persistent", "account_id": f"agent:{ann.agent}"}
        assert session["account"] == {**mine, "balance": points}
        session = await lose(bench, ann, session, 7)
        then = await open_session(bench, ann, mode="persistent")
        assert then["account"] == {**mine, "balance": points + session["net"]}
        seen = await bench.call("get_session", ann, session_id=then["session_id"], events_after=-1)
        assert seen["events"][0]["event"]["entries"] == []


@pytest.mark.requirement("arena.persistent")
async def test_what_one_session_loses_the_others_of_the_account_have_not(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    one, two = [await open_session(bench, ann, mode="persistent") for _ in range(2)]
    one = await lose(bench, ann, one, 1_000)
    seen = (await bench.call("get_session", ann, session_id=two["session_id"]))["session"]
    assert seen["account"] == one["account"]
    assert seen["net"] == 0
    # It wins or loses: a likely guess may just return its stake.
    moved = await submit(bench, ann, seen, call("same"))
    assert moved["session"]["account"]["balance"] != 10_000
    recent = (await bench.call("get_agent", ann, agent_id=ann.agent))["arena"]["recent_sessions"]
    assert len({each["account"]["balance"] for each in recent}) == 1, "one account has one balance"


@pytest.mark.requirement("arena.simulation")
async def test_a_simulation_touches_no_other_account(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    lasting = await open_session(bench, ann, mode="persistent")
    one = await open_session(bench, ann, config={"points": 50})
    two = await open_session(bench, ann)
    ids = {each["account"]["account_id"] for each in (lasting, one, two)}
    assert len(ids) == 3
    assert (one["account"]["kind"], one["account"]["balance"], two["account"]["balance"]) == (
        "simulation",
        50,
        1_000,
    )
    one = await lose(bench, ann, one, 7)
    assert await balances(bench, ann) == {
        f"agent:{ann.agent}": 10_000,
        one["account"]["account_id"]: 50 + one["net"],
        two["account"]["account_id"]: 1_000,
    }
    await submit(bench, ann, one, {"type": "stop"})
    account = await read_account(bench.store, ann.agent or "")
    assert account is not None
    assert account[0].balance == 10_000, "what is left ends with the session"
    assert one["account"]["account_id"] not in await balances(bench, ann)


@pytest.mark.requirement("arena.simulation")
async def test_a_simulation_opens_no_persistent_account(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await open_session(bench, ann)
    assert await read_account(bench.store, ann.agent or "") is None


@pytest.mark.requirement("arena.points-short")
async def test_an_empty_account_opens_nothing_and_stakes_nothing() -> None:
    async with open_arena(tuned(arena={"points": 5})) as bench:
        ann = await make_agent(bench, "Ann")
        other = await open_session(bench, ann, mode="persistent")
        session = await open_session(bench, ann, mode="persistent")
        while "over" not in session:  # three guesses in fifty-one win, and there is more to lose then
            stake = min(1_000, session["account"]["balance"])
            session = (await submit(bench, ann, session, call("same", stake)))["session"]
        assert (session["account"]["balance"], session["over"]) == (0, "bust")
        params = {"game": "hilo", "mode": "persistent", "idempotency_key": new_key()}
        answer = await bench.call("open_session", ann, **params)
        assert (answer.code, answer.detail) == ("INSUFFICIENT_POINTS", {"balance": 0, "needed": 1})
        short = await submit(bench, ann, other, call("same"))
        assert (short.code, short.detail) == ("INSUFFICIENT_POINTS", {"balance": 0, "needed": 1})
        seen = (await bench.call("get_session", ann, session_id=other["session_id"]))["session"]
        assert seen["legal_actions"] == [{"type": "stop"}]
        assert code(await open_session_in_simulation(bench, ann)) == "accepted"


async def open_session_in_simulation(bench: Bench, who: Caller) -> Any:
    return await bench.call("open_session", who, game="hilo", idempotency_key=new_key())


@pytest.mark.requirement("arena.qualified")
async def test_every_balance_in_every_answer_says_whose_it_is(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    answers: list[Any] = []
    for mode in ("simulation", "persistent"):
        session = await open_session(bench, ann, mode=mode)
        acted = await submit(bench, ann, session)
        answers += [session, acted, await bench.call("get_session", ann, session_id=session["session_id"])]
    answers.append(await bench.call("get_agent", ann, agent_id=ann.agent))
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "balance" in value:
                found.append(value)
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(answers)
    assert len(found) >= 10
    for each in found:
        assert set(each) == {"kind", "account_id", "balance"}
        prefix = "agent:" if each["kind"] == "persistent" else "session:"
        assert each["account_id"].startswith(prefix)
