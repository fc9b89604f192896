"""At the end a word on the agent's stream: whoever waits for events hears of it, and so does the webhook."""

from typing import Any

import pytest
import trio
import trio.testing

from broker.actors.artifacts import read_artifact
from tests.arena.doors import open_doors
from tests.arena.ledger import check_ledger
from tests.support.agents import make_agent
from tests.support.arena import call, new_key, open_session, submit
from tests.support.broker import Bench, tuned
from tests.support.webhooks import Receiver, registered, world

STOP = {"type": "stop"}


async def events_of(bench: Bench, who: Any) -> list[Any]:
    """The arena's events on an agent's stream."""
    found = await bench.call("wait_for_events", who, after="0")
    return [each for each in found["events"] if each["event"] == "arena"]


@pytest.mark.requirement("arena.event")
async def test_who_waits_over_mcp_hears_of_the_end(autojump_clock: trio.testing.MockClock) -> None:
    async with open_doors() as doors:
        session = await doors.result("mcp", "open_session", game="hilo", idempotency_key="k")
        heard: list[Any] = []

        async def wait() -> None:
            heard.append(await doors.result("mcp", "wait_for_events", wait_ms=20_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            params: dict[str, Any] = {"session_id": session["session_id"], "idempotency_key": "k"}
            acted = await doors.result(
                "v1", "submit_action", **params, expected_version=0, action=call("same")
            )
            await trio.testing.wait_all_tasks_blocked()
            assert heard == [], "an action is no news to who acts"
            params["idempotency_key"] = "end"
            over = (await doors.result("v1", "submit_action", **params, expected_version=1, action=STOP))[
                "session"
            ]
        (event,) = heard[0]["events"]
        assert event["event"] == "arena"
        said = {name: event[name] for name in ("session_id", "game", "over", "net", "ref")}
        assert said == {
            "session_id": session["session_id"],
            "game": "hilo",
            "over": "stopped",
            "net": acted["change"],
            "ref": over["artifact"]["ref"],
        }
        assert await read_artifact(doors.bench.store, event["ref"]) is not None


@pytest.mark.requirement("arena.event")
async def test_each_session_is_told_of_once_however_often_its_last_action_is_sent(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    session = await open_session(bench, ann)
    key = new_key()
    for _ in range(3):
        await submit(bench, ann, session, STOP, idempotency_key=key)
        await submit(bench, ann, session, STOP)
    assert len(await events_of(bench, ann)) == 1
    assert await events_of(bench, bob) == []


@pytest.mark.requirement("arena.event", "arena.idle")
async def test_the_webhook_hears_of_sessions_that_nobody_ended(
    autojump_clock: trio.testing.MockClock,
) -> None:
    receiver = Receiver()
    settings = tuned(store={"sweep_s": 86_400}, actors={"idle_s": 7_200}, arena={"idle_h": 0.5})
    async with world(receiver, settings=settings) as bench:
        ann = await make_agent(bench, "Ann", tier="standard")
        await registered(bench, ann)
        session = await open_session(bench, ann)
        await trio.sleep(0.6 * 3_600)
        posts = [each for each in await receiver.wait(1) if each.event["type"] == "arena"]
        assert [each.event["data"]["over"] for each in posts] == ["expired"]
        assert posts[0].event["data"]["session_id"] == session["session_id"]
        assert posts[0].event["data"]["net"] == 0
        await check_ledger(bench.store)  # type: ignore[arg-type]  # a memory store
