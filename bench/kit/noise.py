"""Dealers that misbehave, as a process of their own: `python -m bench.kit.noise flood|slow URL`, until SIGTERM.

flood: one dealer sends envelopes out of their turn as fast as the broker takes them; each costs a verification.
slow: one dealer's conversation goes on (200 envelopes of 7 KB a second) while a connection that follows its stream
never reads, and comes again when it was closed for that.
"""

import json
import socket
import sys
import time
from collections.abc import Iterator
from typing import Final

from bench.kit.load import Load
from bench.kit.parties import Dealer, Line, chance_code
from bench.kit.websocket import SILENCE_S, Lost, Socket

AHEAD: Final = 1000
"""The flood's n; the conversation's head never comes near it."""
BATCH: Final = 16
RATE: Final = 200.0
STRETCH_S: Final = 1.5
LARGE: Final = json.dumps({"note": "x" * 7000}, separators=(",", ":")).encode()


def main(arguments: list[str]) -> None:
    """Say ready when the noise begins, then make it."""
    kind, url = arguments
    noise = {"flood": flood, "slow": slow}[kind](url)
    next(noise)
    print(json.dumps({"ready": True}), flush=True)
    for _ in noise:
        pass


def _line(url: str) -> tuple[Line, Load]:
    line = Line(0, Dealer(url, chance_code()), Dealer(url, chance_code()))
    load = Load([line])
    load.open()
    return line, load


def flood(url: str) -> Iterator[None]:
    """Envelopes that are signed and far beyond the head: verified, and refused with conflict."""
    line, _ = _line(url)
    line.sign(AHEAD)
    connection = line.parties[0].socket.socket
    connection.settimeout(SILENCE_S)
    batch = memoryview(line.frames[AHEAD] * BATCH)
    connection.setblocking(False)
    at = 0
    yield
    while True:
        try:
            at = (at + connection.send(batch[at:])) % len(batch)
        except BlockingIOError:
            time.sleep(0.0002)
        try:
            if not connection.recv(262_144):
                raise Lost("the broker closed the flood's connection")
        except BlockingIOError:
            pass
        yield


def slow(url: str) -> Iterator[None]:
    """A follower that never reads, of a dealer whose envelopes are large."""
    line, load = _line(url)
    reader = _deaf(url, line.parties[0])
    yield
    while True:
        line.rewind(load.counts[0])
        line.sign(int(RATE * STRETCH_S) + 1, body=LARGE)
        load.open_loop(RATE, STRETCH_S)  # more than its queue holds: the broker has given it up by now
        reader.close()
        reader = _deaf(url, line.parties[0])
        yield


def _deaf(url: str, dealer: Dealer) -> Socket:
    """Another connection of a dealer, which follows its stream and has little room for it."""
    again = Dealer(url, dealer.code, key=dealer.key).socket
    again.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    again.socket.setblocking(False)
    return again


if __name__ == "__main__":
    main(sys.argv[1:])
