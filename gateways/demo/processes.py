"""Child processes that end with their parent's block, however it is left.

1. Only what was started here is ever ended, by its own handle.
2. A child is asked first (SIGTERM), and killed when it does not go in GRACE_S.
3. What a child says on standard error is kept in a file, for the person who must find out why.
"""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

GRACE_S: Final = 12.0
"""Seconds between asking and killing; a broker stops within 10 (wire.md, Streams)."""
_MAX_LINE: Final = 1024 * 1024


class ChildFailed(Exception):
    """A child ended, or was silent, where it should not; the message has its last words."""


class Child:
    """A running child. Its standard output is read as JSON lines."""

    def __init__(self, name: str, process: trio.Process, log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self._rest = b""

    async def read_line(self) -> dict[str, Any] | None:
        """The next JSON line; None at the end of its output. Cancelling may lose a part of a line."""
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            data = await self.process.stdout.receive_some(65_536)
            if not data or len(self._rest) > _MAX_LINE:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise self.failed("said what is no JSON") from None

    async def expect(self, member: str, seconds: float) -> dict[str, Any]:
        """The next line, which must have this member. Raises ChildFailed."""
        with trio.move_on_after(seconds):
            line = await self.read_line()
            if line is None or member not in line:
                await self.process.wait()
                raise self.failed(f"ended with exit code {self.process.returncode}")
            return line
        raise self.failed(f"said nothing in {seconds:g} s")

    async def finish(self, seconds: float) -> None:
        """Wait for its end. Raises ChildFailed where it is not a good one."""
        with trio.move_on_after(seconds):
            if (code := await self.process.wait()) != 0:
                raise self.failed(f"ended with exit code {code}")
            return
        raise self.failed(f"was still running after {seconds:g} s")

    def failed(self, what: str) -> ChildFailed:
        words = self.log.read_text(errors="replace").strip().splitlines()[-8:] if self.log.exists() else []
        return ChildFailed("\n".join([f"{self.name} {what}", *(f"  {word}" for word in words)]))


@asynccontextmanager
async def child(name: str, arguments: Sequence[str], directory: Path) -> AsyncIterator[Child]:
    """Run `python <arguments>` while the block runs; leaving it ends the child and waits for that.

    Its standard input stays open as long as we live, so that a child can see that we are gone.
    """
    log = directory / f"{name}.log"
    with log.open("wb") as errors:
        process = await trio.lowlevel.open_process(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield Child(name, process, log)
    finally:
        with trio.CancelScope(shield=True):
            await _end(process)


async def _end(process: trio.Process) -> None:
    if process.stdin is not None:
        await process.stdin.aclose()
    if process.poll() is None:
        process.terminate()
        with trio.move_on_after(GRACE_S):
            await process.wait()
    if process.poll() is None:
        process.kill()
        await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()
