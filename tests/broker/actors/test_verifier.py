import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from broker.actors.verifier import Verifier, VerifierStatistics
from broker.wire.keys import SigningKey

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
        return sig == "good"


async def test_it_verifies() -> None:
    key = SigningKey.generate()
    verifier = Verifier(BUDGET)
    for _ in range(BUDGET * 3):
        assert await verifier.verify(key.pk, b"deal", key.sign(b"deal"))
        assert not await verifier.verify(key.pk, b"no deal", key.sign(b"deal"))


async def test_within_the_budget_nobody_waits() -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    with trio.testing.assert_no_checkpoints():
        for _ in range(BUDGET):
            await verifier.verify("", b"", "good")
    first = ticks.tick
    await verifier.verify("", b"", "good")
    assert ticks.tick <= first + 2, "beyond it the loop turns, and turns to the caller again"


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


async def test_beyond_the_budget_signatures_are_answered_in_order_a_budget_a_tick() -> None:
    ticks = Ticks()
    verifier = Verifier(BUDGET, ticks.check)
    answers: list[int] = []
    for index in range(BUDGET * 5 + 1):
        verifier.submit(str(index), b"", "good", lambda _, index=index: answers.append(index))
    assert len(answers) == BUDGET
    assert verifier.statistics() == VerifierStatistics(waiting=BUDGET * 4 + 1, delayed=BUDGET * 4 + 1)
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
