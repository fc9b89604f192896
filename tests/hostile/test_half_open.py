"""Thousands of connections that never say what they want: bystanders go on, and the places come free."""

from pathlib import Path

import pytest
import trio

from bench.kit.server import raise_open_files
from tests.hostile.attack import Watched, address_of, bystander, crowd
from tests.support.peers import eventually, exchange
from tests.support.process import served
from tests.support.ws import Client

HALF_OPEN = 5_000
HEADER_S = 10.0
LORIS = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nx-slow: " + b"x" * 40
ONCE = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


@pytest.mark.requirement("faults.half-open", "faults.slow-request")
async def test_half_open_connections_and_slow_heads_on_both_ports(tmp_path: Path) -> None:
    if raise_open_files() < 2 * HALF_OPEN + 1_000:
        pytest.skip("the system allows too few open files")
    async with served(tmp_path / "data") as broker, bystander(broker) as other:
        await other.deal()
        other.took_s.clear()
        watched = Watched(broker)
        with crowd() as silent:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(other.deal_for, 8.0)
                for url in (broker.dealing, broker.http):
                    nursery.start_soon(silent.connect, url, HALF_OPEN)
                for at in range(8):
                    silent.send(LORIS[at : at + 1], silent.sockets[::10])  # a byte a second
                    await trio.sleep(1.0)
            watched.judge(grown_mib=250)
            # Each is ended in time, also one that sends a byte a second.
            await eventually(lambda: silent.closed() == 2 * HALF_OPEN, HEADER_S + 10.0)
            async with await trio.open_tcp_stream(*address_of(broker.dealing)) as stream:
                assert "result" in await (await Client.open(stream)).ask("ping")
            assert b" 200 " in await exchange(address_of(broker.http), ONCE)
        await other.deal()
        other.judge()
        watched.judge(grown_mib=250)
        assert await broker.stop() == 0
