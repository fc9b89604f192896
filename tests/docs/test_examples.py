"""The programs in docs/examples run against a live broker, as they are printed but for the address."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from broker.wire.keys import SigningKey
from gateways.keyfile import save_key
from tests.gateways.client.live import Live, live_broker

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ADDRESS = '"http://127.0.0.1:8766"'


@asynccontextmanager
async def running(name: str, live: Live, directory: Path) -> AsyncIterator[trio.Process]:
    """The example as a process; ended with the block."""
    text = (EXAMPLES / name).read_text()
    assert text.count(ADDRESS) == 1
    program = text.replace(ADDRESS, f'"{live.dealing}", wire="{live.wire}", key').replace(", key, ", ", key=")
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", program], cwd=directory, stdout=-1, stderr=-1
    )
    try:
        yield process
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()


def test_ten_lines_are_ten_lines() -> None:
    text = (EXAMPLES / "ten_lines.py").read_text()
    body = text.split('"""', 2)[2]
    assert len([line for line in body.splitlines() if line.strip()]) == 10


async def test_the_two_examples_deal_with_each_other(tmp_path: Path) -> None:
    for name in ("alfa", "brav"):
        save_key(tmp_path / f"{name}.key", SigningKey.generate())
    with trio.fail_after(30):
        async with live_broker() as live, running("ten_lines.py", live, tmp_path):
            while not live.broker.statistics().desks_online:  # noqa: ASYNC110  # another process: nothing to wait on
                await trio.sleep(0.05)
            async with running("take_a_price.py", live, tmp_path) as taker:
                assert taker.stdout is not None
                assert (
                    (await taker.stdout.receive_some()).decode().startswith("dealt at 1.0843: n = 4, chain ")
                )
                assert await taker.wait() == 0
