"""A broker process is stopped, killed and started again under a call: nothing is lost, nothing is said twice."""

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.call import Call
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from gateways.demo.processes import Child, child


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Restartable:
    """A broker at the same addresses and with the same store each time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.http, self.dealing = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.wire = ""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Child]:
        binds = ["--bind", self.http, "--dealing-bind", self.dealing]
        data = ["--data", str(self.directory / "data")]
        async with child(
            "broker", ["-m", "gateways.cli", "serve", "--json", *data, *binds], self.directory
        ) as broker:
            self.wire = str((await broker.expect("ready", 20))["pk"])
            yield broker

    def url(self, door: str) -> str:
        return f"ws://{self.dealing}" if door == "dealing" else f"http://{self.http}/mcp"


async def echo(desk: Desk) -> None:
    """Answer every envelope of one call."""
    async with (await desk.next_ring()).answer() as call:
        async for envelope in call:
            await call.send("PONG", {"n": envelope.n})


async def rally(call: Call, rounds: int) -> None:
    for _ in range(rounds):
        n = call.transcript.next_n
        await call.send("PING", {"n": n})
        while (await call.receive()).body != {"n": n}:
            pass  # an answer to what was cut short


@pytest.mark.requirement("client.resume", "client.same-bytes")
@pytest.mark.parametrize(
    ("door", "how"),
    [("dealing", signal.SIGTERM), ("mcp", signal.SIGKILL)],
    ids=["dealing port, stopped", "MCP, killed"],
)
async def test_a_call_goes_on_over_a_restart(tmp_path: Path, door: str, how: signal.Signals) -> None:
    broker = Restartable(tmp_path)
    with trio.fail_after(50):
        async with trio.open_nursery() as nursery:
            async with broker.run() as first:
                brav = connect(broker.url(door), SigningKey.generate(), broker.wire)
                alfa = connect(broker.url("dealing"), SigningKey.generate(), broker.wire)
                stack = trio.CancelScope()

                async def deal(task_status: trio.TaskStatus[Call]) -> None:
                    with stack:
                        async with brav as callee, alfa as caller, trio.open_nursery() as inner:
                            await callee.open("BRAV")
                            await caller.open("ALFA")
                            inner.start_soon(echo, callee)
                            async with caller.dial("BRAV") as call:
                                task_status.started(call)
                                await trio.sleep_forever()

                call: Call = await nursery.start(deal)
                await rally(call, 3)
                first.process.send_signal(how)
                with trio.move_on_after(0.05):  # in the middle of it
                    await rally(call, 50)
            async with broker.run():
                await call.settle()
                while not call.my_turn:
                    await call.receive()
                await rally(call, 3)
                stack.cancel()
    numbers = [row.envelope.n for row in call.transcript.rows]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 2 + 12
