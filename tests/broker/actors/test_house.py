"""The house: one actor a key, started on demand, let go when idle, and the ask order."""

from contextvars import ContextVar
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.actor import Actor, Crashed
from broker.actors.house import House
from broker.store.memory import MemoryStore
from broker.wire.refusals import Refusal

WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Echo(Actor[str]):
    """Answers what it is asked; asks another when told to."""

    house: House

    async def load(self) -> str:
        if self.key == "broken":
            raise OSError("no disk")
        return self.key

    async def handle(self, command: Any) -> Any:
        if command == "who started me":
            return WHO.get()
        if command == "wait":
            await trio.sleep_forever()
        if command == "ask another":
            return await self.house.ask("echo", "other", "hello")
        return (self.key, command)


def house_of(nursery: trio.Nursery) -> House:
    house = House(nursery, idle_s=60.0)

    def make(key: str) -> Echo:
        actor = Echo(key, store=MemoryStore(), mailbox=8, commit_timeout_s=5.0)
        actor.house = house
        return actor

    house.add("echo", make)
    return house


async def test_one_actor_a_key() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        assert await house.ask("echo", "a", 1) == ("a", 1)
        assert house.actor("echo", "a") is house.alive("echo", "a")
        assert house.alive("echo", "b") is None
        assert house.counts() == {"echo": 1}
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("observe.actors-apart")
async def test_an_actor_knows_nothing_of_the_request_that_started_it() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        WHO.set("the first request")
        assert await house.ask("echo", "a", "who started me") == "nobody"
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("observe.mailboxes")
async def test_who_finds_a_mailbox_full_is_counted(autojump_clock: Any) -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        for _ in range(9):  # one is handled, eight wait
            nursery.start_soon(house.ask, "echo", "a", "wait")
            await wait_all_tasks_blocked()
        assert house.turned_away == 0
        refused = await house.ask("echo", "a", "wait")
        assert isinstance(refused, Refusal)
        assert (refused.code, house.turned_away) == ("overloaded", 1)
        nursery.cancel_scope.cancel()


async def test_an_actor_asks_no_actor() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        with pytest.raises(Crashed, match="an actor asks no actor"):
            await house.ask("echo", "a", "ask another")
        nursery.cancel_scope.cancel()


async def test_a_state_that_can_not_be_read_is_a_fault_for_all_who_wait() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        with pytest.raises(Crashed):
            await house.ask("echo", "broken", 1)
        nursery.cancel_scope.cancel()


async def test_idle_actors_leave_memory_and_busy_ones_stay(autojump_clock: Any) -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        nursery.start_soon(house.reap)
        for key in range(1000):
            await house.ask("echo", str(key), 1)
        await trio.sleep(50)
        await house.ask("echo", "7", 1)
        await trio.sleep(20)
        assert house.counts() == {"echo": 1}
        await trio.sleep(70)
        assert house.counts() == {"echo": 0}
        assert await house.ask("echo", "3", 2) == ("3", 2)
        nursery.cancel_scope.cancel()


async def test_telling_one_that_is_not_alive_starts_nothing() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        house.tell("echo", "a", 1)
        await wait_all_tasks_blocked()
        assert house.counts() == {"echo": 0}
        nursery.cancel_scope.cancel()


async def test_rousing_starts_one_that_is_not_alive_but_not_while_the_house_stops() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        house.rouse("echo", "a", 1)
        await wait_all_tasks_blocked()
        assert house.counts() == {"echo": 1}
        nursery.cancel_scope.cancel()
        house.rouse("echo", "b", 1)
        assert house.counts() == {"echo": 1}


async def test_two_factories_for_a_kind_are_refused() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        with pytest.raises(ValueError, match="two factories"):
            house.add("echo", lambda key: Echo(key, store=MemoryStore(), mailbox=1, commit_timeout_s=1.0))


async def test_a_stopping_house_refuses_and_starts_nobody() -> None:
    async with trio.open_nursery() as nursery:
        house = house_of(nursery)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            assert (await house.ask("echo", "a", 1)).code == "unavailable"
