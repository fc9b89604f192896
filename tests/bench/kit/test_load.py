"""The load: what it sends, and that a wrong, missing or repeated answer never passes."""

import json
import socket
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.utils import apply_mask

from bench.kit import load as module
from bench.kit.load import Load
from bench.kit.parties import Line
from bench.kit.websocket import Lost, frame, measure
from broker.wire.keys import SigningKey


def dealer(code: str) -> tuple[Any, socket.socket]:
    key = SigningKey.generate()
    ours, far = socket.socketpair()
    near = SimpleNamespace(
        key=key,
        code=code,
        wire="0" * 64,
        secret=bytes.fromhex(key.seed) + bytes.fromhex(key.pk),
        socket=SimpleNamespace(socket=ours, rest=b""),
    )
    return near, far


def plain(text: bytes) -> bytes:
    """A server's frame: a client's without its mask."""
    masked = frame(text)
    at = measure(masked[:1] + bytes([masked[1] & 0x7F]) + masked[2:], 0)[0]
    return masked[:1] + bytes([masked[1] & 0x7F]) + masked[2:at] + text


Answer = Callable[[Line, int], tuple[bytes, list[bytes]]]
"""Line and n → the acknowledgement, and the event to both."""


def honest(line: Line, n: int) -> tuple[bytes, list[bytes]]:
    shown = {"conv": line.conv, "n": n, "chain": line.chains[n].decode(), "pad": "x" * 300}
    ack = json.dumps({"jsonrpc": "2.0", "id": line.index << 24 | n, "result": shown}, separators=(",", ":"))
    event = json.dumps({"jsonrpc": "2.0", "method": "env", "params": shown}, separators=(",", ":"))
    return plain(ack.encode()), [plain(event.encode())]


def serve(line: Line, ends: list[socket.socket], answer: Answer, pieces: int = 65_536) -> None:
    """A broker of one conversation, until its dealers have gone."""

    def run() -> None:
        n = 0
        while True:
            data = b""
            while not data or len(data) < measure(data[:1] + bytes([data[1] & 0x7F]) + data[2:], 0)[1] + 4:
                try:
                    more = ends[n % 2].recv(65_536)
                except OSError:
                    return
                if not more:
                    return
                data += more
            ack, events = answer(line, n)
            whole = [b"".join([*events, ack]), b"".join(events)]
            for end, out in zip([ends[n % 2], ends[1 - n % 2]], whole, strict=True):
                for at in range(0, len(out), pieces):
                    try:
                        end.sendall(out[at : at + pieces])
                    except OSError:
                        return
                    if pieces < 65_536:
                        time.sleep(0.0005)
            n += 1

    threading.Thread(target=run, daemon=True).start()


def make(answer: Answer = honest, pieces: int = 65_536) -> tuple[Load, Line, list[socket.socket]]:
    (near, far), (other, beyond) = dealer("ALFA"), dealer("BRAV")
    line = Line(7, near, other)
    serve(line, [far, beyond], answer, pieces)
    return Load([line]), line, [near.socket.socket, other.socket.socket, far, beyond]


def close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


@pytest.mark.parametrize("pieces", [65_536, 100])
def test_a_closed_loop_counts_what_was_acknowledged(pieces: int) -> None:
    load, line, sockets = make(pieces=pieces)
    load.open()
    assert load.counts == [2]
    load.sign(10)
    result = load.closed_loop(30.0)  # ends as soon as nothing signed is left
    assert load.counts == [12]
    assert 8 <= len(result.latencies) <= 10
    assert result.seconds < 10
    assert line.frames[2:12] == [frame_ for frame_ in line.frames[2:12] if frame_]
    close(sockets)


def test_an_open_loop_counts_latency_from_its_schedule() -> None:
    stalled = []

    def answer(line: Line, n: int) -> tuple[bytes, list[bytes]]:
        if n == 4:
            stalled.append(n)
            time.sleep(0.2)
        return honest(line, n)

    load, _, sockets = make(answer)
    load.open()
    load.sign(100)
    result = load.open_loop(100.0, 0.5)
    assert stalled == [4]
    assert len(result.latencies) == 50
    late = [each for each in result.latencies if each > 50]
    assert len(late) > 8  # those that had to wait for the one that stalled, not it alone
    close(sockets)


def spoilt(line: Line, n: int) -> tuple[bytes, list[bytes]]:
    ack, events = honest(line, n)
    return (ack.replace(line.chains[n], b"0" * 64), events) if n == 3 else (ack, events)


def refused(line: Line, n: int) -> tuple[bytes, list[bytes]]:
    ack, events = honest(line, n)
    return (ack.replace(b'"result"', b'"error"'), events) if n == 3 else (ack, events)


def repeated(line: Line, n: int) -> tuple[bytes, list[bytes]]:
    ack, events = honest(line, n)
    return ack, events * 2 if n == 3 else events


def closing(line: Line, n: int) -> tuple[bytes, list[bytes]]:
    ack, events = honest(line, n)
    return ack, [*events, b"\x88\x02\x03\xf4"] if n == 3 else events


@pytest.mark.parametrize(
    ("answer", "words"),
    [(spoilt, "3 was due"), (refused, "3 was due"), (repeated, "was due"), (closing, "closed: 1012")],
)
def test_what_is_wrong_ends_the_run(answer: Answer, words: str) -> None:
    load, _, sockets = make(answer)
    load.open()
    load.sign(50)
    with pytest.raises(Lost, match=words):
        load.closed_loop(5.0)
    close(sockets)


def test_an_answer_that_does_not_come_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(line: Line, n: int) -> tuple[bytes, list[bytes]]:
        ack, events = honest(line, n)
        return (b"", events) if n == 3 else (ack, events)

    monkeypatch.setattr(module, "SILENCE_S", 0.2)
    load, _, sockets = make(silent)
    load.open()
    load.sign(2)
    with pytest.raises(Lost, match=r"no answer for 0 s: 1 conversations wait; .*: 4 sent, 3 acknowledged"):
        load.closed_loop(5.0)
    close(sockets)


def test_a_ping_is_answered() -> None:
    def pinging(line: Line, n: int) -> tuple[bytes, list[bytes]]:
        ack, events = honest(line, n)
        return b"\x89\x02hi" + ack if n == 1 else ack, events

    load, _, sockets = make(pinging)
    load.open()
    far = sockets[3]  # the far end of whose turn it is not: nobody else reads it now
    far.settimeout(5)
    pong = far.recv(8)
    assert (pong[0], apply_mask(pong[6:], pong[2:6])) == (0x8A, b"hi")
    close(sockets)
