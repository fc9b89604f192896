"""Batches to one helper that answers, stays behind and lies, in the test's own loop."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors import batches
from broker.actors.batches import Waiting
from broker.actors.helper import BATCH
from broker.actors.helpers import DEPTH_MAX
from tests.support.helpers_fake import BAD_SIG, GOOD_SIG, FakeHelpers, asked, honest, pk


async def test_what_is_given_in_a_tick_goes_out_together_and_comes_back_in_order() -> None:
    fake = FakeHelpers()
    async with asked(fake) as it:
        assert it.rooms == 1, "a helper that is ready has room"
        for index in range(5):
            assert it.give(f"{index}", GOOD_SIG if index % 2 else BAD_SIG)
        assert it.helpers.filling
        await wait_all_tasks_blocked()
        assert fake.batches == []
        it.helpers.flush()
        await wait_all_tasks_blocked()
    assert [len(each) for each in fake.batches] == [5]
    assert it.answers == [(f"{index}".encode(), index % 2 == 1) for index in range(5)]
    assert it.rooms == 2
    assert it.returned == []


async def test_a_full_batch_goes_out_at_once() -> None:
    fake = FakeHelpers()
    async with asked(fake) as it:
        for index in range(batches.BATCH_SIGNATURES):
            it.give(f"{index}")
        await wait_all_tasks_blocked()
    assert [len(each) for each in fake.batches] == [batches.BATCH_SIGNATURES]


async def test_the_depth_grows_for_a_helper_that_ran_dry_and_shrinks_when_it_has_too_much() -> None:
    fake = FakeHelpers()
    async with asked(fake) as it:
        helper = it.helpers._alive[0]
        for _ in range(40):  # a helper that is through before we look at it again
            while it.give("more"):
                pass
            it.helpers.flush()
            await wait_all_tasks_blocked()
        assert helper.depth == DEPTH_MAX
        fake.gate = trio.Event()
        for _ in range(200):  # one that has answered a batch, with more than one to go
            while it.give("more"):
                pass
            it.helpers.flush()
            await wait_all_tasks_blocked()
            gate, fake.gate = fake.gate, trio.Event()
            gate.set()
            await wait_all_tasks_blocked()
        assert batches.DEPTH_MIN <= helper.depth <= 2 * batches.BATCH_SIGNATURES


async def test_what_the_connection_can_not_take_at_once_follows() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with asked(fake) as it:
        for index in range(batches.DEPTH_MIN):
            it.helpers.take(
                Waiting(pk("key"), bytes(65_536), GOOD_SIG if index % 3 else BAD_SIG, lambda _: None)
            )
        fake.gate.set()
        await wait_all_tasks_blocked()
        with trio.fail_after(5):
            while len(it.answers) < batches.DEPTH_MIN:
                await trio.lowlevel.checkpoint()
    assert [good for _, good in it.answers] == [index % 3 > 0 for index in range(batches.DEPTH_MIN)]


async def test_a_helper_with_nothing_to_do_may_be_silent(autojump_clock: MockClock) -> None:
    fake = FakeHelpers()
    async with asked(fake) as it:
        for _ in range(3):
            await trio.sleep(1000)
            it.give("1")
            it.helpers.flush()
            await wait_all_tasks_blocked()
    assert len(it.answers) == 3
    assert len(fake.started) == 1


@pytest.mark.requirement("keys.helpers-held")
@pytest.mark.parametrize(
    "answer",
    [
        lambda number, sigs: honest(number + 1, sigs),
        lambda number, sigs: honest(0, sigs),
        lambda number, sigs: honest(number, sigs[1:]),
        lambda number, sigs: honest(number, [*sigs, b"good"]),
        lambda number, sigs: honest(number, []),
        lambda number, sigs: BATCH.pack(number, len(sigs)) + b"\x01" * len(sigs),
        lambda number, sigs: BATCH.pack(number, len(sigs)) + b"1" * (len(sigs) - 1) + b"2",
        lambda number, sigs: b"\xff" * 100,
        lambda number, sigs: BATCH.pack(number, 0xFFFFFFFF),
    ],
    ids=["number", "number 0", "one less", "one more", "none", "byte", "last byte", "noise", "size"],
)
async def test_nonsense_is_no_answer_and_ends_the_helper(answer: object) -> None:
    fake = FakeHelpers(answer)  # type: ignore[arg-type]
    async with asked(fake) as it:
        for index in range(3):
            it.give(f"{index}")
        it.helpers.flush()
        await wait_all_tasks_blocked()
        assert it.answers == []
        assert it.returned == [b"0", b"1", b"2"]
        assert fake.alive == 0


@pytest.mark.requirement("keys.helpers-held")
async def test_an_answer_that_comes_twice_or_unasked_ends_the_helper() -> None:
    fake = FakeHelpers(lambda number, sigs: honest(number, sigs) * 2)
    async with asked(fake) as it:
        it.give("1", BAD_SIG)
        it.helpers.flush()
        it.give("2", GOOD_SIG)
        it.helpers.flush()
        await wait_all_tasks_blocked()
        assert it.answers == [(b"1", False)]
        assert it.returned == [b"2"]
    fake = FakeHelpers(first=BATCH.pack(0, 0) * 2)
    async with asked(fake) as it:
        assert fake.alive == 0


@pytest.mark.requirement("keys.helpers-held")
async def test_an_answer_cut_short_waits_for_its_rest() -> None:
    fake = FakeHelpers(lambda number, sigs: honest(number, sigs)[:-1])
    async with asked(fake) as it:
        it.give("1")
        it.give("2")
        it.helpers.flush()
        await wait_all_tasks_blocked()
        assert it.answers == []
        assert fake.alive == 1
