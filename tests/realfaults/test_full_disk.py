"""A disk that fills up under a real process, and one that can't be written."""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from tests.crash.dealers import Pair, Party, linked, read_conv, send, settle
from tests.history.checker import check
from tests.history.model import History
from tests.realfaults.disk import small_disk, supported
from tests.realfaults.load import acknowledged, dealing, wait_acknowledged, wait_readiness
from tests.support.process import Served, served

pytestmark = pytest.mark.skipif(not supported(), reason="no tmpfs can be mounted in a user namespace here")
LITTLE = 4 * 1024 * 1024
"""store.min_free_bytes in these tests."""


def world(count: int = 4) -> tuple[History, list[Pair]]:
    history = History()
    return history, [Pair(number, history, random.Random(number)) for number in range(count)]


async def open_desk(broker: Served, party: Party) -> str:
    """The code that a newcomer gets, or that of the refusal."""
    async with linked(broker) as link:
        proof = party.statement("open_desk", broker.pk, code=party.code)
        answer = await link.ask("open_desk", proof)
        return str(answer["code"] if "data" not in answer else answer["data"]["code"])


@pytest.mark.requirement("faults.disk-full")
async def test_below_the_reserve_new_calls_are_refused_and_open_ones_go_on(tmp_path: Path) -> None:
    history, [pair] = world(1)
    async with small_disk(tmp_path / "disk", 16) as disk:
        environment = {"TURRET_STORE_MIN_FREE_BYTES": str(LITTLE)}
        async with served(disk.place / "data", environment=environment, inside=disk.inside) as broker:
            async with pair.caller.connected(broker) as one, pair.called.connected(broker) as other:
                while pair.n < 3:
                    await pair.step(broker, one, other, one)
                disk.fill(leave=LITTLE // 2)
                assert "disk space" in (await wait_readiness(broker, False))[0]
                while pair.n < 8:
                    await pair.step(broker, one, other, one)
                assert not pair.refused
                newcomer = Party("NEWC", history)
                assert await open_desk(broker, newcomer) == "unavailable"
                own = Pair(0, history, random.Random(0))
                own.caller, own.called = pair.caller, pair.called
                [call] = own.next(broker.pk)
                assert (await send(one, call, history))["data"]["code"] == "unavailable"
                disk.make_room()
                assert await wait_readiness(broker, True) == []
                assert isinstance((await send(one, call, history))["chain"], str)
                assert await open_desk(broker, newcomer) == "NEWC"
            assert await broker.stop() == 0
    assert check(history) == []


@pytest.mark.requirement("faults.disk-full")
async def test_on_a_full_disk_open_calls_are_refused_and_go_on_when_there_is_room(tmp_path: Path) -> None:
    history, pairs = world()
    async with small_disk(tmp_path / "disk", 16) as disk:
        environment = {"TURRET_STORE_MIN_FREE_BYTES": str(LITTLE)}
        data = disk.place / "data"
        async with served(data, environment=environment, inside=disk.inside) as broker:
            async with dealing(broker, pairs):
                # Before the store's log is written from its beginning again: that needs no room, and refuses nothing.
                await wait_acknowledged(history, 40)
                disk.fill()
                with trio.fail_after(5):
                    while not all(pair.refused["unavailable"] for pair in pairs):  # noqa: ASYNC110
                        await trio.sleep(0.02)
                assert not any(pair.refused["in_doubt"] for pair in pairs)
                assert "a commit was refused: database or disk is full" in broker.errors.read_text()
                disk.make_room()
                await wait_acknowledged(history, acknowledged(history) + 40)
                disk.fill()
                await trio.sleep(0.2)
            broker.kill()
        disk.make_room()
        async with served(data, environment=environment, inside=disk.inside) as broker:
            async with dealing(broker, pairs):
                await trio.sleep(0.2)
            await settle(broker, pairs, history)
    history.write(tmp_path / "history.json")
    assert check(history) == []


@pytest.mark.requirement("faults.disk-full")
async def test_what_is_there_is_served_from_a_full_disk_and_a_new_store_is_one_clear_line(
    tmp_path: Path,
) -> None:
    history, [pair] = world(1)
    async with small_disk(tmp_path / "disk", 16) as disk:
        data = disk.place / "data"
        async with served(
            data, environment={"TURRET_STORE_MIN_FREE_BYTES": "0"}, inside=disk.inside
        ) as broker:
            async with dealing(broker, [pair]):
                await trio.sleep(0.2)
            broker.kill()
        disk.fill()
        async with served(data, inside=disk.inside) as broker:
            async with linked(broker) as link:
                assert await read_conv(link, next(iter(pair.acked)), history)
            assert await open_desk(broker, Party("NEWC", history)) == "unavailable"
            assert await broker.stop() == 0
        code, words = await start(disk.inside, disk.place / "new")
        assert code == 2
        assert len(words.strip().splitlines()) == 1
        disk.make_room()
        async with served(data, inside=disk.inside) as broker:
            await settle(broker, [pair], history)
    assert check(history) == []


@pytest.mark.requirement("faults.read-only")
async def test_a_read_only_file_system_is_one_clear_line_and_harms_nothing(tmp_path: Path) -> None:
    history, [pair] = world(1)
    async with small_disk(tmp_path / "disk", 16) as disk:
        data = disk.place / "data"
        async with served(
            data, environment={"TURRET_STORE_MIN_FREE_BYTES": "0"}, inside=disk.inside
        ) as broker:
            async with dealing(broker, [pair]):
                await trio.sleep(0.2)
            broker.kill()
        await disk.remount("ro")
        code, words = await start(disk.inside, data)
        assert code == 2
        assert words.startswith(f"turret: {data}")
        assert len(words.strip().splitlines()) == 1
        await disk.remount("rw")
        async with served(data, inside=disk.inside) as broker:
            await settle(broker, [pair], history)
    assert check(history) == []


async def start(inside: Sequence[str], data: Path) -> tuple[int, str]:
    """Try to serve; the exit code and what was said on stderr."""
    command = [
        *inside, sys.executable, "-m", "gateways.cli", "serve", "--data", str(data),
        "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0",
    ]  # fmt: skip
    with trio.fail_after(20):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    return done.returncode, done.stderr.decode()
