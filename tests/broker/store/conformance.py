"""The law of broker/store/port.py as tests: test_memory.py and test_sqlite.py run all of it on their adapter.

Part one, `Writing`: what commit promises; `Submitting` (submitting.py): what submit does. Part two, `Reading`:
what each read answers; `Searching` (searching.py): what search finds. Part three, `Keeping`: retention and the end.
A subclass gives the fixture `store`.
"""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import pytest
import trio
import trio.testing

from broker.store.port import (
    Append,
    Conflict,
    Deliver,
    Document,
    Drop,
    Entry,
    Event,
    Put,
    Remember,
    Remembered,
    Retention,
    Store,
    Unavailable,
    Unit,
)
from tests.broker.store.searching import Searching
from tests.broker.store.submitting import Submitting
from tests.broker.store.units import AT, BAD, BASE, GOOD, SOME, refused, row, seen


class Writing:
    """What commit promises (law 1 to 5)."""

    @pytest.mark.requirement("store.all-or-none")
    async def test_a_unit_does_all_that_it_says(self, store: Store) -> None:
        await store.commit(BASE)
        await store.commit(GOOD)
        assert await store.entries("conv:a") == [Entry(0, b"first", AT), Entry(1, b"second", AT)]
        assert await store.get("desk", "one") == Document("one", 2, b"2")
        assert [document.id for document in await store.find("desk", "code", "ALFA")] == ["two"]
        assert await store.events("pk:b", 0) == [Event("pk:b", 1, "desk_moved", False, b"{}")]
        assert await store.recall("pk:a", "fresh") == Remembered(b"d", b"o", AT)
        assert await refused(store, row("conv:new", 0)) == "drop"

    @pytest.mark.requirement("store.all-or-none", "store.conflict-kinds")
    @pytest.mark.parametrize(("what", "unit"), BAD)
    async def test_a_unit_with_one_expectation_that_fails_changes_nothing(
        self, store: Store, what: str, unit: Unit
    ) -> None:
        await store.commit(BASE)
        await store.commit(Unit(drop=Drop("conv:gone")))
        before = await seen(store)
        told: list[Event] = []
        store.watch(told.extend)
        assert await refused(store, unit) == what
        assert await seen(store) == before
        assert told == []
        await store.commit(GOOD)

    async def test_an_event_without_a_text_is_a_fault_and_changes_nothing(self, store: Store) -> None:
        with pytest.raises(ValueError, match="Append"):
            await store.commit(Unit(puts=(Put("desk", "one", 0, b"1"),), deliver=(Deliver("pk:a", "env"),)))
        assert await store.get("desk", "one") is None

    async def test_an_empty_unit_is_nothing(self, store: Store) -> None:
        await store.commit(Unit())

    @pytest.mark.requirement("store.one-row-per-n")
    async def test_of_many_that_want_the_same_n_one_gets_it(self, store: Store) -> None:
        won: list[int] = []
        lost: list[int] = []

        async def rival(number: int) -> None:
            try:
                await store.commit(Unit(append=Append("conv:a", 0, b"%d" % number, AT)))
                won.append(number)
            except Conflict:
                lost.append(number)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for number in range(64):
                    nursery.start_soon(rival, number)
        assert len(won) == 1
        assert len(lost) == 63
        assert [entry.data for entry in await store.entries("conv:a")] == [b"%d" % won[0]]

    @pytest.mark.requirement("store.positions-without-gap", "store.told-before-return")
    async def test_positions_are_without_gap_and_in_the_order_of_commits(self, store: Store) -> None:
        told: list[Event] = []
        store.watch(told.extend)

        async def write(number: int) -> None:
            for n in range(4):
                await store.commit(row(f"conv:{number}", n, "pk:all", f"pk:{number % 8}"))
                text = f"conv:{number}/{n}".encode()
                assert [event.stream for event in told if event.data == text] == [
                    "pk:all",
                    f"pk:{number % 8}",
                ]
                assert any(event.data == text for event in await store.events("pk:all", 0, 1000))

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for number in range(64):
                    nursery.start_soon(write, number)
        for name in ("pk:all", *(f"pk:{number}" for number in range(8))):
            kept = await store.events(name, 0, 1000)
            assert [event.position for event in kept] == list(range(1, len(kept) + 1))
            assert kept == [event for event in told if event.stream == name]
        assert (await store.head("pk:all")).newest == 256

    async def test_a_store_has_one_listener_at_a_time(self, store: Store) -> None:
        store.watch(lambda _: None)
        with pytest.raises(RuntimeError):
            store.watch(lambda _: None)
        store.watch(None)
        await store.commit(row("conv:a", 0, "pk:a"))
        told: list[Event] = []
        store.watch(told.extend)
        await store.commit(row("conv:a", 1, "pk:a"))
        assert [event.position for event in told] == [2]

    @pytest.mark.requirement("store.versions")
    async def test_a_document_is_replaced_only_at_the_version_expected(self, store: Store) -> None:
        await store.commit(Unit(puts=(Put("desk", "one", 0, b"1"),)))
        assert await refused(store, Unit(puts=(Put("desk", "one", 0, b"x"),))) == "put"
        await store.commit(Unit(puts=(Put("desk", "one", 1, b"2"), Put("desk", "one", 2, b"3"))))
        assert await store.get("desk", "one") == Document("one", 3, b"3")
        assert await refused(store, Unit(puts=(Put("desk", "one", 2, None),))) == "put"
        await store.commit(Unit(puts=(Put("desk", "one", 3, None),)))
        assert await store.get("desk", "one") is None
        assert await refused(store, Unit(puts=(Put("desk", "one", 3, b"x"),))) == "put"
        await store.commit(Unit(puts=(Put("desk", "one", 0, b"new"),)))
        assert await store.get("desk", "one") == Document("one", 1, b"new")

    async def test_a_document_may_go_and_come_back_in_one_unit(self, store: Store) -> None:
        await store.commit(Unit(puts=(Put("desk", "one", 0, b"1", (("code", "ALFA"),)),)))
        await store.commit(
            Unit(puts=(Put("desk", "one", 1, None), Put("desk", "one", 0, b"2", (("code", "BRAV"),))))
        )
        assert await store.get("desk", "one") == Document("one", 1, b"2")
        assert await store.find("desk", "code", "ALFA") == []
        assert len(await store.find("desk", "code", "BRAV")) == 1

    async def test_that_a_document_does_not_exist_can_be_expected(self, store: Store) -> None:
        await store.commit(Unit(puts=(Put("desk", "one", 0, None),)))
        await store.commit(Unit(puts=(Put("desk", "one", 0, b"1"),)))
        assert await refused(store, Unit(puts=(Put("desk", "one", 0, None),))) == "put"

    @pytest.mark.requirement("store.settle")
    async def test_the_identical_unit_again_conflicts_where_it_has_landed(self, store: Store) -> None:
        await store.commit(SOME)
        assert await refused(store, SOME) == "append"

    @pytest.mark.requirement("store.cancelled-commit")
    async def test_a_cancelled_commit_lands_or_not_and_harms_nobody(self, store: Store) -> None:
        async def impatient(number: int) -> None:
            with trio.CancelScope() as scope:
                if number % 2:
                    scope.cancel()
                nursery.start_soon(give_up, scope)
                await store.commit(row(f"conv:{number}", 0, "pk:a"))

        async def give_up(scope: trio.CancelScope) -> None:
            await trio.lowlevel.checkpoint()
            scope.cancel()

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for number in range(16):
                    nursery.start_soon(impatient, number)
            await store.commit(SOME)
        events = await store.events("pk:a", 0)
        assert [event.position for event in events] == list(range(1, len(events) + 1))
        for number in range(16):
            landed = bool(await store.entries(f"conv:{number}"))
            assert landed == any(event.data == f"conv:{number}/0".encode() for event in events)
            assert not (landed and number % 2), "a task that was cancelled before it began gives nothing"

    async def test_each_async_method_is_a_checkpoint(self, store: Store) -> None:
        await store.commit(SOME)
        asked: Sequence[Callable[[], Awaitable[object]]] = [
            partial(store.commit, row("conv:a", 0)),
            partial(refused, store, row("conv:a", 0)),
            partial(store.entries, "conv:a"),
            partial(store.tail, "conv:a"),
            partial(store.get, "desk", "one"),
            partial(store.find, "desk", "code", "ALFA"),
            partial(store.search, "desk", "code"),
            partial(store.due, "desk", "due", 5),
            partial(store.recall, "pk:a", "fresh"),
            partial(store.head, "pk:a"),
            partial(store.events, "pk:a", 0),
            partial(store.sweep, Retention(now=0, events_before=0, events_keep=1)),
            store.aclose,
            store.aclose,
        ]
        for ask in asked:
            with trio.testing.assert_checkpoints(), trio.fail_after(5):
                await ask()


class Reading:
    """What each read answers (law 6)."""

    @pytest.mark.requirement("store.pages")
    async def test_rows_are_paged_forward_and_backward(self, store: Store) -> None:
        for n in range(10):
            await store.commit(row("conv:a", n))
        await store.commit(row("conv:b", 0))

        async def numbers(read: Awaitable[list[Entry]]) -> list[int]:
            return [entry.n for entry in await read]

        assert await numbers(store.entries("conv:a")) == list(range(10))
        assert await numbers(store.entries("conv:a", 3, 2)) == [4, 5]
        assert await numbers(store.entries("conv:a", 9)) == []
        assert await numbers(store.entries("conv:a", limit=0)) == []
        assert await numbers(store.tail("conv:a", limit=3)) == [9, 8, 7]
        assert await numbers(store.tail("conv:a", 7, 3)) == [6, 5, 4]
        assert await numbers(store.tail("conv:a", 0)) == []
        assert await numbers(store.tail("conv:a", 99, 1)) == [9]
        assert await numbers(store.entries("conv:none")) == []
        assert await numbers(store.tail("conv:none")) == []

    @pytest.mark.requirement("store.index-order")
    async def test_index_rows_keep_the_order_in_which_they_came(self, store: Store) -> None:
        for number in range(5):
            await store.commit(Unit(puts=(Put("conv", f"c{number}", 0, b"1", (("open", "pk"),)),)))
        await store.commit(Unit(puts=(Put("conv", "c1", 1, b"2", (("due", 5), ("open", "pk"))),)))
        await store.commit(Unit(puts=(Put("conv", "c2", 1, b"2", ()),)))
        await store.commit(Unit(puts=(Put("conv", "c2", 2, b"3", (("open", "pk"),)),)))
        await store.commit(Unit(puts=(Put("conv", "c3", 1, None),)))
        found = await store.find("conv", "open", "pk")
        assert [(document.id, document.version) for document in found] == [
            ("c0", 1),
            ("c1", 2),
            ("c4", 1),
            ("c2", 3),
        ]
        assert [document.doc for document in found] == [b"1", b"2", b"1", b"3"]
        orders = [document.order for document in found]
        assert orders == sorted(set(orders))
        assert await store.find("conv", "open", "pk", limit=2) == found[:2]
        assert await store.find("conv", "open", "pk", orders[1], 1) == found[2:3]
        assert await store.find("conv", "open", "pk", newest=True, limit=3) == found[:0:-1]
        assert await store.find("conv", "open", "pk", orders[2], newest=True) == found[1::-1]

    async def test_an_index_row_given_twice_counts_once(self, store: Store) -> None:
        await store.commit(Unit(puts=(Put("conv", "c", 0, b"1", (("open", "pk"), ("open", "pk"))),)))
        assert len(await store.find("conv", "open", "pk")) == 1

    async def test_find_takes_the_exact_value_kind_and_name(self, store: Store) -> None:
        index = (("code", "5"), ("code", 7), ("codes", "6"))
        await store.commit(
            Unit(puts=(Put("desk", "one", 0, b"1", index), Put("conv", "two", 0, b"2", (("code", "7"),))))
        )
        assert [document.id for document in await store.find("desk", "code", "5")] == ["one"]
        for name, value in (("code", "7"), ("code", "6"), ("none", "5"), ("code", "")):
            assert await store.find("desk", name, value) == []

    @pytest.mark.requirement("store.due")
    async def test_due_rises_by_value_and_leaves_out_text_and_later_ones(self, store: Store) -> None:
        values: tuple[tuple[str, str | int], ...] = (
            ("a", 30),
            ("b", 10),
            ("c", "5"),
            ("d", 10),
            ("e", -1),
            ("f", 31),
        )
        for id, value in values:
            await store.commit(Unit(puts=(Put("conv", id, 0, b"1", (("due", value),)),)))
        due = await store.due("conv", "due", 30)
        assert [(document.id, document.order) for document in due] == [
            ("e", -1),
            ("b", 10),
            ("d", 10),
            ("a", 30),
        ]
        assert await store.due("conv", "due", 30, limit=2) == due[:2]
        await store.commit(Unit(puts=(Put("conv", "b", 1, b"2", (("due", 40),)), Put("conv", "e", 1, None))))
        assert [document.id for document in await store.due("conv", "due", 30)] == ["d", "a"]
        assert await store.due("conv", "other", 30) == []
        assert await store.due("desk", "due", 30) == []

    @pytest.mark.requirement("store.text-once")
    async def test_an_event_tells_its_row_or_its_own_text(self, store: Store) -> None:
        await store.commit(
            Unit(
                append=Append("conv:a", 0, b"row", AT),
                deliver=(Deliver("pk:a", "env", own=True), Deliver("pk:b", "ring"), Deliver("pk:a", "end")),
            )
        )
        await store.commit(
            Unit(
                append=Append("conv:a", 1, b"row 1", AT + 1),
                deliver=(Deliver("pk:a", "moving", data=b"mine", at=7), Deliver("pk:b", "x", data=b"")),
            )
        )
        assert await store.events("pk:a", 0) == [
            Event("pk:a", 1, "env", True, b"row", AT),
            Event("pk:a", 2, "end", False, b"row", AT),
            Event("pk:a", 3, "moving", False, b"mine", 7),
        ]
        assert await store.events("pk:b", 1) == [Event("pk:b", 2, "x", False, b"", 0)]
        assert [event.position for event in await store.events("pk:a", 1, 1)] == [2]
        assert await store.events("pk:a", 3) == []
        assert await store.events("pk:none", 0) == []

    @pytest.mark.requirement("store.epoch")
    async def test_a_stream_has_one_epoch_before_and_after_its_first_event(self, store: Store) -> None:
        head = await store.head("pk:a")
        assert (head.oldest, head.newest) == (1, 0)
        assert len(head.epoch) == 16
        assert set(head.epoch) <= set("0123456789abcdef")
        assert await store.head("pk:a") == head
        await store.commit(row("conv:a", 0, "pk:a", "pk:b"))
        after = await store.head("pk:a")
        assert (after.epoch, after.oldest, after.newest) == (head.epoch, 1, 1)
        assert (await store.head("pk:b")).epoch != head.epoch

    @pytest.mark.requirement("store.remember")
    async def test_an_answer_is_remembered_under_scope_and_key(self, store: Store) -> None:
        kept = Remember("pk:a", "k", b"digest", b"outcome", AT)
        await store.commit(Unit(remember=kept))
        await store.commit(Unit(remember=Remember("pk:b", "k", b"other", b"", AT)))
        assert await store.recall("pk:a", "k") == Remembered(b"digest", b"outcome", AT)
        assert await store.recall("pk:b", "k") == Remembered(b"other", b"", AT)
        assert await store.recall("pk:a", "none") is None
        assert await refused(store, Unit(remember=kept)) == "remember"


class Keeping:
    """Retention, and the end."""

    @pytest.mark.requirement("store.sweep")
    async def test_a_sweep_takes_old_events_but_never_the_last_ones(self, store: Store) -> None:
        for n in range(10):
            await store.commit(row("conv:a", n, "pk:a", at=AT + n))
        await store.commit(row("conv:b", 0, "pk:b", at=AT))
        assert await store.sweep(Retention(now=0, events_before=AT + 5, events_keep=8)) == 2
        assert [event.position for event in await store.events("pk:a", 0)] == list(range(3, 11))
        assert await store.sweep(Retention(now=0, events_before=AT + 5, events_keep=3)) == 3
        head = await store.head("pk:a")
        assert (head.oldest, head.newest) == (6, 10)
        assert len(await store.events("pk:b", 0)) == 1
        assert len(await store.entries("conv:a")) == 10
        assert await store.sweep(Retention(now=0, events_before=AT + 5, events_keep=3)) == 0

    async def test_a_swept_stream_goes_on_counting(self, store: Store) -> None:
        for n in range(3):
            await store.commit(row("conv:a", n, "pk:a"))
        epoch = (await store.head("pk:a")).epoch
        assert await store.sweep(Retention(now=0, events_before=AT + 1, events_keep=0)) == 3
        head = await store.head("pk:a")
        assert (head.epoch, head.oldest, head.newest) == (epoch, 4, 3)
        await store.commit(row("conv:a", 3, "pk:a"))
        assert [event.position for event in await store.events("pk:a", 0)] == [4]
        assert (await store.head("pk:a")).oldest == 4

    async def test_a_sweep_stops_at_the_first_young_event(self, store: Store) -> None:
        for n, at in enumerate((AT, AT + 9, AT)):
            await store.commit(row("conv:a", n, "pk:a", at=at))
        await store.commit(Unit(deliver=(Deliver("pk:b", "moving", data=b"{}", at=AT + 9),)))
        await store.commit(Unit(deliver=(Deliver("pk:c", "moving", data=b"{}"),)))
        assert await store.sweep(Retention(now=0, events_before=AT + 5, events_keep=0)) == 2
        assert [event.position for event in await store.events("pk:a", 0)] == [2, 3]
        assert len(await store.events("pk:b", 0)) == 1
        assert await store.events("pk:c", 0) == []

    async def test_a_sweep_takes_no_more_than_its_limit(self, store: Store) -> None:
        for number in range(6):
            await store.commit(Unit(remember=Remember("pk:a", f"k{number}", b"", b"", AT + number)))
            await store.commit(row(f"conv:{number}", 0, "pk:a", f"pk:{number}"))
        retention = Retention(now=AT + 4, events_before=AT + 1, events_keep=0)
        removed = list(itertools.takewhile(bool, [await store.sweep(retention, 5) for _ in range(9)]))
        assert sum(removed) == 4 + 12
        assert max(removed) <= 5
        assert [bool(await store.recall("pk:a", f"k{number}")) for number in range(6)] == [False] * 4 + [
            True
        ] * 2

    async def test_a_sweep_finds_the_long_streams_among_many(self, store: Store) -> None:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for number in range(300):
                    nursery.start_soon(store.commit, row(f"conv:{number}", 0, "pk:long", f"pk:{number % 20}"))
        assert await store.sweep(Retention(now=0, events_before=AT + 1, events_keep=256)) == 44
        assert (await store.head("pk:long")).oldest == 45
        assert len(await store.events("pk:7", 0)) == 15

    async def test_what_was_forgotten_may_be_remembered_anew(self, store: Store) -> None:
        kept = Unit(remember=Remember("pk:a", "k", b"", b"", AT))
        await store.commit(kept)
        retention = Retention(now=AT, events_before=0, events_keep=0)
        assert await store.sweep(retention) == 0
        assert await store.sweep(Retention(now=AT + 1, events_before=0, events_keep=0)) == 1
        assert await store.recall("pk:a", "k") is None
        await store.commit(kept)

    @pytest.mark.requirement("store.drop")
    async def test_a_dropped_log_is_gone_and_takes_no_row_ever_again(self, store: Store) -> None:
        for n in range(3):
            await store.commit(row("conv:a", n, "pk:a"))
        await store.commit(row("conv:b", 0, "pk:a"))
        await store.commit(Unit(drop=Drop("conv:a"), puts=(Put("conv", "a", 0, b"gone"),)))
        assert await store.entries("conv:a") == []
        assert await store.tail("conv:a") == []
        for n in (0, 3):
            assert await refused(store, row("conv:a", n)) == "drop"
        await store.commit(Unit(drop=Drop("conv:a")))
        await store.commit(row("conv:b", 1, "pk:a"))
        events = await store.events("pk:a", 0)
        assert [(event.position, event.data) for event in events] == [(4, b"conv:b/0"), (5, b"conv:b/1")]
        assert await store.events("pk:a", 0, 1) == events[:1]
        assert (await store.head("pk:a")).newest == 5

    async def test_a_log_may_be_dropped_by_the_unit_that_ends_it(self, store: Store) -> None:
        told: list[Event] = []
        store.watch(told.extend)
        await store.commit(row("conv:a", 0, "pk:a"))
        await store.commit(
            Unit(
                append=Append("conv:a", 1, b"end", AT),
                deliver=(Deliver("pk:a", "end"), Deliver("pk:a", "said", data=b"own")),
                drop=Drop("conv:a"),
            )
        )
        assert [event.data for event in told] == [b"conv:a/0", b"end", b"own"]
        assert [event.data for event in await store.events("pk:a", 0)] == [b"own"]
        assert await store.entries("conv:a") == []

    async def test_a_new_store_is_whole_and_has_room(self, store: Store) -> None:
        assert store.broken is None
        assert store.free_bytes() > 0

    @pytest.mark.requirement("store.close")
    async def test_closing_finishes_what_was_given_and_refuses_the_rest(self, store: Store) -> None:
        landed: list[int] = []

        async def write(number: int) -> None:
            await store.commit(row(f"conv:{number}", 0, "pk:a"))
            landed.append(number)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(write, number)
                for _ in range(3):
                    await trio.lowlevel.checkpoint()
                await store.aclose()
        assert len(landed) == 20
        await store.aclose()
        refused_now: Sequence[Callable[[], Awaitable[object]]] = [
            partial(store.commit, SOME),
            partial(store.entries, "conv:a"),
            partial(store.tail, "conv:a"),
            partial(store.get, "desk", "one"),
            partial(store.find, "desk", "code", "ALFA"),
            partial(store.search, "desk", "code"),
            partial(store.due, "desk", "due", 5),
            partial(store.recall, "pk:a", "fresh"),
            partial(store.head, "pk:a"),
            partial(store.events, "pk:a", 0),
            partial(store.sweep, Retention(now=0, events_before=0, events_keep=1)),
        ]
        for ask in refused_now:
            with trio.testing.assert_checkpoints(), pytest.raises(Unavailable):
                await ask()


class Conformance(Writing, Submitting, Reading, Searching, Keeping):
    """All of it."""
