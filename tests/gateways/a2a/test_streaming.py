"""A2A's streams: in order, resumable, ended by the right and by the task's end (network.md, A2A)."""

import json
from typing import Any

import pytest
import trio

from broker.app import Caller
from broker.store.memory import MemoryStore
from broker.store.port import Store
from broker.store.sqlite import SqliteStore
from broker.wire.keys import SigningKey
from tests.support.a2a import Doors, open_doors, said
from tests.support.broker import open_bench, tuned


@pytest.mark.requirement("network.a2a.streams")
async def test_a_stream_begins_with_the_task_and_ends_with_it(doors: Doors) -> None:
    async with doors.streaming("SendStreamingMessage", {"message": said()}) as stream:
        assert await stream.first(1) == ["task submitted"]
        task = stream.results[0]["task"]
        await doors.update(task["id"], "working")
        await doors.update(task["id"], "input-required", "which?")
        await doors.send("this", taskId=task["id"])
        await doors.complete(task["id"], "done")
        with trio.fail_after(5):
            await stream.over.wait()
    assert stream.said == [
        "task submitted",
        "statusUpdate working",
        "statusUpdate input_required",
        "statusUpdate working",
        "artifactUpdate",
        "statusUpdate completed",
    ]
    assert stream.results[2]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "which?"}]
    assert stream.results[4]["artifactUpdate"]["artifact"]["parts"] == [{"text": "done"}]
    assert all(json.loads(each.data)["id"] == 7 for each in stream.events)
    assert len({each.id for each in stream.events}) == 6


@pytest.mark.requirement("network.a2a.streams")
async def test_many_follow_one_task_and_see_the_same(doors: Doors) -> None:
    task = await doors.send()
    async with (
        doors.streaming("SubscribeToTask", {"id": task["id"]}) as one,
        doors.streaming("SubscribeToTask", {"id": task["id"]}) as other,
    ):
        await one.first(1)
        await other.first(1)
        await doors.update(task["id"], "working")
        assert await one.first(2) == await other.first(2) == ["task submitted", "statusUpdate working"]
        one.leave.set()
        await one.over.wait()
        await doors.complete(task["id"])
        assert len(await other.first(4)) == 4
    assert one.said == other.said[:2]
    assert [each.id for each in one.events] == [each.id for each in other.events[:2]]


@pytest.mark.requirement("network.a2a.resume")
async def test_who_comes_late_gets_the_task_as_it_stands_and_nothing_twice(doors: Doors) -> None:
    task = await doors.send()
    await doors.update(task["id"], "working")
    async with doors.streaming("SubscribeToTask", {"id": task["id"]}) as stream:
        assert await stream.first(1) == ["task working"]
        await doors.complete(task["id"])
        assert await stream.first(3) == ["task working", "artifactUpdate", "statusUpdate completed"]


@pytest.mark.requirement("network.a2a.resume")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_restart_between_two_events_loses_none_and_repeats_none(kind: str, tmp_path: Any) -> None:
    """Of five events the reader had two; a broker that has begun anew gives it the third, fourth and fifth."""
    key = SigningKey.generate()
    store: Store = MemoryStore() if kind == "memory" else await SqliteStore.open(tmp_path)
    settings = tuned(store={"min_free_bytes": 0})
    async with open_bench(settings, store, key=key) as bench:
        doors = await open_doors(bench)
        async with doors.streaming("SendStreamingMessage", {"message": said()}) as stream:
            await stream.first(1)
            task_id = stream.results[0]["task"]["id"]
            await doors.update(task_id, "working")
            await stream.first(2)
            last = stream.events[1].id
        people = (doors.ann, doors.bob, doors.eve)
        await doors.update(task_id, "input-required", "which?")
    if kind == "sqlite":
        await store.aclose()
        store = await SqliteStore.open(tmp_path)
    async with open_bench(settings, store, key=key) as bench:
        doors = Doors(bench, *people)
        await doors.complete(task_id)
        async with doors.streaming("SubscribeToTask", {"id": task_id}, last_event_id=last) as stream:
            with trio.fail_after(5):
                await stream.over.wait()
        assert stream.said == ["statusUpdate input_required", "artifactUpdate", "statusUpdate completed"]
        end = stream.events[-1].id
        again = await doors.error("SubscribeToTask", {"id": task_id}, last_event_id=end)
        assert again["code"] == -32004
        assert (await doors.error("SubscribeToTask", {"id": task_id}))["code"] == -32004
    await store.aclose()


@pytest.mark.requirement("network.a2a.resume")
async def test_a_place_that_nobody_knows_begins_with_the_task(doors: Doors) -> None:
    task, other = await doors.send(), await doors.send()
    async with doors.streaming("SubscribeToTask", {"id": other["id"]}) as stream:
        await stream.first(1)
        foreign = stream.events[0].id
    for last in ("made-up", foreign, "x" * 200):
        async with doors.streaming("SubscribeToTask", {"id": task["id"]}, last_event_id=last) as stream:
            assert await stream.first(1) == ["task submitted"]
            assert stream.results[0]["task"]["id"] == task["id"]


@pytest.mark.requirement("network.a2a.ends")
async def test_a_stream_ends_when_its_reader_loses_the_right(doors: Doors, autojump_clock: Any) -> None:
    task = await doors.send()
    async with doors.streaming("SubscribeToTask", {"id": task["id"]}) as stream:
        await stream.first(1)
        await doors.bench.call("suspend_agent", Caller(operator=True), agent_id=doors.ann.agent, reason="x")
        with trio.fail_after(1):
            await stream.over.wait()
    await doors.bench.call("unsuspend_agent", Caller(operator=True), agent_id=doors.ann.agent)
    doors.bearers.give("short", doors.ann, until=doors.bench.ts + 3)
    async with doors.streaming("SubscribeToTask", {"id": task["id"]}, token="short") as stream:
        await stream.first(1)
        with trio.fail_after(4):
            await stream.over.wait()


@pytest.mark.requirement("network.a2a.ends")
async def test_a_silent_stream_shows_that_it_lives(doors: Doors, autojump_clock: Any) -> None:
    task = await doors.send()
    async with doors.streaming("SubscribeToTask", {"id": task["id"]}) as stream:
        await stream.first(1)
        await trio.sleep(doors.bench.broker.settings.streams.comment_s * 2 + 1)
    assert stream.answer.body.count(b": ping") == 2
    assert stream.answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.requirement("network.a2a.streams")
async def test_what_may_not_be_streamed_is_an_error_and_no_stream(doors: Doors) -> None:
    assert (await doors.error("SendStreamingMessage", {"message": {}}))["code"] == -32602
    refused = await doors.error("SendStreamingMessage", {"message": said()}, to=str(doors.eve.agent))
    assert refused["data"][0]["reason"] == "AGREEMENT_REQUIRED"
    assert (await doors.error("SubscribeToTask", {}))["code"] == -32602
