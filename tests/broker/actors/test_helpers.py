"""Helpers that answer, end, hang and lie, in the test's own loop on a virtual clock; and real processes."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors import batches
from broker.actors import helpers as module
from broker.actors.helper import BATCH, PK, SIG
from broker.actors.helpers import Helpers, process
from broker.actors.verifier import Verifier
from broker.wire import keys
from tests.broker.wire.test_keys import SPECCHECK, WYCHEPROOF
from tests.support.broker import code, open_bench, tuned
from tests.support.helpers_fake import Asked, FakeHelpers, asked, honest
from tests.support.vectors import KEYS


async def test_nothing_is_taken_before_a_helper_is_ready() -> None:
    async with asked(FakeHelpers(first=b"")) as it:
        assert it.helpers.ready == 0
        assert not it.give("early")


async def test_the_one_with_the_least_to_do_gets_the_next_batch() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with asked(fake, count=3) as it:
        given = 0
        while it.give(f"{given}"):
            given += 1
        assert given == 3 * batches.DEPTH_MIN
        await wait_all_tasks_blocked()
        assert [len(each) for each in fake.batches] == [batches.BATCH_SIGNATURES] * 3
        fake.gate.set()
        await wait_all_tasks_blocked()
        assert len(it.answers) == given


@pytest.mark.requirement("keys.helpers-replaced")
async def test_what_a_helper_that_ends_had_owed_is_given_back_in_order(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    fake = FakeHelpers(lambda number, sigs: honest(number, sigs) if number == 1 else None)
    async with asked(fake) as it:
        it.give("1")
        it.helpers.flush()
        it.give("2")
        it.helpers.flush()
        it.give("3")
        it.give("4")
        await wait_all_tasks_blocked()
        assert it.answers == [(b"1", True)]
        assert it.returned == [b"2", b"3", b"4"]
        assert it.helpers.ready == 0
        assert not it.give("5")
        await trio.sleep(module.PAUSE_S)
        await wait_all_tasks_blocked()
        assert it.give("6")
    assert len(fake.started) == 2
    assert "verification helper 0 ended" in caplog.text


@pytest.mark.requirement("keys.helpers-replaced")
async def test_a_helper_that_lets_a_batch_wait_too_long_is_replaced(autojump_clock: MockClock) -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with asked(fake) as it:
        await trio.sleep(1000)
        it.give("1")
        it.helpers.flush()
        await trio.sleep(batches.PATIENCE_S * 0.9)
        assert it.returned == []
        await trio.sleep(batches.PATIENCE_S * 0.2)
        assert it.returned == [b"1"]
        assert fake.alive == 0
    assert it.answers == []


@pytest.mark.requirement("keys.helpers-replaced")
async def test_helpers_are_replaced_at_ever_longer_intervals(autojump_clock: MockClock) -> None:
    fake = FakeHelpers(first=BATCH.pack(1, 0))
    async with asked(fake):
        await trio.sleep(400)
    gaps = [round(b - a, 3) for a, b in zip(fake.started, fake.started[1:], strict=False)]
    assert gaps == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]


async def test_a_helper_that_does_not_come_up_is_given_up(autojump_clock: MockClock) -> None:
    fake = FakeHelpers(first=b"")
    async with asked(fake):
        await trio.sleep(batches.START_S + module.PAUSE_S + 1)
    assert fake.started == [0, pytest.approx(batches.START_S + module.PAUSE_S)]


async def test_a_helper_that_can_not_be_started_is_tried_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    @asynccontextmanager
    async def start(theirs: socket.socket) -> AsyncIterator[None]:
        raise FileNotFoundError("no such program")
        yield

    it = Asked(FakeHelpers())
    it.helpers = Helpers(1, it._answer, it._return, it._room, start)
    with trio.move_on_after(2):
        await it.helpers.run()
    assert it.helpers.failed == 3
    assert "could not be started (no such program)" in caplog.text


async def test_without_a_descriptor_left_it_is_tried_again(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> None:
        raise OSError(24, "too many open files")

    it = Asked(FakeHelpers())
    with monkeypatch.context() as patch, trio.move_on_after(2):
        patch.setattr(socket, "socketpair", none_left)
        await it.helpers.run()
    assert it.helpers.failed == 3


async def test_who_stops_the_helpers_gets_back_what_they_owe() -> None:
    fake = FakeHelpers()
    fake.gate = trio.Event()
    async with asked(fake) as it:
        it.give("1")
        it.helpers.flush()
        it.give("2")
        await wait_all_tasks_blocked()
    assert it.returned == [b"1", b"2"]
    assert fake.alive == 0


async def until(true: Callable[[], bool]) -> None:
    """Wait for a process: it tells nobody, so that it is looked at again and again."""
    with trio.fail_after(20):
        while not true():  # noqa: ASYNC110
            await trio.sleep(0.002)


@asynccontextmanager
async def verifying(per_tick: int = 1) -> AsyncIterator[Verifier]:
    """A verifier with one helper process that is ready."""
    verifier = Verifier(per_tick, helpers=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(verifier.run)
        await until(lambda: verifier.statistics().helpers == 1)
        yield verifier
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("keys.helpers-strict")
async def test_a_process_judges_as_the_broker_does() -> None:
    cases = [(key, bytes.fromhex(each["msg"]), each["sig"]) for key, each in WYCHEPROOF]
    cases += [(each["pub_key"], bytes.fromhex(each["message"]), each["signature"]) for each in SPECCHECK]
    key = KEYS["alpha"]
    sig = key.sign(b"deal")
    for other_pk, other in (
        (key.pk.upper(), sig), (key.pk, sig.upper()), (key.pk, sig + "00"), (key.pk, sig[:-2]), (key.pk + "\n", sig),
        (key.pk, sig[:-1] + "\n"), ("", ""), ("", sig), (" " + key.pk[1:], sig), (key.pk, "é" * SIG),
        (key.pk, "٠" * SIG), ("\ud800" * PK, sig), (key.pk + sig[0], sig[1:]), (key.pk, sig),
    ):  # fmt: skip
        cases.append((other_pk, b"deal", other))
    expected = [keys.verify(*each) for each in cases]
    answers: dict[int, bool] = {}
    async with verifying(per_tick=0) as verifier:
        for index, each in enumerate(cases):
            verifier.submit(*each, lambda good, index=index: answers.setdefault(index, good))
            if verifier.statistics().waiting:
                await trio.lowlevel.checkpoint()
        await until(lambda: len(answers) == len(cases))
        statistics = verifier.statistics()
    assert [answers[index] for index in range(len(cases))] == expected
    assert (statistics.helped, statistics.inline, statistics.helpers_failed) == (len(cases), 0, 0)
    assert expected.count(True) > 50


@pytest.mark.requirement("keys.helpers-replaced")
async def test_a_process_that_is_killed_is_replaced_and_nothing_is_lost() -> None:
    key = KEYS["alpha"]
    cases = [(key.pk, bytes([index]), key.sign(bytes([index % 7]))) for index in range(200)]
    answers: list[bool] = []
    async with verifying() as verifier:
        child = only_child()
        os.kill(child, signal.SIGSTOP)
        for each in cases:
            verifier.submit(*each, answers.append)
        os.kill(child, signal.SIGKILL)
        await until(lambda: len(answers) == len(cases))
        await until(lambda: verifier.statistics().helpers == 1)
        assert verifier.statistics().helpers_failed == 1
        assert only_child() != child
    assert answers == [keys.verify(*each) for each in cases]


@pytest.mark.requirement("keys.helpers-apart")
async def test_a_process_has_its_connection_and_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURRET_SECRET", "not for helpers")
    with socket.socket() as other:
        other.set_inheritable(True)
        async with verifying():
            place = Path(f"/proc/{only_child()}")
            names = {
                each.partition(b"=")[0] for each in (place / "environ").read_bytes().split(b"\0") if each
            }
            assert names <= {b"PYTHONPATH", b"LD_LIBRARY_PATH"}
            assert (place / "cmdline").read_bytes().split(b"\0")[1:-1] == [
                b"-P",
                b"-m",
                b"broker.actors.helper",
            ]
            files = {each.name: os.readlink(each) for each in (place / "fd").iterdir()}
            assert files.pop("0").startswith("socket:")
            assert files.pop("1") == os.devnull
            assert files.pop("2") == os.readlink("/proc/self/fd/2")
            assert files == {}


@pytest.mark.requirement("keys.helpers-apart")
async def test_an_interrupt_is_not_for_the_process() -> None:
    async with verifying() as verifier:
        child = only_child()
        assert os.getpgid(child) != os.getpgrp()
        for each in (signal.SIGINT, signal.SIGTERM):
            os.kill(child, each)
        key = KEYS["alpha"]
        with trio.fail_after(5):
            while verifier.statistics().helped == 0:
                async with trio.open_nursery() as nursery:
                    for _ in range(4):
                        nursery.start_soon(verifier.verify, key.pk, b"deal", key.sign(b"deal"))
        assert verifier.statistics().helpers_failed == 0
        assert only_child() == child
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.requirement("keys.helpers-apart")
async def test_the_process_ends_with_a_broker_that_was_killed() -> None:
    program = (
        "import trio\n"
        "from broker.actors.verifier import Verifier\n"
        "async def main():\n"
        "    verifier = Verifier(16, helpers=1)\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        nursery.start_soon(verifier.run)\n"
        "        while verifier.statistics().helpers == 0:\n"
        "            await trio.sleep(0.01)\n"
        "        print('ready', flush=True)\n"
        "trio.run(main)\n"
    )
    broker = await trio.lowlevel.open_process(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert broker.stdout is not None
    assert broker.stderr is not None
    try:
        with trio.fail_after(20):
            said = b""
            while not said.endswith(b"\n"):
                said += await broker.stdout.receive_some(100)
    finally:
        broker.kill()
    with trio.fail_after(20):
        await broker.wait()
        # The helper has the same standard error: it is at its end when both are gone.
        assert [each async for each in broker.stderr] == []


async def test_the_process_loads_no_server() -> None:
    program = (
        "import sys, broker.actors.helper; print(*({'trio', 'sqlite3', 'ssl', 'asyncio'} & set(sys.modules)))"
    )
    ran = await trio.run_process([sys.executable, "-c", program], capture_stdout=True)
    assert ran.stdout.split() == []


async def answers_of_a_broker(helpers: int) -> list[str]:
    """What calls at once get, each around a ring of desks, every third with another's signature."""
    async with open_bench(tuned(verify={"helpers": helpers}, limits={"guesses": 1000})) as bench:
        verifier = bench.broker._services.verifier
        await until(lambda: verifier.statistics().helpers == helpers)
        desks = [await bench.open(f"RIN{letter}") for letter in "ABCDEFGHIJKL"]
        codes: dict[int, str] = {}

        async def call(index: int) -> None:
            params = bench.calling(desks[index], desks[index - 1])
            if index % 3 == 0:
                params["sig"] = desks[index].key.sign(b"something else")
            codes[index] = code(await bench.call("send_call", **params))

        async with trio.open_nursery() as nursery:
            for index in range(len(desks)):
                nursery.start_soon(call, index)
        assert bench.broker.statistics().verify_helpers == helpers
        assert (verifier.statistics().helped > 0) is (helpers > 0)
        return [codes[index] for index in range(len(desks))]


async def test_a_broker_with_a_helper_accepts_and_refuses_as_one_without() -> None:
    answers = await answers_of_a_broker(0)
    assert answers == ["bad_signature", "accepted", "accepted"] * 4
    assert await answers_of_a_broker(1) == answers


async def test_a_process_that_is_left_is_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        async with process(theirs):
            child = only_child()
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def only_child() -> int:
    """The pid of our one helper process."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"broker.actors.helper" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    assert len(found) == 1, found
    return found[0]
