"""Servers as processes of their own: started, read for their addresses, always stopped.

`running` starts any server that prints one line of JSON when it is ready; `turret` starts `turret serve` with the
limits out of the way, on ports that the kernel chooses, in a directory of its own on a disk.
"""

import json
import os
import resource
import select
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.kit.machine import disk_directory

ROOT: Final = Path(__file__).parents[2]
READY_S: Final = 60.0
STOP_S: Final = 15.0
LATE_S: Final = 60.0
"""actors.late_s of a measured broker: a neighbour that takes the core for a moment is no overload."""


class Server(msgspec.Struct, frozen=True):
    """A running server: its process, and what it said when it was ready."""

    pid: int
    ready: Mapping[str, Any]


class Broker(msgspec.Struct, frozen=True):
    """A running `turret serve`. `http` http://…, `dealing` ws://…, `pk` the wire's key, `data` its directory."""

    pid: int
    http: str
    dealing: str
    pk: str
    data: Path

    @property
    def ws(self) -> str:
        """The public port's WebSocket."""
        return f"ws{self.http.removeprefix('http')}/ws"

    def metrics(self) -> str:
        """What GET /metrics says now."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, ready_s: float = READY_S
) -> Iterator[Server]:
    """`python -m COMMAND` for the length of the block; SIGTERM at its end, SIGKILL after STOP_S.

    Raises RuntimeError, with the end of its stderr, where it does not start in `ready_s` or ends by itself.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        try:
            ready = select.select([process.stdout], [], [], ready_s)[0]
            line = process.stdout.readline() if ready else b""
            if line:
                yield Server(process.pid, json.loads(line))
            if not line or process.poll() is not None:
                errors.seek(0)
                raise RuntimeError(f"{shlex.join(command)} did not run: {errors.read().decode()[-2000:]}")
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


@contextmanager
def turret(
    data: Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    helpers: int | None = None,
    unsafe_limits: bool = True,
    ready_s: float = READY_S,
) -> Iterator[Broker]:
    """A broker for the length of the block, on `data` or in a new directory that is removed with it.

    `settings`: as in the file, dotted: {"actors.idle_s": 5}. `helpers`: the setting verify.helpers. Raises
    RuntimeError as `running` does, also where the broker does not know a setting.
    """
    raise_open_files()
    given = {
        "actors.late_s": LATE_S,
        **(settings or {}),
        **({} if helpers is None else {"verify.helpers": helpers}),
    }
    environment = {f"TURRET_{name.replace('.', '_')}".upper(): str(value) for name, value in given.items()}
    with tempfile.TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as temporary:
        home = data if data is not None else Path(temporary, "data")
        command = [
            "gateways.cli", "serve", "--json", "--data", str(home),
            "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0",
        ]  # fmt: skip
        if unsafe_limits:
            command.append("--unsafe-limits")
            environment["TURRET_BENCH"] = "1"
        with running(command, environment, ready_s=ready_s) as server:
            said = server.ready
            yield Broker(server.pid, said["http"], said["dealing"], said["pk"], home)


def raise_open_files() -> int:
    """Let this process, and those that it starts, open as many files as the system allows; that number."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
