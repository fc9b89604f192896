"""Clients that all come back at once, each to go on after its cursor; every event is the one that is due, or it fails.

One thread, sockets that never block: connect, upgrade, prove the key to the challenge, follow after the cursor, and
read until the stream's newest event is there. The proof is signed when the challenge comes, as it must be.
"""

import errno
import gc
import secrets
import select
import socket
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bench.history import Party
from bench.kit.websocket import SILENCE_S, Lost, control, frame, measure, request
from broker.wire.statement import build_statement

READ_BYTES: Final = 65_536
QUIET_S: Final = 0.3
"""After the last event that was due: what comes then was sent twice."""
_UPGRADE: Final = (
    b"GET / HTTP/1.1\r\nHost: %b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n"
)
_EVENT_CURSOR: Final = b'"cursor":"'


class _Hello(msgspec.Struct):
    challenge: str
    wire: str


class _Resume(msgspec.Struct):
    recovered: bool
    head: str


class _Message(msgspec.Struct):
    id: int | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()


class Returning:
    """One client: who it is, the cursor that it has (`after`), and the chains of the events that must follow."""

    def __init__(self, party: Party, head: str) -> None:
        """`head`: the cursor of the stream's newest event. It comes back as if it had missed all that are kept."""
        self.party = party
        self.prefix, _, newest = head.rpartition(".")
        if int(newest) != party.newest:
            raise Lost(f"a stream of {party.newest} events stands at {newest}")
        self.missed = list(party.chains)
        self.got = 0
        self.greeted_at = self.resumed_at = self.done_at = 0.0
        self._position = party.newest - len(self.missed)
        self._rest = b""
        self._upgraded = False
        self._dialled = False
        self._socket: socket.socket

    @property
    def after(self) -> str:
        """The cursor of the last event that it has."""
        return f"{self.prefix}.{self._position}"

    def dial(self, host: str, port: int) -> int:
        """Begin to connect; the socket's number."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._dialled = True
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        became = self._socket.connect_ex((host, port))
        if became not in (0, errno.EINPROGRESS):
            raise Lost(f"cannot connect: {errno.errorcode.get(became, became)}")
        return self._socket.fileno()

    def upgrade(self, host: str, port: int) -> None:
        """Connected, or not: send the upgrade."""
        became = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if became:
            raise Lost(f"cannot connect: {errno.errorcode.get(became, became)}")
        self._write(_UPGRADE % f"{host}:{port}".encode())

    def take(self) -> bool:
        """What has come; whether with it the client has caught up. Raises Lost."""
        data = self._socket.recv(READ_BYTES)
        if not data:
            raise Lost(f"a connection was closed after {self.got} of {len(self.missed)} events")
        data = self._rest + data
        at = 0
        if not self._upgraded:
            head, found, _ = data.partition(b"\r\n\r\n")
            if found and b" 101 " not in head.split(b"\r\n", 1)[0]:
                raise Lost(f"no upgrade: {head[:100]!r}")
            self._upgraded = bool(found)
            at = len(head) + 4 if found else 0
        while self._upgraded and at < len(data):
            start, end = measure(data, at)
            if not end or end > len(data):
                break
            if data[at] == 0x81:
                self._message(data, start, end)
            else:
                self._write(control(data[at], data[start:end]))
            at = end
        self._rest = data[at:]
        return self.got == len(self.missed) and bool(self.resumed_at)

    def close(self) -> None:
        """Close the socket, if there is one."""
        if self._dialled:
            self._socket.close()

    def _message(self, data: bytes, start: int, end: int) -> None:
        found = data.find(_EVENT_CURSOR, start, end)
        if found >= 0:
            self._event(data, found + len(_EVENT_CURSOR), end)
            return
        message = msgspec.json.decode(data[start:end], type=_Message)
        if message.method == "hello":
            self.greeted_at = time.perf_counter()
            self._prove(msgspec.json.decode(message.params, type=_Hello))
        elif message.id == 2 and message.result:
            resume = msgspec.json.decode(message.result, type=_Resume)
            if not resume.recovered or resume.head != f"{self.prefix}.{self.party.newest}":
                raise Lost(f"resumed after {self.after}: {resume}")
            self.resumed_at = time.perf_counter()
        elif message.id != 1 or not message.result:
            raise Lost(f"not understood: {data[start:end]!r}")

    def _event(self, data: bytes, at: int, end: int) -> None:
        cursor = data[at : data.index(b'"', at)].decode()
        due = f"{self.prefix}.{self._position + 1}"
        if self.got == len(self.missed) or cursor != due:
            raise Lost(f"event {cursor} came where {due} was due")
        if data.find(self.missed[self.got], at, end) < 0:
            raise Lost(f"event {cursor} holds another envelope than was written")
        self._position += 1
        self.got += 1

    def _prove(self, hello: _Hello) -> None:
        text, sig = build_statement(
            "authenticate", self.party.key, hello.wire, int(time.time()), hello.challenge
        )
        proof = msgspec.json.encode({"statement": msgspec.Raw(text), "sig": sig})
        follow = msgspec.json.encode({"after": self.after})
        self._write(frame(request(1, "authenticate", proof)) + frame(request(2, "follow", follow)))

    def _write(self, data: bytes) -> None:
        if self._socket.send(data) != len(data):
            raise Lost("the broker does not read")


def storm(url: str, clients: Sequence[Returning]) -> float:
    """Have all of them come back at once; the seconds until the last had caught up. Raises Lost.

    Each client's times (greeted_at, resumed_at, done_at) then count from the start, in seconds. All stay connected.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0
    order = list(clients)
    secrets.SystemRandom().shuffle(order)
    gc.collect()
    gc.disable()
    try:
        with select.epoll() as epoll:
            began = time.perf_counter()
            at: dict[int, Returning] = {}
            for client in order:
                number = client.dial(host, port)
                at[number] = client
                epoll.register(number, select.EPOLLOUT)
            _drive(epoll, at, host, port)
            took = time.perf_counter() - began
            if epoll.poll(QUIET_S):
                for number, _ in epoll.poll(0):
                    at[number].take()  # a ping; anything else raises
    finally:
        gc.enable()
    for client in clients:
        client.greeted_at -= began
        client.resumed_at -= began
        client.done_at -= began
    return took


def _drive(epoll: select.epoll, at: dict[int, Returning], host: str, port: int) -> None:
    left = len(at)
    while left:
        ready = epoll.poll(SILENCE_S)
        if not ready:
            raise Lost(f"nothing came for {SILENCE_S:.0f} s, and {left} clients have not caught up")
        for number, event in ready:
            client = at[number]
            if event & select.EPOLLOUT:
                client.upgrade(host, port)
                epoll.modify(number, select.EPOLLIN)
            elif client.take() and not client.done_at:
                client.done_at = time.perf_counter()
                left -= 1
