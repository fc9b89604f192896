"""Children that end with their parent's block."""

import os
from pathlib import Path

import pytest
import trio

from gateways.demo import processes
from gateways.demo.processes import ChildFailed, child

READY = "import sys; print('{\"ready\":true}', flush=True); "


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_is_read_line_by_line_and_ends_with_the_block(tmp_path: Path) -> None:
    with trio.fail_after(20):
        async with child(
            "one", ["-c", READY + "print('{\"a\":1}', flush=True); sys.stdin.read()"], tmp_path
        ) as one:
            assert await one.expect("ready", 10) == {"ready": True}
            assert await one.read_line() == {"a": 1}
        assert not alive(one.process.pid)
        assert one.process.returncode in (0, -15)  # its standard input ended, and it was asked


async def test_a_child_that_will_not_go_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.2)
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY + "time.sleep(60)"
    )
    with trio.fail_after(20):
        async with child("one", ["-c", stubborn], tmp_path) as one:
            await one.expect("ready", 10)
    assert one.process.returncode == -9


async def test_a_failure_in_the_block_leaves_nobody_behind(tmp_path: Path) -> None:
    async def fail() -> None:
        async with child("one", ["-c", READY + "sys.stdin.read()"], tmp_path) as one:
            pids.append(one.process.pid)
            await one.expect("ready", 10)
            raise RuntimeError("oh")

    pids: list[int] = []
    with trio.fail_after(20), pytest.raises(RuntimeError, match="oh"):
        await fail()
    assert not alive(pids[0])


async def test_a_cancelled_block_leaves_nobody_behind(tmp_path: Path) -> None:
    with trio.fail_after(20):
        with trio.CancelScope() as scope:
            async with child("one", ["-c", READY + "sys.stdin.read()"], tmp_path) as one:
                await one.expect("ready", 10)
                scope.cancel()
                await trio.sleep_forever()
        assert not alive(one.process.pid)


async def test_a_child_that_fails_tells_its_last_words(tmp_path: Path) -> None:
    with trio.fail_after(20):
        async with child("one", ["-c", "import sys; sys.exit('no luck')"], tmp_path) as one:
            with pytest.raises(ChildFailed, match=r"one ended with exit code 1\n  no luck"):
                await one.expect("ready", 10)
        async with child("two", ["-c", "raise SystemExit(3)"], tmp_path) as two:
            with pytest.raises(ChildFailed, match="two ended with exit code 3"):
                await two.finish(10)


async def test_a_child_that_says_nothing_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with trio.fail_after(20):
        async with child("one", ["-c", "import sys; sys.stdin.read()"], tmp_path) as one:
            with pytest.raises(ChildFailed, match=r"one said nothing in 0\.1 s"):
                await one.expect("ready", 0.1)
            with pytest.raises(ChildFailed, match="still running"):
                await one.finish(0.1)


async def test_a_child_that_talks_nonsense_is_found_out(tmp_path: Path) -> None:
    with trio.fail_after(20):
        async with child("one", ["-c", "print('hello')"], tmp_path) as one:
            with pytest.raises(ChildFailed, match="no JSON"):
                await one.read_line()
