"""How a task is followed (network.md, A2A)."""

import pytest
import trio

from broker.app import Caller, Ended, Followed
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent, suspend
from tests.support.broker import Bench, code
from tests.support.pairs import agree


@pytest.fixture
async def pair(bench: Bench) -> tuple[Caller, Caller]:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob, scopes=["task"])
    return ann, bob


async def follow(bench: Bench, caller: Caller, task_id: str, after: str | None = None) -> Followed:
    followed = await bench.broker.follow_task(caller, task_id, after=after)
    assert not isinstance(followed, Refusal), followed
    return followed


@pytest.mark.requirement("network.a2a.resume")
async def test_task_and_stream_meet_without_a_gap_or_a_repetition(
    bench: Bench, pair: tuple[Caller, Caller]
) -> None:
    ann, bob = pair
    task_id = (await bench.call("send_task", ann, target_agent_id=bob.agent, text="x"))["task"]["task_id"]
    for _ in range(3):
        await bench.call("update_task", bob, task_id=task_id, status="working")
    followed = await follow(bench, ann, task_id)
    assert (followed.view.task.state, followed.view.task.events) == ("working", 4)
    async with followed.reader as reader:
        await bench.call("complete_task", bob, task_id=task_id, outcome="failed", text="no")
        with trio.fail_after(5):
            events = await reader.receive()
    assert [each.position for each in events] == [5]
    again = await follow(bench, ann, task_id, followed.reader.resume.from_)
    async with again.reader as reader:
        assert again.reader.resume.recovered
        with trio.fail_after(5):
            assert [each.position for each in await reader.receive()] == [5]


@pytest.mark.requirement("network.a2a.foreign")
async def test_only_who_gave_a_task_follows_it(bench: Bench, pair: tuple[Caller, Caller]) -> None:
    ann, bob = pair
    eve = await make_agent(bench, "Eve")
    task_id = (await bench.call("send_task", ann, target_agent_id=bob.agent, text="x"))["task"]["task_id"]
    missing = await bench.broker.follow_task(ann, "tk_" + "0" * 26)
    assert code(missing) == "not_found"
    for caller in (bob, eve):
        assert await bench.broker.follow_task(caller, task_id) == missing
    assert code(await bench.broker.follow_task(Caller(), task_id)) == "unauthenticated"
    suspend(bench, ann)
    assert code(await bench.broker.follow_task(ann, task_id)) == "suspended"
    assert bench.broker._services.hub.statistics().readers == 0


async def test_who_gives_up_in_between_leaves_no_reader(
    bench: Bench, pair: tuple[Caller, Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = pair
    task_id = (await bench.call("send_task", ann, target_agent_id=bob.agent, text="x"))["task"]["task_id"]
    standing, looked = bench.broker._services.standing, 0
    judge = standing.judge

    async def late(caller: Caller) -> Refusal | None:
        nonlocal looked
        looked += 1
        if looked == 2:  # the first look was before anything was opened
            await trio.sleep_forever()
        return await judge(caller)

    monkeypatch.setattr(standing, "judge", late)
    with trio.move_on_after(0.05):
        await bench.broker.follow_task(ann, task_id)
    assert looked == 2
    assert bench.broker._services.hub.statistics().readers == 0


@pytest.mark.requirement("network.a2a.ends")
async def test_a_reader_ends_with_the_right(bench: Bench, pair: tuple[Caller, Caller]) -> None:
    ann, bob = pair
    task_id = (await bench.call("send_task", ann, target_agent_id=bob.agent, text="x"))["task"]["task_id"]
    followed = await follow(bench, ann, task_id)
    async with followed.reader as reader:
        suspend(bench, ann)
        with trio.fail_after(5), pytest.raises(Ended):
            await reader.receive()


@pytest.mark.requirement("network.a2a.resume")
async def test_a_cursor_of_nothing_is_as_none(bench: Bench, pair: tuple[Caller, Caller]) -> None:
    ann, bob = pair
    task_id = (await bench.call("send_task", ann, target_agent_id=bob.agent, text="x"))["task"]["task_id"]
    followed = await follow(bench, ann, task_id, "made.up.1")
    async with followed.reader as reader:
        assert (reader.resume.recovered, reader.resume.reason) == (False, "unknown")
        await bench.call("update_task", bob, task_id=task_id, status="working")
        with trio.fail_after(5):
            assert [each.position for each in await reader.receive()] == [2]
