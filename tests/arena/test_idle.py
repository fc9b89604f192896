"""Who acts no more for a week has played: its session is over, shown and published."""

from typing import Any

import pytest
import trio
import trio.testing

from broker.actors.artifacts import read_artifact
from broker.app import Caller
from broker.clock import VirtualClock
from broker.core.artifact import ref_of
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from tests.arena.ledger import open_arena
from tests.support.agents import caller_of, make_agent
from tests.support.arena import open_session, submit
from tests.support.broker import START_MS, Bench, code, tuned

HOUR_S = 3_600.0
DAY_MS = 86_400_000


async def look(bench: Bench, who: Caller, session: dict[str, Any], **params: Any) -> Any:
    return await bench.call("get_session", who, session_id=session["session_id"], **params)


@pytest.mark.requirement("arena.idle")
async def test_a_session_that_nobody_plays_is_over_and_published(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    ann = await make_agent(bench, "Ann")
    session = (await submit(bench, ann, await open_session(bench, ann, mode="persistent")))["session"]
    bench.clock.step(7 * DAY_MS - 120_000)
    await trio.sleep(90)
    assert (await look(bench, ann, session))["session"]["status"] == "open"
    await trio.sleep(90)
    seen = await look(bench, ann, session, events_after=0)
    over = seen["session"]
    assert (over["over"], over["version"], over["legal_actions"]) == ("expired", 2, [])
    assert over["account"]["balance"] == session["account"]["balance"]
    assert seen["events"][-1]["event"]["ended"] == {
        "over": "expired",
        "seed": over["seed"],
        "salt": over["salt"],
    }
    content = await read_artifact(bench.store, over["artifact"]["ref"])
    assert content is not None
    assert ref_of(content) == over["artifact"]["ref"]
    assert over["seed"].encode() in content
    assert code(await submit(bench, ann, over, {"type": "stop"})) == "SESSION_OVER"
    assert await bench.store.due("arena", "due", 2**62) == []


@pytest.mark.requirement("arena.idle")
async def test_who_plays_has_as_long_again(autojump_clock: trio.testing.MockClock) -> None:
    async with open_arena(tuned(arena={"idle_h": 2.0})) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        for _ in range(4):
            await trio.sleep(1.5 * HOUR_S)
            session = (await submit(bench, ann, session))["session"]
            assert session["status"] == "open"
        await trio.sleep(1.9 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["status"] == "open"
        await trio.sleep(0.2 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["over"] == "expired"


@pytest.mark.requirement("arena.idle")
async def test_looking_is_not_playing(autojump_clock: trio.testing.MockClock) -> None:
    async with open_arena(tuned(arena={"idle_h": 1.0})) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        await trio.sleep(0.9 * HOUR_S)
        await look(bench, ann, session)
        await submit(bench, ann, session, {"type": "fold"})
        await trio.sleep(0.2 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["over"] == "expired"


@pytest.mark.requirement("arena.idle")
async def test_a_clock_that_was_ahead_keeps_no_session_open(autojump_clock: trio.testing.MockClock) -> None:
    clock = VirtualClock(START_MS)
    async with open_arena(tuned(arena={"idle_h": 1.0}), clock=clock) as bench:
        ann = await make_agent(bench, "Ann")
        clock.step(30 * DAY_MS)
        played, left = await open_session(bench, ann), await open_session(bench, ann)
        clock.step(-30 * DAY_MS)
        played = (await submit(bench, ann, played))["session"]
        await trio.sleep(1.1 * HOUR_S)
        assert (await look(bench, ann, played))["session"]["over"] == "expired"
        assert (await look(bench, ann, left))["session"]["status"] == "open", "its time was written ahead"
        clock.step(30 * DAY_MS)
        await trio.sleep(1.1 * HOUR_S)
        assert (await look(bench, ann, left))["session"]["over"] == "expired"


@pytest.mark.requirement("arena.idle")
async def test_an_action_while_the_clock_was_ahead_keeps_its_session_open_no_longer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clock = VirtualClock(START_MS)
    async with open_arena(tuned(arena={"idle_h": 1.0}), clock=clock) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        await trio.sleep(1)  # what falls due was looked at, and is again in a minute
        clock.step(30 * DAY_MS)
        session = (await submit(bench, ann, session))["session"]
        clock.step(-30 * DAY_MS)
        await trio.sleep(1.1 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["status"] == "open"
        await trio.sleep(1.1 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["over"] == "expired"


@pytest.mark.requirement("arena.idle")
async def test_a_clock_that_steps_back_gives_the_player_its_time_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clock = VirtualClock(START_MS)
    async with open_arena(tuned(arena={"idle_h": 2.0}), clock=clock) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        await trio.sleep(1.0 * HOUR_S)
        session = (await submit(bench, ann, session))["session"]
        clock.step(-3_600_000)
        await trio.sleep(1.9 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["status"] == "open"
        await trio.sleep(1.2 * HOUR_S)
        assert (await look(bench, ann, session))["session"]["over"] == "expired"


@pytest.mark.requirement("arena.idle")
async def test_what_fell_due_while_the_broker_was_down_is_over_at_the_next_start(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store, key = MemoryStore(), SigningKey.generate()
    async with open_arena(store=store, key=key) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
    async with open_arena(store=store, key=key, clock=VirtualClock(START_MS + 8 * DAY_MS)) as bench:
        await trio.sleep(1)
        seen = await look(bench, caller_of(bench, ann.agent or ""), session)
        assert seen["session"]["over"] == "expired"
