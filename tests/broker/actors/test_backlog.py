"""What a push is to send next."""

import pytest
from msgspec.structs import replace

from broker.actors.backlog import PAGE, read_backlog
from broker.core.push import PushRow
from broker.store.memory import MemoryStore
from broker.store.port import Deliver, Retention, Unit

ROW = PushRow(
    push_id="p", form="webhook", agent_id="ag_1", stream="agent:ag_1", url="u", position=0, created_at=1
)


async def filled(count: int) -> MemoryStore:
    store = MemoryStore()
    for n in range(count):
        await store.commit(Unit(deliver=(Deliver(ROW.stream, "notice", data=b'{"n":%d}' % n, at=n),)))
    return store


async def test_events_come_a_page_at_a_time_each_under_an_id_of_its_own() -> None:
    store = await filled(PAGE + 1)
    first = await read_backlog(store, ROW)
    rest = await read_backlog(store, replace(ROW, position=first.events[-1][0], epoch=first.head.epoch))
    assert [position for position, _ in (*first.events, *rest.events)] == list(range(1, PAGE + 2))
    assert len({each.id for _, each in (*first.events, *rest.events)}) == PAGE + 1
    assert {each.gap for _, each in (*first.events, *rest.events)} == {None}
    last = await read_backlog(store, replace(ROW, position=PAGE + 9))
    assert (last.events, last.upto) == ([], PAGE + 1)


@pytest.mark.requirement("webhook.gap")
async def test_the_first_event_after_a_gap_says_why() -> None:
    store = await filled(5)
    moved = await read_backlog(store, replace(ROW, epoch="another"))
    assert [each.gap for _, each in moved.events] == ["epoch_changed", None, None, None, None]
    await store.sweep(Retention(now=10_000, events_before=10_000, events_keep=2), 100)
    trimmed = await read_backlog(store, ROW)
    assert [(position, each.gap) for position, each in trimmed.events] == [(4, "trimmed"), (5, None)]
