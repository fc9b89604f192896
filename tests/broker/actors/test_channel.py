"""A channel's actor: order through everything that goes wrong, limits in any window, and who is told of news."""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors import channel as actors
from broker.actors.channel import Windows, channel_name, read_channel
from broker.clock import VirtualClock
from broker.core.channel import Channel
from broker.core.pace import Spent
from broker.store.memory import MemoryStore
from broker.store.port import Unavailable, Unit
from broker.wire.refusals import Refusal
from tests.programs.flaky import WAYS, FlakyMemory, FlakySqlite, Way
from tests.support.agents import caller_of
from tests.support.broker import START_MS, open_bench
from tests.support.broker import code as code_of
from tests.support.channels import Town, closing, enter, open_town, seqs


def posts(unit: Unit) -> bool:
    """Whether a unit is a message's."""
    return unit.append is not None


async def kept(town: Town) -> list[int]:
    """The seqs of the log, each at its place in the log and on the stream."""
    name = channel_name(town.id)
    rows = await town.bench.store.entries(name, limit=1000)
    events = await town.bench.store.events(name, 0, 1000)
    found = [msgspec.json.decode(row.data)["seq"] for row in rows]
    assert [row.n + 1 for row in rows] == found
    assert [event.position for event in events] == found
    assert [event.data for event in events] == [row.data for row in rows]
    return found


@pytest.mark.requirement("channel.seq")
async def test_many_at_once_get_numbers_without_a_gap_in_the_order_of_the_log() -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 9)
        answers: list[dict[str, Any]] = []

        async def send(at: int) -> None:
            answers.append(await town.send(town.members[at % 9], f"{at}"))

        async with trio.open_nursery() as nursery:
            for at in range(60):
                nursery.start_soon(send, at)
        assert sorted(each["seq"] for each in answers) == list(range(1, 61)) == await kept(town)
        rows = await bench.store.entries(channel_name(town.id), limit=100)
        stored = {each["message_id"]: each["seq"] for each in (msgspec.json.decode(row.data) for row in rows)}
        assert stored == {each["message_id"]: each["seq"] for each in answers}


PLANS = st.lists(st.tuples(st.sampled_from([None, *WAYS]), st.booleans()), max_size=14)
"""A process for each: how its commits fail, and whether those that are late land while it lives."""
Plan = list[tuple[Way | None, bool]]
Reopen = Callable[[Any], Awaitable[Any]]


@pytest.mark.requirement("channel.seq")
@settings(max_examples=25, deadline=None)
@given(PLANS)
async def test_no_number_is_lost_or_given_twice_whatever_becomes_of_commits(plan: Plan) -> None:
    """What was acknowledged stands, what was refused as unavailable does not, what is in doubt may either way."""

    async def same(store: Any) -> Any:
        return store or FlakyMemory()

    await fail_and_go_on(plan, same)


@pytest.mark.requirement("channel.seq")
@settings(max_examples=5, deadline=None)
@given(PLANS)
async def test_nor_on_a_disk_that_is_opened_again(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as directory:

        async def reopened(store: Any) -> Any:
            if store is not None:
                await store.aclose()
            return await FlakySqlite.open(Path(directory, "data"), hop="inline")

        await fail_and_go_on(plan, reopened)


async def fail_and_go_on(plan: Plan, opened: Reopen) -> None:
    """Three messages in each process of a plan; then the log is what was answered."""
    store, clock = await opened(None), VirtualClock(START_MS)
    async with open_bench(store=store, clock=clock) as bench:
        town = await open_town(bench, 2)
    sent: dict[str, str] = {}
    at = 0
    for way, late in plan:
        store = await opened(store)
        async with open_bench(store=store, clock=clock) as bench:
            town.bench = bench
            for _ in range(3):
                at += 1
                store.fail(way, posts)
                sent[f"{at}"] = code_of(await town.send(town.members[at % 2], f"{at}"))
                assert way is not None or sent[f"{at}"] == "accepted"
                if late and store._late:
                    await store.land()
            store.lose()
    bodies = [msgspec.json.decode(row.data)["body"] for row in await store.entries(channel_name(town.id))]
    town.bench = bench
    assert await kept(town) == list(range(1, len(bodies) + 1))
    assert len(set(bodies)) == len(bodies)
    assert bodies == sorted(bodies, key=int)
    assert all(body in bodies for body, answer in sent.items() if answer == "accepted")
    assert all(body not in bodies for body, answer in sent.items() if answer == "unavailable")
    await store.aclose()


@pytest.mark.requirement("channel.name")
async def test_of_two_that_ask_for_a_name_at_once_one_gets_it() -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 2)
        answers: list[Any] = []

        async def create(who: Any) -> None:
            answers.append(await bench.call("create_channel", who, name="market"))

        async with trio.open_nursery() as nursery:
            for each in town.members:
                nursery.start_soon(create, each)
        assert sorted(map(code_of, answers)) == ["accepted", "already_exists"]


@pytest.mark.requirement("channel.limits")
@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 7), st.sampled_from([1, 12, 31])),
            st.tuples(st.just("sleep"), st.sampled_from([1, 7, 20, 45])),
            st.tuples(st.just("step"), st.sampled_from([5_000, 3_600_000])),
            st.just(("restart", 0)),
        ),
        max_size=30,
    )
)
def test_no_minute_holds_more_than_the_limits_through_restarts_and_steps(plan: list[tuple[Any, int]]) -> None:
    """What is stepped ahead in a process is set right before it ends; then only the wall tells what was when."""

    async def play() -> None:
        clock, store = VirtualClock(START_MS), MemoryStore()
        async with open_bench(store=store, clock=clock) as bench:
            town = await open_town(bench, 8)
        accepted: list[tuple[float, str]] = []
        left, stepped = list(plan), 0
        while left:
            clock.step(-stepped)
            stepped = 0
            async with open_bench(store=store, clock=clock) as bench:
                town.bench = bench
                while left and (turn := left.pop(0))[0] != "restart":
                    what, count = turn
                    if what == "sleep":
                        await trio.sleep(count)
                    elif what == "step":
                        clock.step(count)
                        stepped += count
                    else:
                        for _ in range(count):
                            if code_of(await town.send(town.members[what])) == "accepted":
                                accepted.append((trio.current_time(), str(what)))
        for at, (first, who_first) in enumerate(accepted):
            window = [each for each in accepted[at:] if each[0] < first + 60 - 1e-5]
            assert len(window) <= 200
            assert sum(each[1] == who_first for each in window) <= 30

    trio.run(play, clock=MockClock(autojump_threshold=0))


@pytest.mark.requirement("channel.limits")
async def test_the_31st_message_in_a_minute_waits_as_told_also_after_a_restart(
    autojump_clock: MockClock,
) -> None:
    store, clock = MemoryStore(), VirtualClock(START_MS)
    async with open_bench(store=store, clock=clock) as bench:
        town = await open_town(bench, 2)
        for _ in range(15):
            await town.send(town.owner)
        await trio.sleep(40)
        for _ in range(15):
            await town.send(town.owner)
    clock.step(3_600_000)  # while nobody looks; then the new process knows the wall alone
    clock.step(-3_600_000)
    async with open_bench(store=store, clock=clock) as bench:
        town.bench = bench
        refused = await town.send(town.owner)
        assert code_of(refused) == "rate_limited"
        assert refused.detail["retry_after_ms"] == 20_000
        assert code_of(await town.send(town.members[0])) == "accepted"
        clock.step(3_600_000)  # in a running process the distance is measured on its own clock
        assert code_of(await town.send(town.owner)) == "rate_limited"
        await trio.sleep(19.9)
        assert code_of(await town.send(town.owner)) == "rate_limited"
        await trio.sleep(0.1)
        assert code_of(await town.send(town.owner)) == "accepted"


@pytest.mark.requirement("channel.limits")
async def test_the_window_outlives_the_actor_and_steps_of_the_wall(autojump_clock: MockClock) -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        town = await open_town(bench, 1)
        for _ in range(30):
            await town.send(town.owner)
        bench.clock.step(3_600_000)
        store.fail("doubt", posts)
        assert (
            code_of(await town.send(town.members[0])) == "in_doubt"
        )  # its actor is gone, the log is read again
        assert code_of(await town.send(town.owner)) == "rate_limited"


@pytest.mark.requirement("channel.limits")
async def test_the_channel_takes_200_a_minute_of_all_together(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 8)
        answers = [code_of(await town.send(each)) for each in town.members[:7] for _ in range(29)]
        assert answers == ["accepted"] * 200 + ["rate_limited"] * 3
        await trio.sleep(60)
        assert code_of(await town.send(town.owner)) == "accepted"


def test_what_is_known_of_a_channel_is_forgotten_a_minute_after_the_last_word() -> None:
    windows, state = Windows(60.0), Channel()
    state.head = 7
    state.spent.append(Spent(7, "a", 1.0))
    windows.keep(state, "ch", 1.0)
    windows.keep(Channel(), "other", 60.0)
    found = windows.get("ch")
    assert found is not None
    assert (found.head, found.spent) == (7, (Spent(7, "a", 1.0),))
    windows.keep(Channel(), "other", 61.0)
    assert windows.get("ch") is None
    assert len(windows) == 1


@pytest.mark.requirement("channel.unread")
async def test_a_member_is_told_once_until_it_has_read_and_a_restart_repeats_nothing() -> None:
    store, clock = MemoryStore(), VirtualClock(START_MS)
    async with open_bench(store=store, clock=clock) as bench:
        town = await open_town(bench, 2)
        one, other = town.members
        for _ in range(3):
            await town.send(town.owner)
        assert await town.told(one) == [1]
        assert await town.told(town.owner) == []  # its own words are no news
        await town.call("get_channel_history", one)
        await town.send(town.owner)
        assert (await town.told(one), await town.told(other)) == ([1, 4], [1])
        await town.call("get_channel_history", one)
    for _ in range(2):
        async with open_bench(store=store, clock=clock) as bench:
            town.bench = bench
            await town.call("get_channel_history", one)
            assert (await town.told(one), await town.told(other)) == ([1, 4], [1])
    async with open_bench(store=store, clock=clock) as bench:
        town.bench = bench
        await town.send(town.owner)
        assert (await town.told(one), await town.told(other)) == ([1, 4, 5], [1])


@pytest.mark.requirement("channel.unread")
async def test_who_reads_but_not_to_the_end_is_not_told_again_and_who_was_overtaken_is() -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 1)
        (one,) = town.members
        for _ in range(5):
            await town.send(town.owner)
        await town.call("get_channel_history", one, after_seq=0, limit=2)
        # It has read what it was told of; that there is more it is told anew.
        assert await town.told(one) == [1, 5]
        await town.call("get_channel_history", one, after_seq=2, limit=2)
        assert await town.told(one) == [1, 5]
        await town.call("get_channel_history", one, after_seq=4)
        assert await town.told(one) == [1, 5]
        await town.send(town.owner)
        assert await town.told(one) == [1, 5, 6]


@pytest.mark.requirement("channel.unread")
async def test_who_follows_is_told_nothing_until_it_leaves_with_something_unread() -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 2)
        one, other = town.members
        reads, lags = await town.follow(one), await town.follow(other)
        async with closing(reads, lags):
            for at in range(1, 4):
                await town.send(town.owner)
                assert await seqs(reads) == [at]
            assert await seqs(lags) == [1, 2, 3]
            await town.send(town.owner)
            assert await seqs(reads) == [4]
            assert (await town.told(one), await town.told(other)) == ([], [])
        assert (await town.told(one), await town.told(other)) == ([], [4])
        await town.send(town.owner)
        assert (await town.told(one), await town.told(other)) == ([5], [4])
        again = await town.follow(other, after_seq=3)
        async with closing(again):
            assert await seqs(again) == [4, 5]
        await town.send(town.owner)
        assert await town.told(other) == [4, 6]  # following to the end was reading


@pytest.mark.requirement("channel.unread", "channel.unread-cost")
async def test_many_are_told_in_chunks_and_a_message_to_those_who_were_told_writes_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actors, "CHUNK", 8)
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        town = await open_town(bench, 30)
        sizes: list[int] = []
        written = store.commit

        async def commit(unit: Unit) -> None:
            sizes.append(len(unit.puts) + len(unit.deliver))
            await written(unit)

        monkeypatch.setattr(store, "commit", commit)
        await town.send(town.owner)
        await wait_all_tasks_blocked()
        assert max(sizes) <= 2 * 8 + 2
        assert [await town.told(each) for each in town.members] == [[1]] * 30
        row = await read_channel(store, town.id)
        assert row is not None
        assert row.due is None
        sizes.clear()
        for _ in range(3):
            await town.send(town.owner)
        assert sizes == [1, 1, 1]  # the event of the channel's own stream


@pytest.mark.requirement("channel.unread")
async def test_a_crash_between_two_chunks_forgets_nobody(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(actors, "CHUNK", 4)
    store, clock = MemoryStore(), VirtualClock(START_MS)
    async with open_bench(store=store, clock=clock) as bench:
        town = await open_town(bench, 10)
        store.gate.hold(written=True)  # the message is written; then the process ends
        with trio.move_on_after(1):
            await town.send(town.owner)
        assert [len(await store.events(f"agent:{each.agent}", 0)) for each in town.members].count(1) == 4
    store.gate.release()
    async with open_bench(store=store, clock=clock) as bench:
        town.bench = bench
        await trio.sleep(5)  # nobody asks for the channel: it is due
        assert [await town.told(each) for each in town.members] == [[1]] * 10
        assert await town.told(town.owner) in ([], [1])


@pytest.mark.requirement("channel.unread")
async def test_a_store_that_takes_nothing_for_a_while_delays_what_is_told() -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        town = await open_town(bench, 1)
        (one,) = town.members
        reader = await town.follow(one)
        await town.send(town.owner)
        store.fail("unavailable", lambda unit: any(each.kind == "channel" for each in unit.deliver))
        reader.close()
        assert await town.told(one) == []
        await town.send(town.owner)
        assert await town.told(one) == [2]


@pytest.mark.requirement("channel.unread")
async def test_what_was_read_while_the_store_took_nothing_is_noted_with_the_next_message() -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        town = await open_town(bench, 1)
        (one,) = town.members
        await town.send(town.owner)
        store.gate.fail_next(Unavailable())
        store.gate.fail_next(Unavailable())
        assert (await town.call("get_channel_history", one))["head"] == 1
        await town.send(town.owner)
        assert await town.told(one) == [1, 2]


@pytest.mark.requirement("channel.cut-off")
async def test_removing_leaving_and_sending_at_once_agree_with_the_log() -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 4)
        answers: dict[str, list[Any]] = {}

        async def send(who: Any) -> None:
            for _ in range(10):
                answers.setdefault(who.agent, []).append(await town.send(who))

        async with trio.open_nursery() as nursery:
            for each in town.members:
                nursery.start_soon(send, each)
            nursery.start_soon(lambda: town.call("leave_channel", town.members[0]))
            nursery.start_soon(
                lambda: town.call("remove_channel_member", town.owner, target_agent_id=town.members[1].agent)
            )
        count = 0
        for given in answers.values():
            codes = [code_of(each) for each in given]
            count += codes.count("accepted")
            assert codes == ["accepted"] * codes.count("accepted") + ["not_a_party"] * codes.count(
                "not_a_party"
            )
        assert await kept(town) == list(range(1, count + 1))
        assert count < 40


@pytest.mark.requirement("channel.roles")
async def test_of_a_transfer_and_the_new_owners_leaving_at_once_one_comes_first() -> None:
    for order in (0, 1):
        async with open_bench() as bench:
            town = await open_town(bench, 1)
            (one,) = town.members
            answers: dict[str, Any] = {}

            async def give(town: Town = town, one: Any = one, answers: Any = answers) -> None:
                answers["give"] = await town.call(
                    "transfer_channel", town.owner, new_owner_agent_id=one.agent
                )

            async def leave(town: Town = town, one: Any = one, answers: Any = answers) -> None:
                answers["leave"] = await town.call("leave_channel", one)

            async with trio.open_nursery() as nursery:
                for each in (give, leave) if order else (leave, give):
                    nursery.start_soon(each)
            codes = (code_of(answers["give"]), code_of(answers["leave"]))
            assert codes in (("accepted", "bad_request"), ("not_found", "accepted"))
            row = await read_channel(bench.store, town.id)
            assert row is not None
            assert row.owner_id == (one.agent if codes[0] == "accepted" else town.owner.agent)


@pytest.mark.requirement("channel.loop")
async def test_two_that_answer_each_other_at_once_are_stopped_and_both_are_told(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench:
        town = await open_town(bench, 2)
        answer: Any = await town.send(town.members[0])
        for at in range(1, 60):
            await trio.sleep(2)
            answer = await town.send(town.members[at % 2])
            if isinstance(answer, Refusal):
                break
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.detail["reason"]) == ("quota_exceeded", "loop")
        assert at < 50
        for each in town.members:
            events = await bench.store.events(f"agent:{each.agent}", 0)
            notices = [msgspec.json.decode(event.data) for event in events if event.kind == "notice"]
            assert [notice["what"] for notice in notices] == ["loop"]
            assert (notices[0]["channel_id"], notices[0]["reason"]) == (town.id, "loop")


@pytest.mark.requirement("channel.seq")
async def test_the_members_are_read_back() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        town = await open_town(bench, 5, private=True)
        await enter(town, "late", private=True)
    async with open_bench(store=store) as bench:
        town.bench = bench
        await town.send(town.owner)
        assert [await town.told(each) for each in town.members] == [[1]] * 5
        assert code_of(await town.send(caller_of(bench, str(town.members[4].agent)))) == "accepted"
