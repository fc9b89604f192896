"""The disk itself fails under a real process: fsync errors, writes refused, a file system gone read-only."""

import random
import signal
import time
from pathlib import Path

import pytest
import trio

from tests.crash.dealers import Pair, Party, linked, read_conv, settle
from tests.history.checker import check
from tests.history.model import History, Ok, Refused
from tests.realfaults.faulty import supported
from tests.realfaults.load import dealing, wait_readiness, wait_until
from tests.support.process import served

pytestmark = [
    pytest.mark.requirement("faults.disk-error"),
    pytest.mark.skipif(not supported(), reason="seccomp's numbers are known for x86_64 and aarch64 on Linux"),
]
FAULTS = ("fdatasync,fsync=EIO", "pwrite64=EIO", "pwrite64,ftruncate=EROFS")
"""A failed flush, a failed write, a file system that the kernel has made read-only."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_disk_that_fails_ends_all_writing_and_no_reading(tmp_path: Path, fault: str) -> None:
    chance, history = random.Random(1), History()
    pairs = [Pair(number, history, chance) for number in range(4)]
    environment = {"FAIL_CALLS": fault}
    async with served(
        tmp_path / "data", program="tests.realfaults.faulty", environment=environment
    ) as broker:
        async with dealing(broker, pairs):
            await wait_until(lambda: all(pair.acked for pair in pairs))
            broker.process.send_signal(signal.SIGUSR1)
            assert await wait_readiness(broker, False) == ["the store takes no writes"]
            assert "nothing is written until the store is opened anew" in broker.errors.read_text()
            since = time.monotonic()
            for pair in pairs:
                pair.refused.clear()
            await wait_until(lambda: all(pair.refused["unavailable"] for pair in pairs))
        late = [send.answer for send in history.sends if send.began > since]
        assert not any(isinstance(answer, Refused) and answer.code == "in_doubt" for answer in late)
        assert all(answer.replayed for answer in late if isinstance(answer, Ok))
        async with linked(broker) as link:
            for pair in pairs:
                assert await read_conv(link, next(iter(pair.acked)), history)
            newcomer = Party("NEWC", history)
            refused = await link.ask(
                "open_desk", newcomer.statement("open_desk", broker.pk, code=newcomer.code)
            )
            assert refused["data"]["code"] == "unavailable"
        assert await broker.stop() == 0
    async with served(tmp_path / "data") as broker:
        async with dealing(broker, pairs):
            await trio.sleep(0.2)
        await settle(broker, pairs, history)
    history.write(tmp_path / "history.json")
    assert check(history) == []


@pytest.mark.requirement("faults.disk-full")
async def test_a_quota_that_is_used_up_is_a_full_disk(tmp_path: Path) -> None:
    chance, history = random.Random(1), History()
    pairs = [Pair(number, history, chance) for number in range(2)]
    async with served(
        tmp_path / "data", program="tests.realfaults.faulty", environment={"FAIL_CALLS": "pwrite64=EDQUOT"}
    ) as broker:
        async with dealing(broker, pairs):
            await wait_until(lambda: all(pair.acked for pair in pairs))
            broker.process.send_signal(signal.SIGUSR1)
            await wait_until(lambda: all(pair.refused["unavailable"] for pair in pairs))
        assert not any(pair.refused["in_doubt"] for pair in pairs)
        assert "a commit was refused: the disk quota is used up" in broker.errors.read_text()
        assert await wait_readiness(broker, True) == [], "with room it goes on"
        assert await broker.stop() == 0
    async with served(tmp_path / "data") as broker:
        async with dealing(broker, pairs):
            await trio.sleep(0.1)
        await settle(broker, pairs, history)
    history.write(tmp_path / "history.json")
    assert check(history) == []
