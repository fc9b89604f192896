"""Following a channel: from where it goes on, what it says of that, and when it ends."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.actors.streams import Ended, Reader, Slow
from broker.app import Caller
from broker.clock import VirtualClock
from broker.store.memory import MemoryStore
from broker.store.port import Retention
from broker.wire.refusals import Refusal
from tests.support.agents import caller_of, make_agent
from tests.support.broker import START_MS, Bench, code, open_bench, tuned
from tests.support.channels import closing, open_town, seqs


async def ended(reader: Reader) -> Refusal:
    """Why a reader ends; AssertionError where it gives anything more."""
    with trio.fail_after(5), pytest.raises(Ended) as end:
        await reader.receive()
    return end.value.refusal


@pytest.mark.requirement("channel.resume")
async def test_a_stream_goes_on_after_a_seq_or_a_cursor_and_says_from_which_seq(bench: Bench) -> None:
    town = await open_town(bench, 1)
    (one,) = town.members
    for _ in range(5):
        await town.send(town.owner)
    now, first, third = (
        await town.follow(one),
        await town.follow(one, after_seq=0),
        await town.follow(one, after_seq=3),
    )
    async with closing(now, first, third):
        places = [(each.resume.from_seq, each.resume.head_seq) for each in (now, first, third)]
        assert places == [(5, 5), (0, 5), (3, 5)]
        assert await seqs(first) == [1, 2, 3, 4, 5]
        (four, _) = await third.receive()
        await town.send(town.owner)
        assert await seqs(now) == [6]
        by_cursor = await town.follow(one, after=four.cursor)
        async with closing(by_cursor):
            assert by_cursor.resume.from_seq == 4
            assert await seqs(by_cursor) == [5, 6]
    oldest = await town.follow(one, after="0")
    ahead = await town.follow(one, after_seq=99)
    async with closing(oldest, ahead):
        assert oldest.resume.recovered
        assert (ahead.resume.recovered, ahead.resume.reason, ahead.resume.from_seq) == (False, "future", 6)
    both = await bench.broker.follow_channel(one, town.id, after="0", after_seq=1)
    assert code(both) == "bad_request"


@pytest.mark.requirement("channel.resume")
async def test_where_history_does_not_reach_back_the_stream_says_so(bench: Bench) -> None:
    town = await open_town(bench, 1)
    (one,) = town.members
    for _ in range(20):
        await town.send(town.owner)
    reader = await town.follow(one)
    reader.close()
    late = bench.clock.now_ms() + 10_000
    assert await bench.store.sweep(Retention(now=late, events_before=late, events_keep=5), 1000)
    trimmed, kept = await town.follow(one, after_seq=3), await town.follow(one, after_seq=16)
    async with closing(trimmed, kept):
        assert (trimmed.resume.recovered, trimmed.resume.reason, trimmed.resume.from_seq) == (
            False,
            "trimmed",
            15,
        )
        assert await seqs(trimmed) == [16, 17, 18, 19, 20]
        assert (kept.resume.recovered, await seqs(kept)) == (True, [17, 18, 19, 20])
    missed = await town.call("get_channel_history", one, after_seq=3, before_seq=16)
    assert [each["seq"] for each in missed["messages"]] == list(range(4, 16))


@pytest.mark.requirement("channel.resume", "channel.order")
async def test_followers_that_come_back_at_any_moment_lose_and_repeat_nothing() -> None:
    """Across a restart too; one of them is slow and falls behind its queue."""
    store, clock = MemoryStore(), VirtualClock(START_MS)
    settings = tuned(streams={"queue_events": 16})
    got: dict[int, list[int]] = {at: [] for at in range(6)}

    async def follow(town: Any, at: int, last: int) -> None:
        while not got[at] or got[at][-1] < last:
            reader = await town.follow(town.members[at], after_seq=got[at][-1] if got[at] else 0)
            async with reader:
                try:
                    for _ in range(1 + at):
                        got[at] += await seqs(reader)
                        if got[at][-1] == last:
                            return
                        for _ in range(40 if at == 5 else 1):
                            await trio.lowlevel.checkpoint()
                except Slow:
                    pass

    town: Any = None
    for last in (40, 80):
        async with open_bench(settings, store=store, clock=clock) as bench, trio.open_nursery() as nursery:
            if town is None:
                town = await open_town(bench, 6)
            town.bench = bench
            for at in got:
                nursery.start_soon(follow, town, at, last)
            for _ in range(8):
                for who in (town.owner, *town.members[:4]):
                    assert code(await town.send(who)) == "accepted"
    assert all(each == list(range(1, 81)) for each in got.values())


@pytest.mark.requirement("channel.cut-off")
@pytest.mark.parametrize("private", [False, True])
async def test_who_is_removed_or_leaves_follows_no_more_not_even_what_was_there_before(
    bench: Bench, private: bool
) -> None:
    town = await open_town(bench, 2, private=private)
    removed, left = town.members
    for _ in range(3):
        await town.send(town.owner)
    readers = [await town.follow(each, after_seq=0) for each in (removed, left, town.owner)]
    async with closing(*readers):
        await town.call("remove_channel_member", town.owner, target_agent_id=removed.agent)
        await town.call("leave_channel", left)
        await town.send(town.owner)
        why = "not_found" if private else "not_a_party"
        assert [(await ended(each)).code for each in readers[:2]] == [why, why]
        assert await seqs(readers[2]) == [1, 2, 3, 4]
    for each in (removed, left):
        assert code(await bench.broker.follow_channel(each, town.id)) == why


@pytest.mark.requirement("channel.cut-off")
async def test_who_loses_its_right_to_speak_follows_no_more(bench: Bench) -> None:
    town = await open_town(bench, 1)
    (one,) = town.members
    reader = await town.follow(one, after_seq=0)
    async with closing(reader):
        await town.send(town.owner)
        standing = bench.broker._services.standing
        facts = standing._facts[str(one.agent)]
        standing.told(str(one.agent), msgspec.structs.replace(facts, suspended=True))
        assert (await ended(reader)).code == "suspended"
    assert code(await bench.broker.follow_channel(one, town.id)) == "suspended"


@pytest.mark.requirement("channel.cut-off")
async def test_who_is_removed_while_it_begins_to_follow_does_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = await open_town(bench, 1)
    (one,) = town.members
    hub = bench.broker._services.hub
    read = hub.read

    async def slowly(*args: Any, **kwargs: Any) -> Reader:
        await town.call("remove_channel_member", town.owner, target_agent_id=one.agent)
        return await read(*args, **kwargs)

    monkeypatch.setattr(hub, "read", slowly)
    assert code(await bench.broker.follow_channel(one, town.id)) == "not_a_party"
    assert hub.statistics().readers == 0
    assert len(bench.broker._services.followers) == 0


@pytest.mark.requirement("channel.cut-off")
async def test_a_token_that_runs_out_ends_what_it_follows(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 1)
        until = bench.ts + 10
        brief = caller_of(bench, str(town.members[0].agent), until=until)
        reader = await town.follow(brief)
        async with closing(reader):
            with trio.fail_after(30), pytest.raises(Ended):
                await reader.receive()
            assert bench.clock.now_ms() // 1000 == until


@pytest.mark.requirement("channel.private", "channel.doors")
async def test_who_may_not_follow_is_refused_as_the_tools_refuse(bench: Bench) -> None:
    town = await open_town(bench, 1, private=True)
    stranger = await make_agent(bench, "stranger")
    nobody = "ch_00000000000000000000000000"
    foreign = await bench.broker.follow_channel(stranger, town.id)
    assert foreign == await bench.broker.follow_channel(stranger, nobody)
    assert code(foreign) == "not_found"
    assert code(await bench.broker.follow_channel(Caller(), town.id)) == "unauthenticated"
    narrow = msgspec.structs.replace(town.owner, scopes=frozenset({"message"}))
    assert code(await bench.broker.follow_channel(narrow, town.id)) == "insufficient_scope"
