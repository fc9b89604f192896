"""The official clients and the Inspector against a broker as it is served: whole deals, and lists under --strict."""

import json
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

import anyio

from tests.conformance import python_client
from tests.conformance.deal import plan
from tests.conformance.judges import CLIENT_V1, CLIENT_V2, INSPECTOR, Judges
from tests.conformance.verdict import Verdict

RUN_S: Final = 60.0
MODERN: Final = "2026-07-28"
SCRIPTS: Final = Path(__file__).parent / "typescript"
FACES: Final = ("/mcp", "/mcp/wire")


def inspector(judges: Judges, origin: str) -> Verdict:
    """tools/list of each face in each era, every schema judged for portability; a warning is a fault."""
    faults: list[str] = []
    passed = 0
    runs = [(face, era) for face in FACES for era in ("legacy", "auto", "modern")]
    program = str(next(judges.at(INSPECTOR).parents[1].glob(".bin/mcp-inspector")))
    for face, era in runs:
        with tempfile.TemporaryDirectory() as home:  # it keeps its settings there
            command = [
                judges.node, program, "--cli", "--server-url", origin + face, "--transport", "http",
                "--protocol-era", era, "--method", "tools/list", "--format", "json", "-q", "--strict",
            ]  # fmt: skip
            code, out, said = _node(command, home)
        listed = len(json.loads(out)["result"]["tools"]) if code == 0 and out else 0
        warned = re.search(r"(\d+) errors?, (\d+) warnings?", said)
        if code != 0 or not listed or (warned is not None and warned.groups() != ("0", "0")):
            faults.append(f"{face} {era}: exit {code}: {said[-1500:]}")
        else:
            passed += 1
    return Verdict(
        judge=INSPECTOR,
        what="tools/list --strict: " + ", ".join(FACES) + "; legacy, auto, modern",
        passed=passed,
        total=len(runs),
        unit="lists",
        faults=tuple(faults),
    )


def typescript(judges: Judges, origin: str, wire: str) -> list[Verdict]:
    """Both generations of the TypeScript client, each in each of its modes."""
    return [
        _deals(judges, origin, wire, CLIENT_V1, "v1.mjs", ["legacy"]),
        _deals(judges, origin, wire, CLIENT_V2, "v2.mjs", ["legacy", "auto", MODERN]),
    ]


def _deals(judges: Judges, origin: str, wire: str, package: str, script: str, modes: list[str]) -> Verdict:
    faults: list[str] = []
    revisions: list[str] = []
    scripts = judges.at(package).parents[2] / "scripts"  # beside node_modules, where its imports are found
    shutil.copytree(SCRIPTS, scripts, dirs_exist_ok=True)
    for mode in modes:
        with tempfile.TemporaryDirectory() as home:
            task = Path(home, "plan.json")
            task.write_text(json.dumps(plan(wire)))
            command = [judges.node, str(scripts / script), f"{origin}/mcp", mode, str(task)]
            code, out, said = _node(command, home)
        if code == 0:
            revisions.append(f"{mode}: {json.loads(out.splitlines()[-1])['revision']}")
        else:
            faults.append(f"{mode}: exit {code}: {said[-1500:]}")
    return Verdict(
        judge=package,
        what="a whole deal: " + ", ".join(modes),
        passed=len(revisions),
        total=len(modes),
        unit="deals",
        faults=tuple(faults),
    )


def _node(command: list[str], home: str) -> tuple[int, str, str]:
    """Exit code, what it printed, what it said on stderr."""
    try:
        ran = subprocess.run(
            command,
            env={"HOME": home, "PATH": str(Path(command[0]).parent)},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return -1, "", f"not done within {RUN_S:.0f} s"
    return ran.returncode, ran.stdout, ran.stderr


def python(origin: str, wire: str) -> Verdict:
    """The Python client on both of its event loops, in each of its modes."""
    faults: list[str] = []
    runs = [(backend, mode) for backend in ("asyncio", "trio") for mode in ("legacy", "auto", MODERN)]
    for backend, mode in runs:
        try:
            anyio.run(python_client.deal, f"{origin}/mcp", mode, plan(wire), backend=backend)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            faults.append(f"{backend} {mode}: {python_client.reason(error)}")
    return Verdict(
        judge=f"mcp@{version('mcp')} (Python)",
        what="a whole deal: legacy, auto, 2026-07-28; on asyncio and on Trio",
        passed=len(runs) - len(faults),
        total=len(runs),
        unit="deals",
        faults=tuple(faults),
    )
