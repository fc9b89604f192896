"""Direct writes, a writer that waits, and a client that reads by chance: frames arrive whole, once, in order."""

import random
import socket

import pytest
import trio

from broker.app import Delivery
from tests.support.broker_fake import FakeBroker
from tests.support.ws import Client, open_port

EVENTS = 400


@pytest.mark.requirement("ws.whole-frames")
@pytest.mark.parametrize("seed", range(6))
async def test_events_in_bursts_to_a_client_that_reads_by_chance(seed: int) -> None:
    chance = random.Random(seed)
    broker = FakeBroker()
    async with open_port(broker, sockets=True) as port:
        raw = trio.socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, chance.choice((2048, 8192, 65_536)))
        await raw.connect(port.address)
        async with trio.SocketStream(raw) as stream:
            client = await Client.open(stream)
            await client.ask("authenticate", statement={"pk": "aa"}, sig="00")
            await client.ask("follow")
            (reader,) = broker.readers
            got: list[int] = []

            async def tell() -> None:
                for position in range(EVENTS):
                    size = chance.choice((1, 100, 3_000, 40_000))
                    text = b'{"at":%d,"pad":"%b"}' % (position, b"x" * size)
                    reader.put(Delivery("env", f"c{position}", text, False, position))
                    if chance.random() < 0.3:
                        await trio.lowlevel.checkpoint()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(tell)
                while len(got) < EVENTS:
                    message = await client.receive(10)
                    if message.get("method") == "env":
                        got.append(message["params"]["at"])
                    for _ in range(chance.choice((0, 0, 0, 1, 3))):
                        await trio.lowlevel.checkpoint()
            assert got == list(range(EVENTS))
