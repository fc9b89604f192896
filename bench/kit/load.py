"""The load: many conversations over many sockets in one thread, each answer and each event checked.

Both sides of a conversation are dealers that follow their streams. The next envelope leaves when its sender has got
the event of the last one, as a real dealer would send it. Closed loop: at once. Open loop: when its time in the
schedule has come, and its latency counts from then, whether or not it could be sent then; so a stall of the broker
can't hide the latencies of what it kept from being sent (coordinated omission).

Everything is signed and framed before (bench.kit.parties); what is left is a send, two reads and three comparisons
an envelope.
"""

import gc
import select
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from bench.kit.parties import Dealer, Line
from bench.kit.websocket import READ_BYTES, SILENCE_S, Lost, control, measure

_ANSWER: Final = b'{"jsonrpc":"2.0","id":'
_RESULT: Final = b',"result":{'
_ID_AT: Final = len(_ANSWER)
_CONV: Final = b'"conv":"'


class Result:
    """What one run found: `latencies` in ms of the envelopes that were acknowledged in `seconds`."""

    def __init__(self, latencies: list[float], seconds: float, own_cpu_s: float) -> None:
        self.latencies = latencies
        self.seconds = seconds
        self.own_cpu_s = own_cpu_s

    @property
    def per_s(self) -> float:
        """Envelopes acknowledged per second."""
        return len(self.latencies) / self.seconds


class _Talk:
    """A line under way: how far each of its three streams of news has come."""

    __slots__ = ("acked", "chains", "due", "frames", "idle", "limit", "line", "seen", "sent", "waiting")

    def __init__(self, line: Line) -> None:
        self.line = line
        self.frames = line.frames
        self.chains = line.chains
        self.sent = self.acked = 0
        self.limit = 0
        """Envelopes of n < limit may be sent."""
        self.seen = [0, 0]
        """The n whose event comes next on the caller's stream, and on the other's."""
        self.due: dict[int, float] = {}
        """n → when it was sent, or should have been."""
        self.idle = True
        """Whether the next envelope could be sent now."""
        self.waiting: deque[float] = deque()
        """Times in the schedule for which there was no turn yet."""


class Load:
    """Lines that are driven together, again and again. Their indices follow each other."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._talks = [_Talk(line) for line in lines]
        self._first = lines[0].index if lines else 0
        self._by_conv = {talk.line.conv.encode(): talk for talk in self._talks}
        dealers = {id(dealer): dealer for line in lines for dealer in line.parties}
        self._dealers: dict[int, Dealer] = {d.socket.socket.fileno(): d for d in dealers.values()}
        self._now = 0.0
        self._latencies: list[float] = []
        self._closed = True
        self._spent = False
        """Whether a line has no signed envelope left."""

    @property
    def counts(self) -> list[int]:
        """Envelopes acknowledged on each line so far."""
        return [talk.acked for talk in self._talks]

    def open(self) -> None:
        """Dial and pick up: the first two envelopes of each line. Raises Lost."""
        self.sign(2)
        self._run(0.0)

    def closed_loop(self, seconds: float) -> Result:
        """One envelope under way on each line, for so long, or until one has none left that is signed."""
        return self._run(seconds)

    def open_loop(self, rate: float, seconds: float) -> Result:
        """`rate` envelopes a second, evenly, in turn on the lines; latencies count from the schedule."""
        return self._run(seconds, rate=rate)

    def sign(self, each: int) -> None:
        """Have exactly `each` signed envelopes ready on each line, all with a fresh ts."""
        for talk in self._talks:
            talk.line.rewind(talk.sent)
            talk.line.sign(each)

    def _run(self, seconds: float, *, rate: float = 0.0) -> Result:
        """Seconds of 0: all that is signed is sent."""
        latencies: list[float] = []
        self._latencies = latencies
        self._closed, self._spent = not rate, False
        for talk in self._talks:
            talk.limit = len(talk.frames)
        gc.collect()
        gc.disable()
        try:
            with select.epoll() as epoll:
                for number, dealer in self._dealers.items():
                    epoll.register(number, select.EPOLLIN)
                    dealer.socket.socket.settimeout(0)  # with a timeout Python would ask the kernel twice
                cpu, began = time.process_time(), time.perf_counter()
                if rate:
                    self._drive_open(epoll, began, began + seconds, rate)
                else:
                    self._drive_closed(epoll, began + seconds)
                cpu, ended, counted = time.process_time() - cpu, self._now, len(latencies)
                self._drain(epoll, finish=not seconds)
        finally:
            gc.enable()
            for dealer in self._dealers.values():
                dealer.socket.socket.settimeout(SILENCE_S)
        if rate:  # all that was due in the time counts, and the time until it was answered
            return Result(latencies, max(seconds, self._now - began), cpu)
        return Result(latencies[:counted], ended - began, cpu)

    def _drive_closed(self, epoll: select.epoll, end: float) -> None:
        """Until `end`, or until a line could not go on."""
        self._now = time.perf_counter()
        for talk in self._talks:
            if talk.sent < talk.limit:
                self._send(talk, self._now)
        while self._now < end and not self._spent:
            self._poll(epoll, SILENCE_S)

    def _drive_open(self, epoll: select.epoll, began: float, end: float, rate: float) -> None:
        talks, step, at = self._talks, 1.0 / rate, 0
        due = began
        watched = [epoll.fileno()]
        while True:
            now = self._now = time.perf_counter()
            while due <= now and due < end:
                talk = talks[at % len(talks)]
                if talk.idle and talk.sent < talk.limit:
                    self._send(talk, due)
                else:
                    talk.waiting.append(due)
                at += 1
                due = began + at * step
            if now >= end:
                return
            # epoll waits in whole milliseconds, select in microseconds; it can wait for an epoll.
            if select.select(watched, [], [], max(0.0, min(due, end) - time.perf_counter()))[0]:
                self._poll(epoll, 0)

    def _drain(self, epoll: select.epoll, *, finish: bool) -> None:
        """Nothing new, but for what the schedule has already asked; all that is under way comes home.

        `finish`: all that is signed is sent first.
        """
        for talk in self._talks:
            if self._closed and not finish:
                talk.limit = talk.sent
        while any(talk.acked < talk.sent or min(talk.seen) < talk.sent for talk in self._talks):
            self._poll(epoll, SILENCE_S)
        if any(talk.waiting for talk in self._talks):
            raise Lost("too few envelopes were signed for this load")

    def _poll(self, epoll: select.epoll, timeout_s: float) -> None:
        """Read what is there and act on it. Raises Lost where nothing comes in `timeout_s` (0: asks nothing)."""
        ready = epoll.poll(timeout_s)
        if not ready and timeout_s:
            raise Lost(f"no answer for {timeout_s:.0f} s: {self._missing()}")
        for number, _ in ready:
            dealer = self._dealers[number]
            data = dealer.socket.socket.recv(READ_BYTES)
            if not data:
                raise Lost("the broker closed a connection")
            self._now = time.perf_counter()
            self._take(dealer, data)

    def _take(self, dealer: Dealer, data: bytes) -> None:
        """All whole frames of what was read; what is left waits for more."""
        if dealer.socket.rest:
            data = dealer.socket.rest + data
        at, size = 0, len(data)
        while at + 1 < size:
            if data[at + 1] == 126 and at + 4 <= size:  # nearly all; `measure` is for the others
                start = at + 4
                end = start + (data[at + 2] << 8 | data[at + 3])
            else:
                start, end = measure(data, at)
            if not end or end > size:
                break
            if data[at] != 0x81:
                self._write(dealer, control(data[at], data[start:end]))
            elif data.startswith(_ANSWER, start):
                self._answer(data, start, end)
            else:
                self._event(dealer, data, start, end)
            at = end
        dealer.socket.rest = data[at:]

    def _answer(self, data: bytes, start: int, end: int) -> None:
        """An acknowledgement: of the right envelope, with the right chain."""
        comma = data.index(b",", start + _ID_AT, end)
        id = int(data[start + _ID_AT : comma])
        talk, n = self._talks[(id >> 24) - self._first], id & 0xFFFFFF
        right = n == talk.acked and data.find(talk.chains[n], start, end) > 0
        if not right or not data.startswith(_RESULT, comma):
            raise Lost(f"{n} of {talk.line.conv} was answered {data[start:end]!r}, {talk.acked} was due")
        talk.acked = n + 1
        self._latencies.append((self._now - talk.due.pop(n)) * 1000)

    def _event(self, dealer: Dealer, data: bytes, start: int, end: int) -> None:
        """An event: the next one of its line on this stream. It may be the reader's turn now."""
        at = data.find(_CONV, start, end) + 8
        talk = self._by_conv.get(data[at : at + 16])
        if talk is None:
            return  # presence, or of another load on this socket
        side = 0 if talk.line.parties[0] is dealer else 1
        n = talk.seen[side]
        if data.find(talk.chains[n], start, end) < 0:
            raise Lost(f"event {n} of {talk.line.conv} was due, and came as {data[start:end]!r}")
        talk.seen[side] = following = n + 1
        if following & 1 != side:
            return  # the other party's turn
        if following >= talk.limit:
            talk.idle = self._spent = True
        elif self._closed:
            self._send(talk, self._now)
        elif talk.waiting:
            self._send(talk, talk.waiting.popleft())
        else:
            talk.idle = True

    def _send(self, talk: _Talk, due: float) -> None:
        """Send the next envelope, and remember since when its latency counts."""
        n = talk.sent
        talk.due[n] = due
        talk.sent = n + 1
        talk.idle = False
        self._write(talk.line.parties[n & 1], talk.frames[n])

    def _write(self, dealer: Dealer, data: bytes) -> None:
        """Send all; waits where the broker does not read (an envelope under way always fits)."""
        socket = dealer.socket.socket
        try:
            sent = socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent != len(data):
            socket.settimeout(SILENCE_S)
            socket.sendall(data[sent:])
            socket.settimeout(0)

    def _missing(self) -> str:
        waits = [talk for talk in self._talks if talk.acked < talk.sent or min(talk.seen) < talk.sent]
        told = [
            f"{each.line.conv}: {each.sent} sent, {each.acked} acknowledged, {each.seen} seen"
            for each in waits
        ]
        return f"{len(waits)} conversations wait; " + "; ".join(told[:3])
