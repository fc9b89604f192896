"""The requests of one connection that are under way: how many, in what order, and who runs them.

1. Requests run side by side, but for those of one line: each of these begins when the one before it has ended.
2. Their number is bounded: who reads the connection waits for room before it begins another.
3. Most envelopes need no task: `begin` starts them, and says later that they have ended. The others are run.
4. Whoever runs a request contains its faults; here an exception is a fault of our own and goes up.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import trio

from broker.app import Caller
from gateways import jsonrpc
from gateways.jsonrpc import Request
from gateways.quick import Started

IN_FLIGHT: Final = 64
"""Requests of one connection under way at once; beyond it nothing more is read (back-pressure)."""
PARKED: Final = 2
"""Tasks that wait for a connection's next requests, however busy it was: 2 KiB each, beside an idle socket's 28."""
ORDERED: Final = frozenset({"send_call", "send_env", "send_channel_message", "send_direct_message"})
"""Methods whose requests of one conversation, in one channel, or to one agent make a line (wire.md, WebSocket: sent
without waiting)."""

Run = Callable[[Request, Caller], Awaitable[None]]


class _Quoted(msgspec.Struct):
    conv: str | None = None


class _Named(msgspec.Struct):
    conv: str | None = None
    envelope: _Quoted | None = None
    channel_id: str | None = None
    recipient_agent_id: str | None = None


_named: Final = msgspec.json.Decoder(_Named).decode


def line_of(request: Request) -> str | None:
    """The line of a request: its conversation, channel or recipient, where it sends; None: it has none, or names none.

    Costs half a microsecond. What is malformed stands in no line: it will be refused whatever comes before it.
    """
    if request.method not in ORDERED:
        return None
    try:
        named = _named(request.params)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    conv = named.conv or (named.envelope.conv if named.envelope is not None else None)
    return conv or named.channel_id or named.recipient_agent_id


def whole(request: Request | Started) -> Request:
    """The request as the strict way reads it."""
    if isinstance(request, Request):
        return request
    read = jsonrpc.read(request.frame)
    assert isinstance(read, Request)  # the quick way takes nothing else
    return read


class Job(msgspec.Struct):
    """A request under way: as it was read, or as it may start without a task."""

    request: Request | Started
    caller: Caller
    line: str | None


Begin = Callable[[Job, Started], bool]
"""Starts a request without a task. True: `ended` or `hire` is called for it, once. False: it has to be run."""


class Underway:
    """The requests of one connection. `run` does one and puts its answer; `nursery` is the connection's own."""

    def __init__(self, nursery: trio.Nursery, run: Run, begin: Begin | None = None) -> None:
        self.count = 0
        """How many are under way, those that wait in a line among them."""
        self._nursery = nursery
        self._run = run
        self._begin = begin
        self._queue: deque[Job] = deque()
        """What the next free worker takes."""
        self._lines: dict[str, deque[Job] | None] = {}
        """Line → what waits in it behind the one that runs, if anything ever has."""
        self._next: deque[Job] = deque()
        """What has come to the head of its line."""
        self._starting = False
        self._parked: list[trio.lowlevel.Task] = []
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def full(self) -> bool:
        """Whether one more has to wait (`wait_room`)."""
        return self.count >= IN_FLIGHT

    async def wait_room(self) -> None:
        """Wait until one more may begin. Cancelling is safe."""
        while self.count >= IN_FLIGHT:
            await self._lot.park()

    async def wait_none(self) -> None:
        """Wait until none is under way. Cancelling is safe."""
        while self.count:
            await self._lot.park()

    def begin(self, request: Request | Started, caller: Caller) -> None:
        """Have a request run, as `caller` asks it now: at once, or after those before it in its line."""
        self.count += 1
        line = request.arguments.conv if isinstance(request, Started) else line_of(request)
        job = Job(request, caller, line)
        if line is not None:
            if line in self._lines:
                waiting = self._lines[line]
                if waiting is None:
                    waiting = self._lines[line] = deque()
                waiting.append(job)
                return
            self._lines[line] = None
        self._start(job)

    def _start(self, job: Job) -> None:
        request = job.request
        if not isinstance(request, Started) or self._begin is None or not self._begin(job, request):
            self.hire(job)

    def hire(self, job: Job) -> None:
        """Have one of the workers take it. A parked one costs half of a new task."""
        self._queue.append(job)
        if self._parked:
            trio.lowlevel.reschedule(self._parked.pop())
        else:
            self._nursery.start_soon(self._work)

    async def _work(self) -> None:
        """Run requests while there are any, then park, unless enough others have."""
        queue, parked = self._queue, self._parked
        me = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            parked.remove(me)
            return trio.lowlevel.Abort.SUCCEEDED

        while True:
            while queue:
                job = queue.popleft()
                try:
                    await self._run(whole(job.request), job.caller)
                finally:
                    self.ended(job)
            if len(parked) >= PARKED:
                return
            parked.append(me)
            await trio.lowlevel.wait_task_rescheduled(abort)

    def ended(self, job: Job) -> None:
        """A request was answered: the next one of its line may start."""
        self.count -= 1
        if self._lot:
            self._lot.unpark_all()
        if job.line is None:
            return
        waiting = self._lines[job.line]
        if not waiting:
            del self._lines[job.line]
            return
        self._next.append(waiting.popleft())
        if self._starting:  # it ended while it was started: the loop below goes on, not one call deeper
            return
        self._starting = True
        try:
            while self._next:
                self._start(self._next.popleft())
        finally:
            self._starting = False
