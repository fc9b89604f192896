"""No file descriptors left under a running process: what is open goes on, and newcomers wait for their turn."""

import os
import random
import resource
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import trio

from tests.crash.dealers import Pair, settle
from tests.history.checker import check
from tests.history.model import History
from tests.realfaults.load import acknowledged, dealing, wait_acknowledged
from tests.support.process import Served, served

SPARE = 4
"""Descriptors that the process may still open."""


def starve(broker: Served) -> None:
    """Leave it SPARE descriptors."""
    pid = broker.process.pid
    highest = max(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1 + SPARE, highest + 1 + SPARE))


def cpu_s(broker: Served) -> float:
    """Seconds of CPU that it has taken."""
    fields = Path(f"/proc/{broker.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def greeted(stream: trio.SocketStream, seconds: float) -> bool:
    """Whether a request on this connection is answered in time."""
    with trio.move_on_after(seconds):
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        return (await stream.receive_some(100)).startswith(b"HTTP/1.1 200")
    return False


@pytest.mark.requirement("faults.descriptors")
async def test_without_descriptors_open_connections_go_on_and_newcomers_wait(tmp_path: Path) -> None:
    history = History()
    pairs = [Pair(number, history, random.Random(number)) for number in range(2)]
    async with (
        served(tmp_path / "data") as broker,
        httpx.AsyncClient(base_url=broker.http) as http,
        AsyncExitStack() as stack,
    ):
        assert (await http.get("/readyz")).status_code == 200
        host, port = broker.http.removeprefix("http://").split(":")
        async with dealing(broker, pairs):
            await wait_acknowledged(history, 10)
            starve(broker)
            waiting = []
            for _ in range(3 * SPARE):
                stream = await trio.open_tcp_stream(host, int(port))
                waiting.append(await stack.enter_async_context(stream))
            taken = [await greeted(stream, 0.2) for stream in waiting]
            assert taken == [True] * SPARE + [False] * (2 * SPARE)
            ready = await http.get("/readyz")
            assert ready.status_code == 503
            assert "file descriptors" in ready.json()["reasons"][0]
            await wait_acknowledged(history, acknowledged(history) + 20)
        before = cpu_s(broker)
        await trio.sleep(1)
        assert cpu_s(broker) - before < 0.3, "it does not spin"
        for stream in waiting[:SPARE]:
            await stream.aclose()
        with trio.fail_after(5):
            for stream in waiting[SPARE:]:
                assert (await stream.receive_some(100)).startswith(b"HTTP/1.1 200")
        assert (await http.get("/readyz")).status_code == 200
        await settle(broker, pairs, history)
        assert len(broker.errors.read_text()) < 5_000, "nor does it fill the log"
    assert check(history) == []
