"""The actor of one document: one commit for all, and read again when something was written beside it."""

from typing import Any

import msgspec
import pytest

from broker.actors.actor import Letter, Reply
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor, Told
from broker.clock import VirtualClock
from broker.store.memory import MemoryStore
from broker.store.port import Put, Unavailable, Unit
from broker.wire.refusals import Refusal, refuse


class Row(msgspec.Struct, frozen=True):
    count: int
    due: int = 0


class Add(msgspec.Struct, frozen=True):
    by: int
    once: Once | None = None


class Counter(RecordActor[Row]):
    kind = "counter"
    type = Row

    def index_of(self, row: Row) -> Index:
        return (("parity", str(row.count % 2)), *((("due", row.due),) if row.due else ()))

    async def do(self, command: Add) -> Any:
        old = self.row or Row(0)
        if command.by < 0:
            return refuse("bad_request", "only up")
        if command.by == 0:
            return await self.write(self.row, {"count": old.count})
        new = None if command.by == 99 else Row(old.count + command.by, command.by)
        said = {"count": new.count if new else 0}
        beside = Put("beside", str(said["count"]), 0, b"{}")
        return await self.write(
            new, said, once=command.once, puts=[beside], events=[Told("agent:x", "notice", said)]
        )


class World:
    def __init__(self, store: MemoryStore, clock: VirtualClock) -> None:
        self.store = store
        self.nudged: list[int] = []
        self.actor = Counter(
            "c", store=store, clock=clock, mailbox=8, commit_timeout_s=1, nudge=self.nudged.append
        )

    async def ask(self, command: Add) -> Any:
        reply = Reply()
        assert self.actor.post(Letter(command, reply.answer)) is None
        return await reply.wait()


@pytest.fixture
async def world(nursery: Any, clock: VirtualClock) -> World:
    made = World(MemoryStore(), clock)
    nursery.start_soon(made.actor.run)
    return made


@pytest.mark.requirement("network.one-document")
async def test_a_change_is_one_unit_with_index_events_and_the_remembered_answer(world: World) -> None:
    once = Once("s", "k", b"d", 2**52)
    assert await world.ask(Add(3, once)) == {"count": 3}
    document = await world.store.get("counter", "c")
    assert document is not None
    assert msgspec.json.decode(document.doc, type=Row) == Row(3, 3)
    assert [each.id for each in await world.store.find("counter", "parity", "1")] == ["c"]
    assert await world.store.get("beside", "3") is not None
    assert [each.data for each in await world.store.events("agent:x", 0)] == [b'{"count":3}']
    assert world.nudged == [3]
    assert await world.ask(Add(3, once)) == {"count": 3}  # done before
    assert await world.ask(Add(1)) == {"count": 4}


async def test_a_refusal_and_a_look_write_nothing(world: World) -> None:
    assert isinstance(await world.ask(Add(-1)), Refusal)
    assert await world.ask(Add(0)) == {"count": 0}
    assert await world.store.get("counter", "c") is None


async def test_a_deleted_document_begins_anew(world: World) -> None:
    await world.ask(Add(2))
    await world.ask(Add(99))
    assert await world.store.get("counter", "c") is None
    assert await world.ask(Add(3)) == {"count": 3}


@pytest.mark.requirement("network.one-document")
async def test_what_was_written_beside_it_ends_the_actor_before_it_answers(world: World) -> None:
    await world.ask(Add(2))
    await world.store.commit(Unit(puts=(Put("counter", "c", 1, b'{"count":7}'),)))
    reply = Reply()
    world.actor.post(Letter(Add(1), reply.answer))
    answer = await reply.wait()
    assert type(answer).__name__ == "Gone"  # asked again, another one reads the store


async def test_what_cannot_be_read_is_unavailable(clock: VirtualClock) -> None:
    store = MemoryStore()
    await store.commit(Unit(puts=(Put("counter", "c", 0, b"{"),)))
    world = World(store, clock)
    with pytest.raises(Unavailable, match="counter c"):
        await world.actor.load()
