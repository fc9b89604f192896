"""`python -m tests.conformance.websocket`: the Autobahn test suite against both WebSocket ports.

The suite (autobahntestsuite, which needs Python 2.7) plays the client against `turret serve` with an echo in place of
the sessions (echo.py), one case a connection. Compression is not offered, so that its cases are left out. Where no
python2.7 is found nothing is run, and the summary says SKIPPED.

Writes its part of docs/reference/conformance.md. Exits 1 when a case failed, 2 when the suite can't be had.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from tests.conformance.judges import INSTALL_S, Missing, judges_folder
from tests.conformance.page import PAGE, with_websocket
from tests.conformance.servers import serving
from tests.conformance.verdict import Verdict

SUITE: Final = "autobahntestsuite@25.10.1"
LEFT_OUT: Final = ("12.*", "13.*")
"""Cases of permessage-deflate, which we do not offer."""
GOOD: Final = frozenset({"OK", "NON-STRICT", "INFORMATIONAL"})
"""What the suite says of a case that did not fail; the last two are counted apart."""
CASES: Final = 301
"""Of the suite but LEFT_OUT: a run that has fewer has lost some."""
RUN_S: Final = 900.0


def judged(folder: Path | None = None) -> list[Verdict]:
    """One verdict a port; a single one that was skipped where there is no python2.7. Raises Missing."""
    python = python27()
    if python is None:
        return [
            Verdict(judge=SUITE, what="both ports", passed=0, total=0, unit="cases", skipped="no python2.7")
        ]
    place = _installed(python, folder or judges_folder())
    with serving("tests.conformance.echo") as server, tempfile.TemporaryDirectory() as home:
        ports = {
            "dealing port": server["dealing"],
            "public port": f"{server['http'].replace('http', 'ws')}/ws",
        }
        said = _run(python, place, Path(home), ports)
        index = Path(home, "reports", "index.json")
        found = json.loads(index.read_text()) if index.exists() else {}
    return [verdict(port, found.get(port.replace(" ", "-"), {}), said) for port in ports]


def verdict(port: str, cases: Mapping[str, Mapping[str, Any]], said: str = "") -> Verdict:
    """What the suite found at a port: case → behavior, behaviorClose. `said`: its output, for where it found little."""
    faults = [
        f"{case}: {each['behavior']}, close {each['behaviorClose']}"
        for case, each in sorted(cases.items())
        if not {each["behavior"], each["behaviorClose"]} <= GOOD
    ]
    apart = Counter(each["behavior"] for each in cases.values() if each["behavior"] != "OK")
    remarks = [
        f"{name}: " + ", ".join(sorted(case for case, each in cases.items() if each["behavior"] == name))
        for name in ("NON-STRICT", "INFORMATIONAL")
        if apart[name]
    ]
    if len(cases) < CASES:
        faults.append(f"{len(cases)} of {CASES} cases ran: {said[-1500:]}")
    return Verdict(
        judge=SUITE,
        what=f"{port}: all cases but {', '.join(LEFT_OUT)}",
        passed=sum(not set(each.values()) - GOOD for each in map(_judged, cases.values())),
        total=max(len(cases), CASES),
        unit="cases",
        remarks=tuple(remarks),
        faults=tuple(faults),
    )


def _judged(case: Mapping[str, Any]) -> dict[str, str]:
    return {name: case[name] for name in ("behavior", "behaviorClose")}


def python27() -> str | None:
    """A Python 2.7 that runs; also behind a version manager's stand-in that is not set to one."""
    for name in (os.environ.get("TURRET_PYTHON27"), shutil.which("python2.7"), _managed()):
        if name and _answers(name):
            return name
    return None


def _answers(program: str) -> bool:
    command = [program, "-c", "import sys, pip; sys.exit(sys.version_info[:2] != (2, 7))"]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _managed() -> str | None:
    manager = shutil.which("pyenv")
    if manager is None:
        return None
    command = [manager, "whence", "--path", "python2.7"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout.split()
    return found[-1] if found else None


def _installed(python: str, folder: Path) -> Path:
    """The suite's folder, beside the other judges'."""
    place = folder / SUITE
    if (place / "done").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    print(f"installing {SUITE}", flush=True)
    command = [python, "-m", "pip", "install", "-q", "--target", str(place), SUITE.replace("@", "==")]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False, stdin=subprocess.DEVNULL
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise Missing(f"{SUITE} could not be installed: {error}") from None
    if ran.returncode:
        raise Missing(f"{SUITE} could not be installed: {(ran.stderr.splitlines() or ['?'])[-1]}")
    (place / "done").touch()
    return place


def _run(python: str, place: Path, home: Path, ports: Mapping[str, str]) -> str:
    """Run the suite; its reports are in `reports`. What it said."""
    spec = {
        "outdir": str(home / "reports"),
        "servers": [{"agent": name.replace(" ", "-"), "url": url} for name, url in ports.items()],
        "cases": ["*"],
        "exclude-cases": list(LEFT_OUT),
        "exclude-agent-cases": {},
    }
    (home / "spec.json").write_text(json.dumps(spec))
    program = (
        f"import site, sys; site.addsitedir({str(place)!r}); from autobahntestsuite.wstest import run; run()"
    )
    command = [python, "-c", program, "-m", "fuzzingclient", "-s", str(home / "spec.json")]
    try:
        ran = subprocess.run(
            command,
            cwd=home,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {RUN_S:.0f} s"
    return ran.stdout + ran.stderr


def main(target: Path = PAGE) -> int:
    """Run it, tell of each port, write this judge's part of the page."""
    try:
        verdicts = judged()
    except Missing as error:
        print(f"turret: {error}", file=sys.stderr)
        return 2
    for each in verdicts:
        each.tell()
    target.write_text(with_websocket(target.read_text(), verdicts, date.today()))
    return 0 if all(each.good for each in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
