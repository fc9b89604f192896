"""The auditor: one chain in the order of the notes, and nothing written over that tells of a damage."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.actor import Crashed
from broker.actors.auditor import (
    BATCH,
    HEAD,
    KEY,
    MOST,
    ROW,
    AuditorActor,
    Drain,
    Look,
    Looked,
    Witness,
    row_id,
)
from broker.actors.headkeeper import HeadKeeper, MemoryHead
from broker.actors.house import House
from broker.actors.notes import WAITING, by_itself
from broker.clock import VirtualClock
from broker.core.audit import AuditEvent
from broker.core.conversation import Restored
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Put, Unavailable, Unit
from broker.wire.auditlog import ALARM, RESTORED, Verdict, Verifier, read_row
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.audits import AT, DAMAGES, WIRE, Kept


class Power(Exception):
    """The process dies."""


class DyingHead(MemoryHead):
    """Where the process dies when it is about to write the head."""

    def __init__(self) -> None:
        super().__init__()
        self.dies = False
        self.full = False

    async def write(self, text: bytes) -> None:
        if self.dies:
            raise Power
        if self.full:
            raise OSError(28, "No space left on device")
        await super().write(text)


class Office:
    """An auditor on a store, and what tests do with it."""

    def __init__(self, house: House, store: MemoryStore, keeper: MemoryHead) -> None:
        self.house = house
        self.store = store
        self.keeper = keeper

    async def note(self, *kinds: str) -> None:
        for number, kind in enumerate(kinds):
            name = f"au_{len(self.store._docs)}_{number}"
            put = by_itself(name, AuditEvent(AT, "operator", kind, f"ag_{number}"))
            await self.store.commit(Unit(puts=(put,)))

    async def drain(self) -> Any:
        return await self.house.ask("auditor", KEY, Drain())

    async def kinds(self) -> list[str]:
        """The kinds of all rows in their order, the first one being row 1."""
        kept = kept_in(self.store, self.keeper)
        return [json.loads(kept.rows[n])["kind"] for n in sorted(kept.rows)]

    async def verdict(self) -> Verdict:
        return verdict_of(self.store, self.keeper)


def kept_in(store: MemoryStore, keeper: MemoryHead) -> Kept:
    rows = {int(id): document.doc for (kind, id), document in store._docs.items() if kind == ROW}
    head = store._docs.get((HEAD, KEY))
    return Kept(dict(sorted(rows.items())), None if head is None else head.doc, keeper.text)


async def put_back(kept: Kept, store: MemoryStore, keeper: MemoryHead) -> None:
    """Change the store as somebody would who knows how it is written."""
    texts = {(ROW, row_id(n)): text for n, text in kept.rows.items()}
    if kept.head is not None:
        texts[HEAD, KEY] = kept.head
    there = {place: document.version for place, document in store._docs.items() if place[0] in (ROW, HEAD)}
    for place in there.keys() | texts.keys():
        index = (("all", "1"),) if place[0] == ROW else ()
        await store.commit(Unit(puts=(Put(*place, there.get(place, 0), texts.get(place), index),)))
    keeper.text = kept.beside


def verdict_of(store: MemoryStore, keeper: MemoryHead) -> Verdict:
    kept = kept_in(store, keeper)
    verifier = Verifier({WIRE.pk}, kept.head, kept.beside)
    for n, text in kept.rows.items():
        verifier.row(n, text)
    return verifier.end()


@asynccontextmanager
async def open_office(
    store: MemoryStore | None = None,
    keeper: MemoryHead | None = None,
    *,
    apart: bool = True,
    keys: tuple[WireKey, ...] = (WireKey(WIRE, AT),),
) -> AsyncIterator[Office]:
    store, keeper = store or MemoryStore(), keeper or MemoryHead()
    clock, witness, ids = VirtualClock(AT), Witness(), iter(range(10**6))
    given: HeadKeeper | None = keeper if apart else None
    async with trio.open_nursery() as nursery:
        house = House(nursery, idle_s=60)
        house.add(
            "auditor",
            lambda key: AuditorActor(
                key,
                clock=clock,
                keyring=Keyring(keys),
                keeper=given,
                witness=witness,
                new_id=lambda prefix: f"{prefix}{next(ids)}",
                store=store,
                mailbox=64,
                commit_timeout_s=1,
            ),
        )
        yield Office(house, store, keeper)
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("audit.order")
async def test_notes_become_rows_in_their_order_and_the_head_stands_in_both_places() -> None:
    async with open_office() as office:
        await office.note("one", "two", "three")
        assert await office.drain() == 3
        assert await office.drain() == 0
        assert await office.kinds() == ["one", "two", "three"]
        assert await office.store.due(WAITING, "waits", AT, 10) == []
        kept = kept_in(office.store, office.keeper)
        assert kept.head is not None
        assert kept.beside == kept.head + b"\n"
        assert (await office.verdict()).ok


@pytest.mark.requirement("audit.rotation")
async def test_another_key_of_the_wires_goes_on_where_the_one_before_it_was() -> None:
    store, keeper, newer = MemoryStore(), MemoryHead(), SigningKey(b"n" * 32)
    async with open_office(store, keeper) as office:
        await office.note("one")
        await office.drain()
    async with open_office(store, keeper, keys=(WireKey(WIRE, AT, AT + 1), WireKey(newer, AT + 1))) as office:
        await office.note("two")
        assert await office.drain() == 1
        assert await office.kinds() == ["one", "two"]


@pytest.mark.requirement("audit.order")
async def test_many_notes_are_rows_in_batches_and_one_letter_has_its_bound() -> None:
    async with open_office() as office:
        many = MOST + BATCH
        puts = tuple(by_itself(f"au_{n:05d}", AuditEvent(AT + n, "operator", "x")) for n in range(many))
        await office.store.commit(Unit(puts=puts))
        assert await office.drain() == MOST
        assert await office.drain() == BATCH
        assert await office.kinds() == ["x"] * many
        ids = [json.loads(text)["id"] for text in kept_in(office.store, office.keeper).rows.values()]
        assert ids == sorted(ids)


@pytest.mark.requirement("audit.order")
async def test_many_at_once_make_one_chain() -> None:
    async with open_office() as office, trio.open_nursery() as nursery:
        await office.note(*(f"kind{n}" for n in range(40)))
        for _ in range(30):
            nursery.start_soon(office.drain)
        await trio.testing.wait_all_tasks_blocked()
        assert len(set(await office.kinds())) == 40
        assert (await office.verdict()).ok


@pytest.mark.requirement("audit.crash")
async def test_a_crash_between_the_commit_and_the_file_is_no_damage() -> None:
    store, keeper = MemoryStore(), DyingHead()
    async with open_office(store, keeper) as office:
        await office.note("one")
        await office.drain()
        await office.note("two", "three")
        keeper.dies = True
        with pytest.raises(Crashed):
            await office.drain()
    behind = verdict_of(store, keeper)
    assert behind.ok
    assert behind.rows == 3
    assert "is behind by 2" in behind.remarks[0]
    keeper.dies = False
    async with open_office(store, keeper) as office:
        assert await office.drain() == 0
        assert await office.kinds() == ["one", "two", "three"]
        verdict = await office.verdict()
        assert verdict.ok
        assert not verdict.remarks


@pytest.mark.requirement("audit.crash", "audit.never-stops")
async def test_a_head_that_can_not_be_written_stops_nothing() -> None:
    keeper = DyingHead()
    async with open_office(keeper=keeper) as office:
        keeper.full = True
        await office.note("one")
        assert await office.drain() == 1
        keeper.full = False
        assert await office.drain() == 0
        assert (await office.verdict()).remarks == []


@pytest.mark.requirement("audit.crash")
async def test_a_commit_in_doubt_that_landed_is_not_done_twice() -> None:
    async with open_office() as office:
        await office.note("one")
        office.store.gate.fail_next(InDoubt(), applied=True)
        assert isinstance(await office.drain(), Refusal)
        assert await office.drain() == 0
        assert await office.kinds() == ["one"]
        assert (await office.verdict()).ok
        assert (await office.verdict()).remarks == []


async def test_a_store_that_takes_nothing_has_the_notes_wait() -> None:
    async with open_office() as office:
        await office.note("one")
        office.store.gate.fail_next(Unavailable())
        assert isinstance(await office.drain(), Refusal)
        assert await office.drain() == 1


@pytest.mark.requirement("audit.never-stops")
async def test_a_note_that_can_not_be_read_is_a_row_and_holds_up_none() -> None:
    async with open_office() as office:
        await office.note("one")
        junk = Put(WAITING, "au_junk", 0, b"junk", (("waits", AT - 1),))
        await office.store.commit(Unit(puts=(junk,)))
        assert await office.drain() == 2
        assert await office.kinds() == ["unreadable_note", "one"]


@pytest.mark.requirement("audit.heads", "audit.alarm")
@pytest.mark.parametrize("name", DAMAGES)
async def test_each_damage_is_found_also_after_the_broker_has_gone_on(name: str) -> None:
    store, keeper = MemoryStore(), MemoryHead()
    async with open_office(store, keeper) as office:
        await office.note("one", "two", "three")
        await office.drain()
        older = kept_in(store, keeper)
        await office.note("four", "five", "six")
        await office.drain()
    kept = kept_in(store, keeper)
    kept.older = older
    damage, first, _ = DAMAGES[name]
    damage(kept)
    await put_back(kept, store, keeper)
    assert not verdict_of(store, keeper).ok
    async with open_office(store, keeper) as office:
        await office.note("seven")
        await office.drain()
        verdict = await office.verdict()
    assert not verdict.ok, name
    assert "seven" in await office.kinds()
    # What the next row wrote over stands in an alarm; all else is where it was.
    assert verdict.first == first or any("alarm" in fault.message for fault in verdict.faults)


@pytest.mark.requirement("audit.alarm")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("the tail was cut off, the head with it", "an older store was put back, or its tail cut off"),
        ("the table was emptied, the head with it", "the head in the store was missing or not signed"),
        ("the head is missing", "the head in the store was missing or not signed"),
        ("the head was changed", "the head in the store was missing or not signed"),
        ("the head in the store is an older one", "an older store was put back, or its tail cut off"),
        ("both heads are older ones", "the head in the store was older than its rows"),
        ("the head beside the store is missing", "the head beside the store was missing or not signed"),
        ("the head beside the store is another log's", "the head beside the store was of another chain"),
        ("a row was put behind the last one", "rows without a seal stood beyond the head"),
    ],
)
async def test_what_would_be_written_over_is_said_in_a_row_first(name: str, what: str) -> None:
    store, keeper = MemoryStore(), MemoryHead()
    async with open_office(store, keeper) as office:
        await office.note("one", "two", "three")
        await office.drain()
        older = kept_in(store, keeper)
        await office.note("four", "five", "six")
        await office.drain()
    kept = kept_in(store, keeper)
    kept.older = older
    DAMAGES[name][0](kept)
    await put_back(kept, store, keeper)
    async with open_office(store, keeper) as office:
        await office.drain()
        rows = [read_row(text) for text in kept_in(store, keeper).rows.values()]
        alarms = [row[0]["detail"]["what"] for row in rows if row is not None and row[0]["kind"] == ALARM]
        assert alarms == [what]
        assert await office.drain() == 0
    async with open_office(store, keeper) as office:  # once, and not at each start
        assert await office.drain() == 0


@pytest.mark.requirement("audit.alarm")
async def test_a_store_that_is_changed_under_a_running_broker_is_found_by_what_it_remembers() -> None:
    async with open_office() as office:
        await office.note("one", "two", "three")
        await office.drain()
        older = kept_in(office.store, office.keeper)
        await office.note("four")
        await office.drain()
        await put_back(older, office.store, office.keeper)
        looked: Looked = await office.house.ask("auditor", KEY, Look())
        assert looked.known is not None
        assert looked.known.count == 4
        actor = office.house.alive("auditor", KEY)
        assert actor is not None
        actor.leave()
        await trio.testing.wait_all_tasks_blocked()
        await office.drain()
        row = read_row(kept_in(office.store, office.keeper).rows[5])
        assert row is not None
        assert row[0]["detail"]["what"] == "the log was changed under the broker"


@pytest.mark.requirement("audit.restored")
async def test_a_restore_is_a_row_with_the_head_that_was_known_before_and_no_alarm() -> None:
    store, keeper = MemoryStore(), MemoryHead()
    async with open_office(store, keeper) as office:
        await office.note("one", "two", "three")
        await office.drain()
        older, lost = kept_in(store, keeper), await lost_head(office)
    await put_back(older, store, keeper)
    keeper.text = lost
    text = msgspec.json.encode(Restored(AT, AT + 5))
    await store.commit(Unit(puts=(Put("wire", "restored", 0, text),)))
    for _ in range(2):
        async with open_office(store, keeper) as office:
            await office.drain()
            assert await office.kinds() == ["one", "two", "three", RESTORED]
            verdict = await office.verdict()
            assert verdict.ok
            assert verdict.remarks == ["row 4: the store was made of a backup; 5 rows were known before"]


async def lost_head(office: Office) -> bytes | None:
    await office.note("four", "five")
    await office.drain()
    return office.keeper.text


async def test_a_broker_without_a_place_beside_goes_by_the_store_alone() -> None:
    store = MemoryStore()
    for kind in ("one", "two"):
        async with open_office(store, apart=False) as office:
            await office.note(kind)
            await office.drain()
    assert await office.kinds() == ["one", "two"]


async def test_a_place_beside_that_can_not_be_read_is_as_one_with_nothing_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(_: MemoryHead) -> bytes:
        raise OSError(5, "Input/output error")

    store, keeper = MemoryStore(), MemoryHead()
    async with open_office(store, keeper) as office:
        await office.note("one")
        await office.drain()
    monkeypatch.setattr(MemoryHead, "read", fails)
    async with open_office(store, keeper) as office:
        await office.drain()
        assert await office.kinds() == ["one", ALARM]
