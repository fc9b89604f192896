"""Opening trials, within what an agent may have."""

import pytest
import trio
from trio.testing import MockClock

from broker.app import Caller
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.rehearsals import ask, do, new_key, opened, resumed


async def open_code(bench: Bench, who: Caller) -> str:
    return code(await ask(bench, who, "session.open", entry="trend", idempotency_key=new_key()))


@pytest.mark.requirement("trial.session-limits")
async def test_an_agent_has_so_many_open_and_one_that_is_over_makes_room() -> None:
    async with open_bench(tuned(trials={"open_sessions": 2})) as bench:
        ann = await make_agent(bench, "Ann")
        seen, other = await opened(bench, ann), await opened(bench, ann)
        await opened(bench, await make_agent(bench, "Eve"))
        refused = await ask(bench, ann, "session.open", entry="trend", idempotency_key="k")
        assert (refused.code, refused.detail["reason"], refused.detail["limit"]) == (
            "LIMIT_EXCEEDED",
            "open",
            2,
        )
        assert set(refused.detail["session_ids"]) == {seen["session_id"], other["session_id"]}
        assert code(await do(bench, ann, seen, "finalize")) == "accepted"
        again = await ask(bench, ann, "session.open", entry="trend", idempotency_key="k")
        assert code(again) == "accepted", "a limit is not remembered"
        bob = await make_agent(bench, "Bob")
        assert await open_code(bench, bob) == "accepted"


@pytest.mark.requirement("trial.session-limits")
async def test_an_agent_opens_so_many_a_day(autojump_clock: MockClock) -> None:
    async with open_bench(tuned(trials={"sessions_per_day": 1})) as bench:
        ann = await make_agent(bench, "Ann")
        await opened(bench, ann)
        refused = await ask(bench, ann, "session.open", entry="trend", idempotency_key=new_key())
        assert (refused.code, refused.detail["reason"]) == ("LIMIT_EXCEEDED", "day")
        await trio.sleep(86_400)
        assert await open_code(bench, ann) == "accepted"


@pytest.mark.requirement("trial.session-limits")
async def test_one_that_nobody_has_claimed_has_fewer(bench: Bench) -> None:
    ends = bench.clock.now_ms() + 86_400_000
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=ends)
    assert [await open_code(bench, young) for _ in range(4)] == [*["accepted"] * 3, "LIMIT_EXCEEDED"]


async def test_a_new_trial_has_seen_nothing(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await opened(bench, ann, seed=4)
    assert (seen["version"], seen["observation"]["tick"]) == (0, -1)
    assert seen["entry"]["seed"] == 4
    assert seen["price"]
    shown = await resumed(bench, ann, seen)
    assert (shown["agent_id"], shown["legal_calls"]) == (ann.agent, ["start", "finalize"])


@pytest.mark.requirement("trial.session-idle")
async def test_a_trial_that_was_only_opened_is_over_in_its_time_too(autojump_clock: MockClock) -> None:
    async with open_bench(tuned(trials={"idle_h": 1.0})) as bench:
        ann = await make_agent(bench, "Ann")
        seen = await opened(bench, ann)
        await trio.sleep(3_500)
        assert (await resumed(bench, ann, seen))["status"] == "open"
        await trio.sleep(200)
        shown = await resumed(bench, ann, seen)
        assert (shown["ended"], shown["version"], shown["observation"]["tick"]) == ("expired", 1, -1)
