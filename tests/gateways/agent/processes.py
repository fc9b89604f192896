"""`turret agent` as processes beside a `turret serve` process, with the official client or bare pipes in front."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import trio
from mcp import types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from broker.wire.keys import SigningKey
from gateways.keyfile import save_key
from tests.support.process import Served, served

ROOT = Path(__file__).parents[3]
QUIET = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


class Party:
    """A key on disk and the command line of its agent."""

    def __init__(self, directory: Path, broker: Served | None, code: str) -> None:
        """`broker`: None for an address where nobody listens."""
        self.key = SigningKey.generate()
        self.code = code
        self.errors = directory / f"{code}.err"
        path = directory / f"{code}.key"
        save_key(path, self.key)
        self.command = [sys.executable, "-m", "gateways.cli", "agent", "--key", str(path), "--code", code]
        url, wire = (broker.http, broker.pk) if broker is not None else ("http://127.0.0.1:1", "00" * 32)
        self.command += ["--url", url, "--wire", wire]
        self.environment = {**QUIET, "XDG_CONFIG_HOME": str(directory)}


class Model:
    """The official client in front of an agent. `user`: what its user answers when asked; None: it can't ask."""

    def __init__(self, client: Client, asked: list[str]) -> None:
        self._client = client
        self.asked = asked

    async def ask(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
        """isError and structuredContent."""
        result = await self._client.call_tool(tool, arguments)
        assert result.structured_content is not None
        return bool(result.is_error), dict(result.structured_content)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A result, which must not be an error."""
        failed, value = await self.ask(tool, arguments)
        assert not failed, value
        return value

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The refusal of a tool that must refuse."""
        failed, value = await self.ask(tool, arguments)
        assert failed, value
        refusal: dict[str, Any] = value["refusal"]
        return refusal


@asynccontextmanager
async def model_at(
    party: Party, mode: str, *flags: str, user: list[str] | None = None
) -> AsyncIterator[Model]:
    """A model at the party's agent. `user`: what the user does each time when asked; None: no user."""
    asked: list[str] = []

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        assert user is not None
        return types.ElicitResult(action=user[len(asked) - 1], content=None)  # type: ignore[arg-type]  # a literal

    command, *arguments = [*party.command, *flags]
    server = StdioServerParameters(command=command, args=arguments, env=party.environment)
    with party.errors.open("w") as errors:
        transport = stdio_client(server, errlog=errors)
        callback = elicit if user is not None else None
        async with Client(transport, mode=mode, elicitation_callback=callback) as client:
            yield Model(client, asked)


@asynccontextmanager
async def broker_process(directory: Path) -> AsyncIterator[Served]:
    """A broker on an empty directory."""
    async with served(directory / "data", environment={"PYTHONPATH": str(ROOT)}) as broker:
        yield broker


class Bare:
    """An agent process with nothing but pipes in front. `out`: all that it wrote, `errors`: what it logged."""

    def __init__(self, process: trio.Process, errors: Path) -> None:
        self.process = process
        self._errors = errors
        self.out = b""
        self._id = 0

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(data)

    async def line(self) -> Any:
        """The next message."""
        assert self.process.stdout is not None
        taken = self.out.count(b"\n")
        while self.out.count(b"\n") == taken:
            data = await self.process.stdout.receive_some(1)
            assert data, self.errors
            self.out += data
        return msgspec.json.decode(self.out.splitlines()[-1])

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A tool's structuredContent."""
        self._id += 1
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": self._id, "method": "tools/call", "params": params}
        await self.write(msgspec.json.encode(request) + b"\n")
        answer = await self.line()
        assert answer["id"] == self._id
        value: dict[str, Any] = answer["result"]["structuredContent"]
        return value

    async def close(self) -> int:
        """End its input, read the rest of its output; returns the exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        await self.process.stdin.aclose()
        while data := await self.process.stdout.receive_some():
            self.out += data
        return await self.process.wait()

    async def signal(self, number: signal.Signals) -> int:
        """Send a signal, with its input still open; returns the exit code."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        while data := await self.process.stdout.receive_some():
            self.out += data
        return await self.process.wait()


@asynccontextmanager
async def bare_agent(party: Party, *flags: str) -> AsyncIterator[Bare]:
    """An agent process; killed when the block ends."""
    with party.errors.open("w") as errors:
        process = await trio.lowlevel.open_process(
            [*party.command, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **party.environment},
        )
    try:
        yield Bare(process, party.errors)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    await pipe.aclose()
