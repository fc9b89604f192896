"""An agent opens sessions one after the other: chance that follows, limits, one commit."""

from typing import Any

import pytest

from broker.actors.player import next_commit, quota
from broker.app import Caller
from broker.config import Arena
from broker.core.agent import DAY_MS
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.arena import new_key, open_session, submit
from tests.support.broker import Bench, code, open_bench, tuned


async def try_to_open(bench: Bench, who: Caller, **params: Any) -> Any:
    return await bench.call("open_session", who, game="hilo", idempotency_key=new_key(), **params)


async def commit_to(bench: Bench, agent_id: str | None, games: int) -> str:
    services = bench.broker._services
    assert agent_id is not None
    return await next_commit(services.store, services.vault, agent_id, games)


@pytest.mark.requirement("arena.next-commit")
async def test_each_session_has_the_commit_that_was_shown_before_it(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    shown = [await commit_to(bench, ann.agent, games) for games in range(3)]
    assert [(await open_session(bench, ann))["commit"] for _ in range(3)] == shown
    others = {await commit_to(bench, bob.agent, games) for games in range(3)}
    assert len({*shown, *others}) == 6


@pytest.mark.requirement("arena.limits")
async def test_so_many_sessions_are_open_at_once() -> None:
    async with open_bench(tuned(arena={"open_sessions": 2})) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        first, _ = await open_session(bench, ann), await open_session(bench, ann)
        refused = await try_to_open(bench, ann)
        assert (refused.code, refused.detail["reason"], refused.detail["limit"]) == (
            "LIMIT_EXCEEDED",
            "open",
            2,
        )
        await open_session(bench, bob)
        await submit(bench, ann, first, {"type": "stop"})
        await open_session(bench, ann)


@pytest.mark.requirement("arena.limits")
async def test_so_many_sessions_are_opened_in_a_day() -> None:
    async with open_bench(tuned(arena={"sessions_per_day": 2})) as bench:
        ann = await make_agent(bench, "Ann")
        for _ in range(2):
            await submit(bench, ann, await open_session(bench, ann), {"type": "stop"})
        refused = await try_to_open(bench, ann)
        assert (refused.code, refused.detail["reason"], refused.detail["limit"]) == (
            "LIMIT_EXCEEDED",
            "day",
            2,
        )
        bench.clock.step(DAY_MS)
        assert code(await try_to_open(bench, ann)) == "accepted"


@pytest.mark.requirement("arena.limits")
async def test_an_agent_that_nobody_has_claimed_has_less(bench: Bench) -> None:
    new = await make_agent(bench, "New", tier="unclaimed")
    answers = [await try_to_open(bench, new) for _ in range(4)]
    assert [isinstance(each, Refusal) for each in answers] == [False, False, False, True]
    assert answers[-1].detail["limit"] == 3
    assert "that nobody has claimed has 3 sessions open" in answers[-1].message


@pytest.mark.requirement("arena.limits")
def test_settings_below_what_the_unclaimed_have_hold_for_them_too() -> None:
    assert quota(Arena(), claimed=True) == (50, 1_000)
    assert quota(Arena(), claimed=False) == (3, 20)
    assert quota(Arena(open_sessions=1, sessions_per_day=2), claimed=False) == (1, 2)
