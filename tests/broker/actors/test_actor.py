"""The actor's loop: back-pressure, commits shielded within a bound, in doubt, leaving."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.actor import GONE, NOT_NOW, Actor, Crashed, Gone, Letter, Reply, Write
from broker.actors.house import House
from broker.store.memory import MemoryStore
from broker.store.port import Append, Conflict, InDoubt, Unavailable, Unit
from broker.wire.refusals import Refusal


class Counter(Actor[int]):
    """Appends a row for each command and counts them."""

    loads = 0

    async def load(self) -> int:
        Counter.loads += 1
        return len(await self.store.entries("count"))

    async def handle(self, command: Any) -> Any:
        if command == "boom":
            raise ZeroDivisionError
        assert self.state is not None
        unit = Unit(append=Append("count", self.state, str(command).encode(), 0))
        refused = await self.commit(unit)
        if refused is not None:
            return refused
        self.state += 1
        return self.state


class QuickCounter(Counter):
    """The same, decided where the letter arrives; "wait" alone is left to the task."""

    def decide(self, command: Any) -> Any:
        if command == "boom":
            raise ZeroDivisionError
        if command == "wait" or self.state is None:
            return NOT_NOW
        return Count(self, Unit(append=Append("count", self.state, str(command).encode(), 0)))


class Count(Write):
    """One row more."""

    def __init__(self, actor: QuickCounter, unit: Unit) -> None:
        self.actor = actor
        self.began = trio.current_time()
        self.unit = unit

    def settle(self, refused: Refusal | None) -> Any:
        if refused is not None:
            return refused
        assert self.actor.state is not None
        self.actor.state += 1
        return self.actor.state


@pytest.fixture(params=[Counter, QuickCounter], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule holds in both ways: in the actor's task, and where the letter arrives."""
    monkeypatch.setattr(f"{__name__}.Chosen", request.param)


Chosen: type[Counter] = Counter


def counter(store: MemoryStore, mailbox: int = 4, house: House | None = None) -> Any:
    overdue = house.overdue if house is not None else None
    return lambda key: Chosen(key, store=store, mailbox=mailbox, commit_timeout_s=5.0, overdue=overdue)


def house_of(nursery: trio.Nursery, store: MemoryStore, mailbox: int = 4) -> House:
    house = House(nursery, idle_s=60.0)
    nursery.start_soon(house.overdue.run)
    house.add("counter", counter(store, mailbox, house))
    return house


async def test_letters_are_handled_in_order_and_answered() -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        assert [await house.ask("counter", "k", letter) for letter in "abc"] == [1, 2, 3]
        assert [entry.data for entry in await store.entries("count")] == [b"a", b"b", b"c"]
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("order.overloaded")
async def test_a_full_mailbox_answers_overloaded_at_once(autojump_clock: Any) -> None:
    store = MemoryStore()
    store.gate.hold()
    answers: list[Any] = []

    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)

        async def ask() -> None:
            answers.append(await house.ask("counter", "k", "x"))

        for _ in range(5):
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
        assert answers == []
        refused = await house.ask("counter", "k", "x")
        assert isinstance(refused, Refusal)
        assert (refused.code, refused.retryable) == ("overloaded", True)
        assert refused.detail["retry_after_ms"] > 0
        store.gate.release()
        await wait_all_tasks_blocked()
        assert sorted(answers) == [1, 2, 3, 4, 5]
        nursery.cancel_scope.cancel()


async def test_cancelling_the_wait_does_not_cancel_the_command(autojump_clock: Any) -> None:
    store = MemoryStore()
    store.gate.hold()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        with trio.move_on_after(1):
            await house.ask("counter", "k", "x")
        store.gate.release()
        await wait_all_tasks_blocked()
        assert [entry.data for entry in await store.entries("count")] == [b"x"]
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("retries.in-doubt")
@pytest.mark.parametrize("applied", [True, False])
async def test_a_commit_in_doubt_ends_the_actor_and_the_next_one_reads_the_log(applied: bool) -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        await house.ask("counter", "k", "a")
        before = Counter.loads
        store.gate.fail_next(InDoubt(), applied=applied)
        refused = await house.ask("counter", "k", "b")
        assert (refused.code, refused.retryable) == ("in_doubt", True)
        assert await house.ask("counter", "k", "c") == (3 if applied else 2)
        assert Counter.loads == before + 1
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("retries.unavailable")
async def test_a_commit_certainly_not_written_leaves_the_actor_alive() -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        await house.ask("counter", "k", "a")
        before = Counter.loads
        store.gate.fail_next(Unavailable())
        assert (await house.ask("counter", "k", "b")).code == "unavailable"
        assert await house.ask("counter", "k", "c") == 2
        assert Counter.loads == before
        nursery.cancel_scope.cancel()


async def test_a_wedged_commit_is_in_doubt_after_its_bound(autojump_clock: Any) -> None:
    store = MemoryStore()
    store.gate.hold()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        start = trio.current_time()
        refused = await house.ask("counter", "k", "a")
        assert refused.code == "in_doubt"
        assert trio.current_time() - start == pytest.approx(5.0)
        nursery.cancel_scope.cancel()


async def test_shutting_down_in_mid_commit_waits_for_the_commit_within_its_bound(autojump_clock: Any) -> None:
    store = MemoryStore()
    store.gate.hold()
    start = trio.current_time()
    async with trio.open_nursery() as outer:
        async with trio.open_nursery() as nursery:
            house = house_of(nursery, store)
            outer.start_soon(house.ask, "counter", "k", "a")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        outer.cancel_scope.cancel()
    assert trio.current_time() - start <= 5.01


async def test_a_conflict_means_reading_again_and_the_letter_is_asked_again() -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        await house.ask("counter", "k", "a")
        await store.commit(Unit(append=Append("count", 1, b"from elsewhere", 0)))
        assert await house.ask("counter", "k", "b") == 3
        nursery.cancel_scope.cancel()


class Slow(Counter):
    """Whose state takes for ever to read."""

    async def load(self) -> int:
        await trio.sleep_forever()
        return 0


async def test_who_waits_for_an_actor_that_is_cancelled_while_it_reads_hears_that_the_broker_stops() -> None:
    """Neither a fault, nor that there is no such thing."""
    told: list[Any] = []

    async def wait(actor: Actor[Any]) -> None:
        with pytest.raises(Unavailable, match="stopping"):
            await actor.wait_loaded()
        told.append(actor.gone)

    async with trio.open_nursery() as outer, trio.open_nursery() as nursery:
        house = House(nursery, idle_s=60.0)
        house.add("slow", lambda key: Slow(key, store=MemoryStore(), mailbox=4, commit_timeout_s=5.0))
        actor = house.actor("slow", "k")
        actor.post(Letter("a", told.append))
        outer.start_soon(wait, actor)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert told == [GONE, True]
    assert house.crashes == 0


async def test_a_crash_is_contained_told_to_its_caller_and_healed_by_the_log(caplog: Any) -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        await house.ask("counter", "k", "a")
        with pytest.raises(Crashed):
            await house.ask("counter", "k", "boom")
        assert await house.ask("counter", "k", "b") == 2
        assert house.crashes == 1
        nursery.cancel_scope.cancel()
    assert "crashed" in caplog.text


@pytest.mark.requirement("faults.damage")
async def test_a_state_that_the_store_can_not_read_is_unavailable_and_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unreadable(*_: Any) -> Any:
        raise Unavailable("can't read")

    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        with monkeypatch.context() as patch:
            patch.setattr(store, "entries", unreadable)
            answer = await house.ask("counter", "k", "a")
            assert isinstance(answer, Refusal)
            assert answer.code == "unavailable"
            with pytest.raises(Unavailable):
                await house.actor("counter", "k").wait_loaded()
        assert await house.ask("counter", "k", "b") == 1
        assert house.crashes == 0
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("faults.damage")
async def test_a_letter_for_which_the_store_can_not_be_read_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unreadable(*_: Any) -> Any:
        raise Unavailable("can't read")

    async with trio.open_nursery() as nursery:
        house = house_of(nursery, MemoryStore())
        assert await house.ask("counter", "k", "a") == 1
        with monkeypatch.context() as patch:
            patch.setattr(Counter, "handle", unreadable)
            answer = await house.ask("counter", "k", "wait")
            assert isinstance(answer, Refusal)
            assert answer.code == "unavailable"
        assert await house.ask("counter", "k", "c") == 2
        assert house.crashes == 0
        nursery.cancel_scope.cancel()


async def test_letters_behind_a_crash_are_handled_by_the_next_actor() -> None:
    store = MemoryStore()
    answers: dict[str, Any] = {}
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)

        async def ask(letter: str) -> None:
            try:
                answers[letter] = await house.ask("counter", "k", letter)
            except Crashed:
                answers[letter] = "crashed"

        store.gate.hold()
        for letter in ("a", "boom", "b"):
            nursery.start_soon(ask, letter)
            await wait_all_tasks_blocked()
        store.gate.release()
        await wait_all_tasks_blocked()
        assert answers == {"a": 1, "boom": "crashed", "b": 2}
        nursery.cancel_scope.cancel()


async def test_busy_comes_without_a_checkpoint() -> None:
    actor = counter(MemoryStore(), mailbox=0)("k")
    with trio.testing.assert_no_checkpoints():
        assert isinstance(actor.post(Letter("x", Reply().answer)), Refusal)


async def test_an_actor_that_left_turns_away_what_comes(autojump_clock: Any) -> None:
    store = MemoryStore()
    actor = counter(store)("k")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        await actor.wait_loaded()
        actor.leave()
        await wait_all_tasks_blocked()
        assert actor.gone
        assert isinstance(actor.post(Letter("x", Reply().answer)), Gone)


async def test_letters_of_both_ways_keep_their_order(autojump_clock: Any) -> None:
    store = MemoryStore()
    answers: list[Any] = []
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store, mailbox=8)
        await house.ask("counter", "k", "a")
        actor = house.actor("counter", "k")
        store.gate.hold()
        for letter in ("b", "wait", "c", "d"):
            assert house.begin(actor, letter, answers.append)
        await wait_all_tasks_blocked()
        assert answers == []
        store.gate.release()
        await wait_all_tasks_blocked()
        assert answers == [2, 3, 4, 5]
        assert [entry.data for entry in await store.entries("count")] == [b"a", b"b", b"wait", b"c", b"d"]
        nursery.cancel_scope.cancel()


async def test_who_fails_at_an_answer_harms_nobody(caplog: Any, autojump_clock: Any) -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        await house.ask("counter", "k", "a")
        assert house.begin(house.actor("counter", "k"), "b", lambda _: 1 / 0)
        await wait_all_tasks_blocked()
        assert await house.ask("counter", "k", "c") == 3
        nursery.cancel_scope.cancel()
    assert "who asked failed" in caplog.text


async def test_a_commit_that_lands_after_its_bound_is_not_folded(autojump_clock: Any) -> None:
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        house = house_of(nursery, store)
        await house.ask("counter", "k", "a")
        old = house.actor("counter", "k")
        store.gate.hold()
        assert (await house.ask("counter", "k", "b")).code == "in_doubt"
        store.gate.release()
        await wait_all_tasks_blocked()
        assert (old.gone, old.state) == (True, 1)
        written = len(await store.entries("count"))
        assert await house.ask("counter", "k", "c") == written + 1
        nursery.cancel_scope.cancel()


async def test_a_reply_is_given_once() -> None:
    reply = Reply()
    reply.answer(1)
    reply.answer(2)
    assert await reply.wait() == 1
    assert GONE is not None


def test_conflict_says_what_did_not_hold() -> None:
    assert Conflict("append", "conv:1").what == "append"
