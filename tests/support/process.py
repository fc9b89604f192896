"""A real broker process on a data directory: start, talk, kill, start again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio


class Served:
    """A `turret serve` process that said that it is ready."""

    def __init__(self, process: trio.Process, ready: dict[str, Any], errors: Path) -> None:
        self.process = process
        self.http: str = ready["http"]
        self.dealing: str = ready["dealing"]
        self.pk: str = ready["pk"]
        self.ready = ready
        self.errors = errors

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        self.process.kill()

    async def stop(self, seconds: float = 12.0) -> int:
        """SIGTERM, then wait for the end; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        with trio.fail_after(seconds):
            return await self.process.wait()


@asynccontextmanager
async def served(
    data: Path,
    *flags: str,
    environment: dict[str, str] | None = None,
    ready_s: float = 20.0,
    program: str = "gateways.cli",
    inside: Sequence[str] = (),
) -> AsyncIterator[Served]:
    """Start a broker on `data` with ports that the kernel chooses; it is killed when the block ends.

    `program`: another module with the same command line. `inside`: a command that runs the one after it.
    """
    errors = data.parent / f"{data.name}.err"
    command: Sequence[str] = [
        *inside, sys.executable, "-m", program, "serve", "--json", "--data", str(data),
        "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0", *flags,
    ]  # fmt: skip
    given = {
        "TURRET_ACTORS_LATE_S": "60",
        **(environment or {}),
    }  # standing still for a moment is no overload
    with errors.open("ab") as log:
        process = await trio.lowlevel.open_process(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **given},
        )
    try:
        with trio.fail_after(ready_s):
            line = b""
            assert process.stdout is not None
            while not line.endswith(b"\n"):
                piece = await process.stdout.receive_some(4096)
                assert piece, errors.read_text()
                line += piece
        yield Served(process, json.loads(line), errors)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            if process.stdout is not None:
                await process.stdout.aclose()
