import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from broker.actors.verifier import Verifier
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
    assert ticks.tick == first + 1, "beyond it the loop turns once"


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


async def test_a_fault_reaches_its_own_caller_alone() -> None:
    verifier = Verifier(2, Ticks().check)
    faults: list[str] = []

    async def ask(sig: str) -> None:
        try:
            await verifier.verify("", b"", sig)
        except ZeroDivisionError:
            faults.append(sig)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for index in range(40):
                nursery.start_soon(ask, "fault" if index % 4 == 0 else "good")
        await wait_all_tasks_blocked()
    assert faults == ["fault"] * 10
    assert verifier.statistics().waiting == 0
