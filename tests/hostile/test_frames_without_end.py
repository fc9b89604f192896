"""Clients that send, ask or reset without end: others are answered in time, and memory stays bounded."""

import random
from pathlib import Path

import pytest
import trio
from websockets.frames import Opcode

from tests.hostile.attack import UPGRADE, Watched, address_of, bystander, crowd, reset
from tests.support.peers import eventually
from tests.support.process import served
from tests.support.ws import Client, masked, request

ATTACKERS = 8
ATTACK_S = 1.0
PIECES = 4_096
ENDLESS = {
    "fragments": masked(b"[", fin=False) + masked(b"0", Opcode.CONT, fin=False) * PIECES,
    "empty fragments": masked(b"", fin=False) + masked(b"", Opcode.CONT, fin=False) * PIECES,
    "empty frames": masked(b"") * PIECES,
    "small requests": masked(request(1, "ping")) * 512,
    "binary": masked(b"\0", Opcode.BINARY) * PIECES,
    "pings": masked(b"0123456789", Opcode.PING) * PIECES,
    "a huge frame": b"\x81\xff" + (1 << 40).to_bytes(8, "big") + b"\0" * 65_536,
    "no frames": bytes(range(256)) * 256,
}


@pytest.mark.requirement("faults.endless-frames", "faults.deaf-reader")
async def test_frames_without_end_whose_answers_nobody_reads(tmp_path: Path) -> None:
    async with served(tmp_path / "data") as broker, bystander(broker) as other:
        await other.deal()
        watched = Watched(broker)
        for data in ENDLESS.values():
            with crowd() as attackers:
                for url in (broker.dealing, broker.http):
                    attackers.send(UPGRADE, await attackers.connect(url, ATTACKERS // 2, 4096))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(other.deal_for, ATTACK_S)
                    sent = await attackers.press(data, attackers.sockets, ATTACK_S)
                assert sent > len(data)
        other.judge(median_s=0.25)
        watched.judge(grown_mib=60)
        assert await broker.stop() == 0


@pytest.mark.requirement("faults.deaf-reader")
async def test_who_never_reads_what_it_asked_for_is_cut_in_time(tmp_path: Path) -> None:
    asks = b"POST /v1/wire_info HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}" * 2_000
    async with served(tmp_path / "data") as broker, bystander(broker) as other:
        watched = Watched(broker)
        with crowd() as deaf:
            dealing = await deaf.connect(broker.dealing, 20, 4096)
            deaf.send(UPGRADE, dealing)
            public = await deaf.connect(broker.http, 20, 4096)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(other.deal_for, 3.0)
                nursery.start_soon(deaf.press, masked(request(1, "wire_info")) * 500, dealing, 2.0)
                nursery.start_soon(deaf.press, asks, public, 2.0)
            watched.judge(grown_mib=60)

            await eventually(lambda: watched.files() <= 0, 25.0)
        await other.deal()
        other.judge(median_s=0.25)
        assert await broker.stop() == 0


@pytest.mark.requirement("faults.reset")
async def test_resets_in_the_middle_of_everything(tmp_path: Path) -> None:
    chance = random.Random(5)
    words = [
        UPGRADE + masked(request(1, "wire_info")) * 20,
        UPGRADE + masked(request(1, "follow")) + masked(b"", fin=False),
        b"POST /v1/presence HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000\r\n\r\n" + b"{" * 1000,
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20,
    ]
    async with served(tmp_path / "data") as broker, bystander(broker) as other:
        await other.deal()
        watched = Watched(broker)
        with crowd() as resetting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(other.deal_for, 4.0)
                for at in range(24):
                    url = (broker.dealing, broker.http)[at % 2]
                    made = await resetting.connect(url, 50)
                    for each in made:
                        text = chance.choice(words)
                        resetting.send(text[: chance.randrange(len(text) + 1)], [each])
                    await trio.sleep(chance.choice((0, 0.005, 0.05)))
                    for each in made:
                        reset(each)
        other.judge(median_s=0.25)
        watched.judge(grown_mib=60)
        async with await trio.open_tcp_stream(*address_of(broker.dealing)) as stream:
            assert "result" in await (await Client.open(stream)).ask("ping")
        assert await broker.stop() == 0
