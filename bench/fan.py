"""One writer and many followers: events are written, and each must be everywhere, once and in order.

Whoever plans the events says what they are: an envelope of a conversation (bench.fanout), a message of a channel
(bench.channel).
"""

import gc
import select
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from bench.followers import Follower
from bench.kit.websocket import SILENCE_S, Lost, Socket, control, measure

READ_BYTES: Final = 32_768
_ANSWER: Final = b'{"jsonrpc":"2.0","id":'


class Event:
    """One event of the plan: its request's id and frame, the mark that its answer and its text hold, and who must
    get it."""

    __slots__ = ("acked_at", "frame", "id", "left", "mark", "sent_at", "to")

    def __init__(self, id: int, frame: bytes, mark: bytes, to: Sequence[Follower]) -> None:
        self.id = id
        self.frame = frame
        self.mark = mark
        self.to = to
        self.left = len(to)
        self.sent_at = self.acked_at = 0.0


class Fan:
    """A writer's connection, and who follows. Subclasses say what is written next (`plan`)."""

    def __init__(self, socket: Socket) -> None:
        self.written = 0
        """Events so far."""
        self.followers: Sequence[Follower] = ()
        self._socket = socket
        self._due: dict[int, tuple[Follower, deque[Event]]] = {}
        self._acks: dict[int, Event] = {}
        self._under_way = 0
        self.acked: list[float] = []
        """Of the last run, ms from writing to the acknowledgement."""
        self.whole: list[float] = []
        """The same, from writing until the last follower has it."""
        self._latencies: list[float] = []

    def plan(self, most: int) -> deque[Event]:
        """The next events, at least `most`."""
        raise NotImplementedError

    def follow(self, followers: Sequence[Follower]) -> None:
        """Who must get the events from now on."""
        self.followers = list(followers)
        self._due = {each.socket.fileno(): (each, deque()) for each in followers}

    def run(self, seconds: float, under_way: int, most: int) -> tuple[list[float], float]:
        """Write for so long (0: all), at most `most`, so many under way at once. Raises Lost.

        Returns ms from each acknowledgement to the last follower, sorted, and the seconds until the last of them.
        """
        plan = self.plan(most)
        self.acked, self.whole, self._latencies = [], [], []
        sockets = [self._socket.socket, *(each.socket for each in self.followers)]
        gc.collect()
        gc.disable()
        try:
            with select.epoll() as epoll:
                for each in sockets:
                    epoll.register(each.fileno(), select.EPOLLIN)
                    each.settimeout(0)  # with a timeout Python would ask the kernel twice
                began = time.perf_counter()
                self._drive(epoll, plan, began + seconds if seconds else float("inf"), under_way)
                took = time.perf_counter() - began
        finally:
            gc.enable()
            for each in sockets:
                each.settimeout(SILENCE_S)
        return sorted(self._latencies), took

    def _drive(self, epoll: select.epoll, plan: deque[Event], end: float, under_way: int) -> None:
        while True:
            while plan and self._under_way < under_way and time.perf_counter() < end:
                self._send(plan.popleft())
            if not self._under_way:
                return
            ready = epoll.poll(SILENCE_S)
            if not ready:
                raise Lost(
                    f"nothing came for {SILENCE_S:.0f} s, and {self._under_way} events are not everywhere"
                )
            for number, _ in ready:
                if number in self._due:
                    self._events(*self._due[number])
                else:
                    self._answers()

    def _send(self, event: Event) -> None:
        self.written += 1
        self._under_way += 1
        self._acks[event.id] = event
        for follower in event.to:
            self._due[follower.socket.fileno()][1].append(event)
        event.sent_at = time.perf_counter()
        self._socket.socket.sendall(event.frame)

    def _answers(self) -> None:
        """Take acknowledgements, and judge each."""
        socket = self._socket
        data = socket.socket.recv(READ_BYTES)
        if not data:
            raise Lost("the writer's connection was closed")
        data, at = socket.rest + data, 0
        while at < len(data):
            start, end = measure(data, at)
            if not end or end > len(data):
                break
            if data[at] == 0x81:
                self._answer(data[start:end])
            else:
                socket.socket.sendall(control(data[at], data[start:end]))
            at = end
        socket.rest = data[at:]

    def _answer(self, text: bytes) -> None:
        id = int(text[len(_ANSWER) : text.index(b",", len(_ANSWER))]) if text.startswith(_ANSWER) else -1
        event = self._acks.pop(id, None)
        if event is None or event.mark not in text:
            raise Lost(f"not the answer that was due: {text!r}")
        event.acked_at = time.perf_counter()
        self.acked.append((event.acked_at - event.sent_at) * 1000)
        if not event.left:
            self._complete(event, event.acked_at)

    def _events(self, follower: Follower, due: deque[Event]) -> None:
        """Take what has come to a follower: exactly what is due there."""
        for text in follower.take():
            if not due or due[0].mark not in text:
                raise Lost(f"not the event that was due: {text[:300]!r}")
            event = due.popleft()
            event.left -= 1
            if not event.left and event.acked_at:
                self._complete(event, time.perf_counter())

    def _complete(self, event: Event, at: float) -> None:
        self._under_way -= 1
        self._latencies.append((at - event.acked_at) * 1000)
        self.whole.append((at - event.sent_at) * 1000)
