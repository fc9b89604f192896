from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors import batches
from broker.actors.verifier import ALONE_S, Verifier, VerifierStatistics
from broker.wire.keys import SigningKey
from tests.support.helpers_fake import BAD_SIG, GOOD_SIG, FakeHelpers, honest, pk

BUDGET = 4


class Ticks(trio.abc.Instrument):
    """A check that records which were made in each turn of the loop."""

    def __init__(self) -> None:
        self.tick = 0
        self.made: dict[int, list[str]] = {}
        trio.lowlevel.add_instrument(self)

    def before_io_wait(self, timeout: float) -> None:
        self.tick += 1

    def check(self, pk: str, message: bytes, sig: str) -> bool:
        self.made.setdefault(self.tick, []).append(pk)
        if sig == "fault":
            raise ZeroDivisionError
        return sig.startswith("good")


async def test_it_verifies() -> None:
    key = SigningKey.generate()
    verifier = Verifier(BUDGET)
    for _ in range(BUDGET * 3):
        assert await verifier.verify(key.pk, b"deal", key.sign(b"deal"))
        assert not await verifier.verify(key.pk, b"no deal", key.sign(b"deal"))


@pytest.mark.requirement("keys.budget")
async def test_within_the_budget_nobody_waits() -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    with trio.testing.assert_no_checkpoints():
        for _ in range(BUDGET):
            await verifier.verify("", b"", "good")
    first = ticks.tick
    await verifier.verify("", b"", "good")
    assert ticks.tick <= first + 2, "beyond it the loop turns, and turns to the caller again"


@pytest.mark.requirement("keys.budget")
@pytest.mark.parametrize("callers", [1, 3, 40])
async def test_no_tick_checks_more_than_its_budget_and_all_are_answered_in_order(callers: int) -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    answers: list[str] = []

    async def ask(name: int) -> None:
        for each in range(120 // callers):
            good = each % 2 == 0
            assert await verifier.verify(f"{name}", b"", "good" if good else "bad") is good
            answers.append(f"{name}")

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for name in range(callers):
                nursery.start_soon(ask, name)
    made = [name for names in ticks.made.values() for name in names]
    assert len(made) == len(answers) == 120
    assert max(len(names) for names in ticks.made.values()) <= BUDGET
    if callers == 40:  # everyone had its turn before anyone had a third: first come, first served
        assert max(made[:80].count(f"{name}") for name in range(callers)) <= 3
    assert verifier.statistics().waiting == 0


async def test_other_tasks_run_while_a_long_line_is_worked_through() -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as others:
        others.start_soon(other)
        async with trio.open_nursery() as nursery:
            for _ in range(200):
                nursery.start_soon(verifier.verify, "", b"", "good")
        others.cancel_scope.cancel()
    assert 200 // BUDGET - 2 <= turns <= 200 // BUDGET + 4


async def test_who_is_cancelled_leaves_the_line_and_the_rest_goes_on() -> None:
    ticks = Ticks()
    verifier = Verifier(1, ticks.check)
    answered: list[int] = []
    scopes: list[trio.CancelScope] = []

    async def ask(name: int) -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await verifier.verify(str(name), b"", "good")
            answered.append(name)

    await verifier.verify("first", b"", "good")
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for name in range(10):
                nursery.start_soon(ask, name)
            await trio.lowlevel.checkpoint()
            for scope in scopes[::2]:
                scope.cancel()
    made = {name for names in ticks.made.values() for name in names}
    assert {str(name) for name in answered} <= made
    assert len(answered) >= 5
    assert verifier.statistics().waiting == 0
    assert await verifier.verify("after", b"", "good")


async def test_what_can_not_be_judged_is_not_good_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    verifier = Verifier(2, Ticks().check)
    answers: list[bool] = []

    async def ask(sig: str) -> None:
        assert await verifier.verify("", b"", sig) is (sig == "good")
        answers.append(sig == "good")

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for index in range(40):
                nursery.start_soon(ask, "fault" if index % 4 == 0 else "good")
        await wait_all_tasks_blocked()
    assert answers.count(False) == 10
    assert len(answers) == 40
    assert len(caplog.records) == 10
    assert verifier.statistics().waiting == 0


async def test_within_the_budget_what_follows_is_done_before_submit_returns() -> None:
    verifier = Verifier(BUDGET, Ticks().check)
    answers: list[bool] = []
    for index in range(BUDGET):
        verifier.submit("", b"", "good" if index else "bad", answers.append)
    assert answers == [False] + [True] * (BUDGET - 1)


@pytest.mark.requirement("keys.budget", "keys.order")
async def test_beyond_the_budget_signatures_are_answered_in_order_a_budget_a_tick() -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    answers: list[int] = []
    for index in range(BUDGET * 5 + 1):
        verifier.submit(str(index), b"", "good", lambda _, index=index: answers.append(index))
    assert len(answers) == BUDGET
    assert verifier.statistics() == VerifierStatistics(
        waiting=BUDGET * 4 + 1, delayed=BUDGET * 4 + 1, inline=BUDGET, helped=0, helpers=0, helpers_failed=0
    )
    await wait_all_tasks_blocked()
    assert answers == list(range(BUDGET * 5 + 1))
    assert [len(names) for names in ticks.made.values()] == [BUDGET] * 5 + [1]
    assert verifier.statistics().waiting == 0


async def test_what_follows_may_submit_again() -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    answers: list[int] = []

    def follow(index: int) -> None:
        answers.append(index)
        if index < 100:
            verifier.submit("", b"", "good", lambda _: follow(index + 1))

    verifier.submit("", b"", "good", lambda _: follow(0))
    await wait_all_tasks_blocked()
    assert answers == list(range(101))
    assert max(len(names) for names in ticks.made.values()) <= BUDGET


async def test_what_follows_and_fails_is_logged_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    verifier = Verifier(BUDGET, Ticks().check)
    answers: list[bool] = []

    def fail(_: bool) -> None:
        raise ZeroDivisionError

    for index in range(BUDGET * 4):
        verifier.submit("", b"", "good", answers.append if index % 2 else fail)
    await wait_all_tasks_blocked()
    assert answers == [True] * (BUDGET * 2)
    assert len(caplog.records) == BUDGET * 2
    assert all(each.exc_info for each in caplog.records)


async def test_who_asks_with_await_and_who_submits_stand_in_one_line() -> None:
    verifier = Verifier(1, Ticks().check)
    answered: list[str] = []
    for name in ("first", "second", "third"):
        verifier.submit("", b"", "good", lambda _, name=name: answered.append(name))
    assert answered == ["first"]
    assert await verifier.verify("", b"", "good")
    assert answered == ["first", "second", "third"]


class Helped:
    """A verifier with helpers of the test's own, and what was answered by whom."""

    def __init__(self, fake: FakeHelpers, per_tick: int, helpers: int) -> None:
        self.ticks = Ticks()
        self.verifier = Verifier(per_tick, self.ticks.check, helpers=helpers, start=fake.start)
        self.answers: dict[str, list[tuple[int, bool]]] = {}
        self.given = 0

    def submit(self, name: str, sig: str = GOOD_SIG) -> None:
        number = self.given
        self.given += 1
        told = self.answers.setdefault(name, [])
        self.verifier.submit(pk(name), b"", sig, lambda good: told.append((number, good)))

    @property
    def told(self) -> int:
        return sum(map(len, self.answers.values()))

    @property
    def inline(self) -> int:
        return sum(map(len, self.ticks.made.values()))


@asynccontextmanager
async def helped(fake: FakeHelpers, per_tick: int = BUDGET, helpers: int = 1) -> AsyncIterator[Helped]:
    it = Helped(fake, per_tick, helpers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(it.verifier.run)
        await wait_all_tasks_blocked()
        yield it
        nursery.cancel_scope.cancel()


async def test_without_helpers_there_is_nothing_to_run() -> None:
    with trio.fail_after(5):
        await Verifier(BUDGET).run()


async def test_one_that_comes_alone_is_verified_inline(autojump_clock: MockClock) -> None:
    fake = FakeHelpers()
    async with helped(fake) as it:
        for _ in range(3):
            await trio.sleep(ALONE_S)
            it.submit("a")
        assert it.told == it.inline == 3
        it.submit("a")
        assert it.told == 3
        await wait_all_tasks_blocked()
        assert it.told == 4
        await trio.sleep(ALONE_S / 2)
        it.submit("a")
        assert it.told == 4
    assert [len(each) for each in fake.batches] == [1]


@pytest.mark.requirement("keys.budget")
async def test_helpers_come_first_then_the_budget_then_the_line() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with helped(fake) as it:
        it.submit("alone")
        many = batches.DEPTH_MIN + BUDGET * 5
        for index in range(many):
            it.submit(f"{index}")
        assert it.inline == BUDGET, "the helper has enough, and so has this tick"
        assert it.verifier.statistics().waiting == many + 1 - batches.DEPTH_MIN - BUDGET
        await wait_all_tasks_blocked()
        assert it.inline == many + 1 - batches.DEPTH_MIN
        assert max(len(each) for each in it.ticks.made.values()) == BUDGET
        fake.gate.set()
        await wait_all_tasks_blocked()
        assert it.told == many + 1
        statistics = it.verifier.statistics()
    assert (statistics.inline, statistics.helped) == (it.inline, batches.DEPTH_MIN)
    assert (statistics.waiting, statistics.helpers) == (0, 1)


@pytest.mark.requirement("keys.budget", "keys.order")
@pytest.mark.parametrize("helpers", [1, 3])
async def test_whoever_verifies_each_keys_answers_come_in_order(helpers: int) -> None:
    fake = FakeHelpers()
    async with helped(fake, helpers=helpers) as it:
        for turn in range(200):
            if turn % 9 == 0:
                fake.gate = trio.Event()
            for index in range(turn % 23):
                it.submit(f"{index % 5}", GOOD_SIG if it.given % 3 else BAD_SIG)
            await trio.lowlevel.checkpoint()
            if turn % 9 == 5:
                fake.gate.set()
        fake.gate.set()
        await wait_all_tasks_blocked()
        statistics = it.verifier.statistics()
    assert it.told == it.given
    assert min(statistics.inline, statistics.helped) > 100
    for told in it.answers.values():
        assert told == sorted(told)
        assert all(good == (number % 3 > 0) for number, good in told)
    assert max(len(each) for each in it.ticks.made.values()) <= BUDGET


@pytest.mark.requirement("keys.order")
async def test_an_answer_waits_for_the_earlier_ones_of_its_key_alone() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with helped(fake, per_tick=100) as it:
        it.submit("alone")
        for _ in range(batches.DEPTH_MIN):
            it.submit("a")
        it.submit("a", BAD_SIG)
        it.submit("b")
        assert it.answers["b"] == [(batches.DEPTH_MIN + 2, True)]
        assert it.answers["a"] == []
        fake.gate.set()
        await wait_all_tasks_blocked()
    assert [good for _, good in it.answers["a"]] == [True] * batches.DEPTH_MIN + [False]


@pytest.mark.requirement("keys.helpers-replaced", "keys.order")
async def test_what_helpers_owed_that_ended_is_verified_inline_in_its_place(
    autojump_clock: MockClock,
) -> None:
    fake = FakeHelpers(lambda number, sigs: honest(number, sigs) if number % 3 else None)
    async with helped(fake, helpers=2) as it:
        for turn in range(300):
            for index in range(turn % 31):
                it.submit(f"{index % 5}", GOOD_SIG if it.given % 3 else BAD_SIG)
            await trio.sleep(0.01)
        await trio.sleep(10)
        statistics = it.verifier.statistics()
    assert statistics.helpers_failed > 4
    assert it.told == it.given
    assert statistics.inline + statistics.helped > it.given
    for told in it.answers.values():
        assert told == sorted(told)
        assert all(good == (number % 3 > 0) for number, good in told)
    assert max(len(each) for each in it.ticks.made.values()) <= BUDGET


@pytest.mark.requirement("keys.helpers-replaced")
async def test_a_helper_that_hangs_costs_a_second_and_no_answer(autojump_clock: MockClock) -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with helped(fake) as it:
        for _ in range(10):
            it.submit("a")
        await trio.sleep(batches.PATIENCE_S * 0.9)
        assert it.told == 1, "the one that came alone"
        await trio.sleep(batches.PATIENCE_S * 0.2)
        assert it.told == 10


async def test_when_the_verifier_ends_the_loop_verifies_what_helpers_owe() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with helped(fake) as it:
        for index in range(10):
            it.submit("a", GOOD_SIG if index % 2 else BAD_SIG)
        await wait_all_tasks_blocked()
    await wait_all_tasks_blocked()
    assert [good for _, good in it.answers["a"]] == [False, True] * 5
    it.submit("a")
    await wait_all_tasks_blocked()
    assert it.told == 11


async def test_what_follows_a_helpers_answer_may_submit_and_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake = FakeHelpers()
    answers: list[int] = []
    async with helped(fake) as it:

        def follow(left: int) -> None:
            answers.append(left)
            if left:
                it.verifier.submit(pk("a"), b"", GOOD_SIG, lambda _: follow(left - 1))
            if left % 2:
                raise ZeroDivisionError

        it.submit("alone")
        for _ in range(3):
            it.verifier.submit(pk("a"), b"", GOOD_SIG, lambda _: follow(20))
        await wait_all_tasks_blocked()
    assert answers == [left for left in range(20, -1, -1) for _ in range(3)]
    assert len(caplog.records) == 30
    assert it.verifier.statistics().helped > 40


async def test_who_is_cancelled_while_a_helper_verifies_is_not_answered_and_the_rest_is() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with helped(fake) as it:
        it.submit("alone")
        it.submit("a")
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(it.verifier.verify, pk("a"), b"", GOOD_SIG)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        it.submit("a")
        fake.gate.set()
        await wait_all_tasks_blocked()
        assert await it.verifier.verify(pk("a"), b"", GOOD_SIG)
        assert not await it.verifier.verify(pk("a"), b"", BAD_SIG)
    assert it.told == 3
    assert it.verifier._last == {}


@pytest.mark.requirement("keys.budget")
async def test_a_task_that_comes_for_the_helpers_brings_no_second_budget() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with helped(fake, per_tick=BUDGET) as it:
        it.submit("alone")
        await trio.lowlevel.checkpoint()
        for _ in range(20):  # tasks run in any order: theirs before ours, or after
            fake.gate.set()
            await wait_all_tasks_blocked()
            fake.gate = trio.Event()
            it.submit("a")
            await trio.lowlevel.checkpoint()
            for _ in range(batches.DEPTH_MIN + BUDGET * 3):
                it.submit("b")
        fake.gate.set()
        await wait_all_tasks_blocked()
    assert it.told == it.given
    assert max(len(each) for each in it.ticks.made.values()) <= BUDGET
