"""What the tests of hostile networks share: a bystander whose answers are timed, and sockets that behave badly.

The sockets are plain non-blocking ones, thousands of them in one task; the broker is a process of its own.
"""

import os
import secrets
import select
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import trio

from bench.kit.machine import rss_mib
from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from tests.support.broker import Party
from tests.support.peers import eventually, read_until
from tests.support.process import Served
from tests.support.ws import Client

PAUSE_S = 0.02
READY = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)


def address_of(url: str) -> tuple[str, int]:
    """Host and port of a URL."""
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    return host, int(port)


class Bystander:
    """Two dealers who go on with their call over the dealing port, and a client of the public port.

    `took_s`: how long each answer took.
    """

    def __init__(self, served: Served, dealers: tuple[Client, Client], http: trio.SocketStream) -> None:
        self.took_s: list[float] = []
        self._served = served
        self._dealers = dealers
        self._http = http
        self._parties = (Party("BYAA"), Party("BYBB"))
        self._conv = secrets.token_hex(8)
        self._n = -1
        self._sig: str = bootstrap(ConvId(self._conv))

    async def open(self) -> None:
        """Desks, a call, and its pick-up."""
        for client, party in zip(self._dealers, self._parties, strict=True):
            hello, wire, now = client.hello, self._served.pk, int(time.time())
            proof = party.statement("authenticate", wire, now, nonce=hello["challenge"])
            assert "result" in await client.ask("authenticate", **proof)
            opening = party.statement("open_desk", wire, now, nonce=secrets.token_hex(16), code=party.code)
            assert "result" in await client.ask("open_desk", **opening)
        await self._send("CALL", {"code_from": "BYAA", "code_to": "BYBB", "wire": self._served.pk})
        await self._send("PICKUP", {})

    async def deal(self) -> None:
        """The next envelope, and what else a bystander asks; each timed."""
        for ask in (lambda: self._send("QUOTE", {"px": "1.08"}), self._ping, self._read):
            began = time.perf_counter()
            await ask()
            self.took_s.append(time.perf_counter() - began)

    async def deal_for(self, seconds: float) -> None:
        """Go on for so long, at most 20 envelopes in 10 s; on pings and requests in between."""
        end, deal_at = trio.current_time() + seconds, 0.0
        while trio.current_time() < end:
            if trio.current_time() >= deal_at:
                deal_at = trio.current_time() + 0.6
                await self.deal()
            began = time.perf_counter()
            await self._ping()
            self.took_s.append(time.perf_counter() - began)
            await trio.sleep(PAUSE_S)

    def judge(self, median_s: float = 0.1, most_s: float = 2.0) -> None:
        """Its answers came within bounds, and it had some."""
        took = sorted(self.took_s)
        assert len(took) > 10
        assert took[len(took) // 2] < median_s, took[len(took) // 2]
        assert took[-1] < most_s, took[-1]

    async def _send(self, kind: str, body: dict[str, Any]) -> None:
        self._n = n = self._n + 1
        sender, to = self._parties[n % 2], self._parties[1 - n % 2]
        params = sender.envelope(self._conv, n, kind, to.pk, int(time.time()), self._sig, body)
        self._sig = params["sig"]
        if n == 0:
            del params["conv"], params["n"]
            answer = await self._dealers[0].ask("send_call", **params, to_code=to.code)
        else:
            answer = await self._dealers[n % 2].ask("send_env", **params)
        assert "result" in answer, answer

    async def _ping(self) -> None:
        assert "result" in await self._dealers[0].ask("ping")

    async def _read(self) -> None:
        await self._http.send_all(READY)
        answer = await read_until(self._http, b"\r\n\r\n")  # head and body are one write
        assert answer.startswith(b"HTTP/1.1 200 "), answer


@asynccontextmanager
async def bystander(served: Served) -> AsyncIterator[Bystander]:
    """A bystander of a running broker, whose connections are there before any others."""
    streams = [await trio.open_tcp_stream(*address_of(served.dealing)) for _ in range(2)]
    http = await trio.open_tcp_stream(*address_of(served.http))
    try:
        made = Bystander(served, (await Client.open(streams[0]), await Client.open(streams[1])), http)
        await made.open()
        yield made
    finally:
        for stream in (*streams, http):
            await trio.aclose_forcefully(stream)


class Crowd:
    """Sockets of one attacker."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []

    async def connect(self, url: str, count: int, receive_bytes: int = 0) -> list[socket.socket]:
        """So many connections, opened as fast as the kernel takes them."""
        made = []
        for at in range(count):
            each = socket.socket()
            if receive_bytes:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(address_of(url))
            made.append(each)
            if at % 200 == 199:  # a full backlog would have the kernel try again after seconds
                await _connected(made[-200:])
            self.sockets.append(each)
        return made

    def send(self, data: bytes, sockets: list[socket.socket] | None = None) -> int:
        """Send what each takes now; how many bytes went out. Those that are closed are passed over."""
        sent = 0
        for each in self.sockets if sockets is None else sockets:
            with suppress(OSError):
                sent += each.send(data)
        return sent

    async def press(self, data: bytes, sockets: list[socket.socket], seconds: float) -> int:
        """Send the same again and again, as fast as it is taken; how many bytes went out."""
        sent, at = 0, [0] * len(sockets)
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            for which, each in enumerate(sockets):
                with suppress(OSError):
                    went = each.send(data[at[which] :])
                    at[which] = (at[which] + went) % len(data)
                    sent += went
            await trio.sleep(PAUSE_S / 4)
        return sent

    def closed(self) -> int:
        """How many the far end has closed; what came on the others is thrown away."""
        count = 0
        for each in self.sockets:
            try:
                while data := each.recv(65_536):
                    pass
                count += not data
            except BlockingIOError:
                pass
            except OSError:
                count += 1
        return count


async def _connected(sockets: list[socket.socket], seconds: float = 10.0) -> None:
    poll = select.poll()
    for each in sockets:
        poll.register(each, select.POLLOUT)
    await eventually(lambda: len(poll.poll(0)) == len(sockets), seconds)


@contextmanager
def crowd() -> Iterator[Crowd]:
    """An attacker; its sockets are closed at the end."""
    made = Crowd()
    try:
        yield made
    finally:
        for each in made.sockets:
            each.close()


def reset(victim: socket.socket) -> None:
    """Close with a reset instead of an end."""
    victim.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    victim.close()


class Watched:
    """A broker's memory and log, from now on."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._before = rss_mib(served.process.pid)
        self._files = 0
        self._files = self.files()

    def files(self) -> int:
        """How many files and sockets the broker has open more than before."""
        return len(os.listdir(f"/proc/{self._served.process.pid}/fd")) - self._files

    def judge(self, grown_mib: float, lines: int = 5) -> None:
        """Memory grew by no more, and the log has no flood."""
        grown = rss_mib(self._served.process.pid) - self._before
        assert grown < grown_mib, f"{grown:.0f} MiB"
        told = self._served.errors.read_text().splitlines()
        assert len(told) <= lines, told[:20]
        assert self._served.process.returncode is None
