"""Who computes now, and what goes on by itself."""

from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.actor import Crashed
from broker.actors.mill import REST_S, Go, Line, Mill
from broker.store.memory import MemoryStore
from broker.store.port import Put, Unit
from broker.wire.refusals import refuse


class House:
    """Answers Go with what is left of each trial."""

    def __init__(self, **left: Any) -> None:
        self.left = left
        self.asked: list[str] = []
        self.times: list[tuple[str, float]] = []
        self.started: dict[str, float] = {}
        self.at_once = self.most = 0

    async def ask(self, kind: str, key: str, command: Any) -> Any:
        assert (kind, command) == ("trial", Go())
        self.asked.append(key)
        self.times.append((key, trio.current_time()))
        self.started.setdefault(key, trio.current_time())
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await trio.sleep(1)
        self.at_once -= 1
        answer = self.left[key].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def mill(house: Any = None) -> Mill:
    return Mill(MemoryStore(), house)


def test_names_take_turns() -> None:
    line: Line[int] = Line()
    for name, one in (("a", 1), ("a", 2), ("a", 3), ("b", 4)):
        line.add(name, one)
    line.remove("a", 2)
    assert [line.next() for _ in range(3)] == [("a", 1), ("b", 4), ("a", 3)]
    assert not line


@pytest.mark.requirement("trial.session-fair")
async def test_turns_are_one_at_a_time_in_turn_by_agent(autojump_clock: MockClock) -> None:
    made, turns = mill(), list[str]()

    async def work(name: str) -> None:
        async with made.turn(name):
            turns.append(name)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for name in ("first", "a", "a", "a", "b"):
            nursery.start_soon(work, name)
            await wait_all_tasks_blocked()
        assert made.waiting == 4
    assert turns == ["first", "a", "b", "a", "a"]
    assert trio.current_time() == pytest.approx(5 + 4 * REST_S), "between two turns the loop is others'"


@pytest.mark.requirement("trial.session-fair")
async def test_a_turn_that_comes_as_its_wait_is_given_up_is_the_next_one_s(autojump_clock: MockClock) -> None:
    made, given_up, turns = mill(), trio.CancelScope(), list[str]()

    async def work(name: str, scope: trio.CancelScope) -> None:
        with scope:
            async with made.turn(name):
                turns.append(name)

    async with trio.open_nursery() as nursery:
        async with made.turn("a"):
            for name, scope in (("b", given_up), ("c", trio.CancelScope())):
                nursery.start_soon(work, name, scope)
                await wait_all_tasks_blocked()
            given_up.cancel()  # and before b hears of it, a's turn is over
        with trio.fail_after(1):
            await wait_all_tasks_blocked(REST_S * 2)
    assert turns == ["c"]
    with trio.fail_after(1):
        await work("d", trio.CancelScope())


async def test_who_gives_up_waiting_leaves_the_line(autojump_clock: MockClock) -> None:
    made = mill()
    async with made.turn("a"):
        with trio.move_on_after(1) as waited:
            async with made.turn("b"):
                raise AssertionError
        assert waited.cancelled_caught
        assert made.waiting == 0
    with trio.fail_after(1):
        async with made.turn("c"):
            pass


async def test_who_is_cancelled_in_its_turn_hands_it_on(autojump_clock: MockClock) -> None:
    made = mill()
    with trio.move_on_after(1):
        async with made.turn("a"):
            await trio.sleep(10)
    with trio.fail_after(1):
        async with made.turn("b"):
            pass


@pytest.mark.requirement("trial.session-fair", "trial.session-operation")
async def test_so_many_operations_go_on_at_once_and_agents_take_turns(autojump_clock: MockClock) -> None:
    house = House(a1=[True, True, False], a2=[True, False], a3=[False], b=[True, False])
    made = mill(house)
    for agent, trial in (("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b"), ("b", "b")):
        made.began(agent, trial)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert house.most == 2
    assert sorted(house.asked) == ["a1", "a1", "a1", "a2", "a2", "a3", "b", "b"]
    assert house.asked.index("b") < 2, "b has its turn before all of a's"


@pytest.mark.requirement("trial.session-operation")
async def test_what_could_not_be_written_and_what_crashed_is_tried_again(autojump_clock: MockClock) -> None:
    fell = [Crashed("x")] * 9
    house = House(a=[refuse("unavailable", "no"), False], b=[*fell, True, Crashed("x"), False])
    made = mill(house)
    made.began("a", "a")
    made.began("b", "b")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.sleep(400)
        nursery.cancel_scope.cancel()
    assert house.asked.count("a") == 2
    at = [when for key, when in house.times if key == "b"]
    waited = [round(after - before - 1) for before, after in pairwise(at)]
    assert waited == [2, 4, 8, 16, 32, 60, 60, 60, 60, 0, 2], "a fault that stays is no loop"


@pytest.mark.requirement("trial.session-killed")
async def test_a_start_finds_what_is_under_way_and_passes_by_what_is_damaged(
    autojump_clock: MockClock,
) -> None:
    house, store = House(a=[False]), MemoryStore()
    for id, doc in (("a", b'{"agent_id":"ag"}'), ("x", b"broken")):
        await store.commit(Unit(puts=(Put("trial", id, 0, doc, (("running", 1),)),)))
    made = Mill(store, house)  # type: ignore[arg-type]  # the part of a house that it asks
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert house.asked == ["a"]


@pytest.mark.requirement("trial.session-killed")
async def test_a_start_finds_all_that_is_under_way(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.actors.mill.PAGE", 2)
    names = [f"t{n}" for n in range(5)]
    house, store = House(**{name: [False] for name in names}), MemoryStore()
    for name in names:
        await store.commit(Unit(puts=(Put("trial", name, 0, b'{"agent_id":"ag"}', (("running", 1),)),)))
    made = Mill(store, house)  # type: ignore[arg-type]  # the part of a house that it asks
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert sorted(house.asked) == names


@pytest.mark.requirement("trial.session-fair")
async def test_trials_whose_mailboxes_are_full_hold_up_no_others(autojump_clock: MockClock) -> None:
    full = refuse("overloaded", "its mailbox is full")
    house = House(a=[full, False], b=[full, False], c=[True] * 3 + [False])
    made = mill(house)
    for name in "abc":
        made.began(name, name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.sleep(8)
        nursery.cancel_scope.cancel()
    assert house.asked[:3] == ["a", "b", "c"]
    assert house.started["c"] == 1.0, "as soon as a worker is free"
    assert sorted(house.asked) == ["a", "a", "b", "b", *"cccc"]


async def test_who_watches_hears_of_each_part_and_leaves_nothing(autojump_clock: MockClock) -> None:
    made = mill()
    made.moved("a")  # nobody waits
    with made.watch("a") as moves, made.watch("a") as other:
        for _ in range(2):
            moved = moves()
            assert moved is other()
            made.moved("a")
            assert moved.is_set()
            assert not moves().is_set()
    assert not made._moved
