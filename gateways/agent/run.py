"""The composition of `turret agent`: the line to the wire, the tools over it, and the process's own pipes.

1. The pipes of the protocol are taken away from everybody else: whatever is printed by mistake goes to standard
   error, where it breaks nothing.
2. The end of the input, a reader that is gone and SIGTERM, SIGINT or SIGHUP all end it in the same way: what is
   under way is cancelled, open calls are hung up, in bounded time.
3. Nothing is logged but to standard error, and no key, no signature and no word of a conversation.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

import trio

from gateways.agent import tools
from gateways.agent.line import Line
from gateways.agent.stdio import Receive, Send, Stdio
from gateways.mcp.dispatch import Dispatch

log = logging.getLogger(__name__)

_SIGNALS: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
_CHUNK: Final = 65_536


async def serve(line: Line, receive: Receive, send: Send) -> None:
    """Serve one client until its input ends; then hang up what is open. Cancelling does the same, bounded."""
    door = Stdio(Dispatch(tools.surface(line)), line.own, receive, send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(line.run)
        await door.serve()
        nursery.cancel_scope.cancel()


async def run(line: Line) -> int:
    """Serve this process's standard input and output. Returns the exit code: 1 where dealing ended by a fault."""
    receive, send = _take_pipes()
    log.info("agent for key %s; %s", line.own, tools.rails_words(line.rails))
    async with trio.open_nursery() as nursery:
        await nursery.start(_watch_signals, nursery.cancel_scope.cancel)
        await serve(line, receive, send)
        nursery.cancel_scope.cancel()
    return 0 if line.ended is None else 1


async def _watch_signals(
    stop: Callable[[], None], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.open_signal_receiver(*_SIGNALS) as signals:
        task_status.started()
        async for number in signals:
            log.info("%s: hanging up", signal.Signals(number).name)
            stop()


def _take_pipes() -> tuple[Receive, Send]:
    """The protocol's ends of standard input and output, for us alone.

    Reads and writes are threads that are left behind on cancelling: a pipe, a file and a terminal all work so, and
    none has to be switched to a mode that whoever shares it would see.
    """
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(sink, view) :]

    async def receive() -> bytes:
        return await trio.to_thread.run_sync(os.read, source, _CHUNK, abandon_on_cancel=True)

    async def send(data: bytes) -> None:
        await trio.to_thread.run_sync(write, data, abandon_on_cancel=True)

    return receive, send
