"""Brokers to be judged: processes of their own on ports that the kernel chooses, ended when the block ends."""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
JUDGES: Final = ("TURRET_JUDGES", "TURRET_A2A_TCK")
READY_S: Final = 30.0
STOP_S: Final = 15.0


@contextmanager
def serving(module: str, **environment: str) -> Iterator[dict[str, Any]]:
    """`python -m MODULE serve …` on a fresh data directory; what it said when it was ready (http, pk, …)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", module, "serve", "--json", "--data", f"{folder}/data",
            "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0",
        ]  # fmt: skip
        with Path(folder, "errors").open("w+b") as errors:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**_outer(), "LC_ALL": "C", **environment},
            )
            try:
                yield _ready(process, Path(folder, "errors"))
                if process.poll() is not None:
                    raise RuntimeError(f"{module} ended by itself: {Path(folder, 'errors').read_text()}")
            finally:
                process.terminate()
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                assert process.stdout is not None
                process.stdout.close()


def _outer() -> dict[str, str]:
    """The environment without what is the judges' own: a broker takes every TURRET_ name for a setting."""
    return {name: value for name, value in os.environ.items() if name not in JUDGES}


def _ready(process: "subprocess.Popen[bytes]", errors: Path) -> dict[str, Any]:
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], READY_S)[0]:
        raise RuntimeError(f"not ready within {READY_S:.0f} s: {errors.read_text()}")
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"did not start: {errors.read_text()}")
    found: dict[str, Any] = json.loads(line)
    return found
