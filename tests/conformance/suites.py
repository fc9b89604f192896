"""The official conformance suites, run whole; their checks are read from what they write, warnings included."""

import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tests.conformance.judges import NEWEST, STABLE, Judges
from tests.conformance.verdict import Verdict

RUN_S: Final = 240.0
EXTENSIONS: Final = re.compile(r"tasks-|sep-2640-")
"""Scenarios of extensions of the protocol that we do not offer: run, told of, not scored."""
_STAMP: Final = re.compile(r"^(?:authorization-server|server)-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$")


def requirements(judges: Judges, url: str, revision: str) -> Verdict:
    """The frozen requirements of a revision, at that revision's wire; what runs beside them counts for us too."""
    text = judges.at(NEWEST, "requirements", f"{revision}.yaml").read_text()
    section = text.partition("\nserver:\n")[2]
    required = re.match(r"(?:  - \S+\n)+", section)
    assert required is not None, "the judge's own list of requirements has another form now"
    return _run(judges, NEWEST, url, ["--requirements", revision], required[0].split()[1::2])


def everything(judges: Judges, url: str) -> Verdict:
    """The suite that was current before 2026-07-28, with what it holds pending."""
    return _run(judges, STABLE, url, ["--suite", "all"])


def earlier(judges: Judges, url: str, revision: str) -> Verdict:
    """What the newest suite has for an earlier revision; it freezes no requirements for these."""
    return _run(judges, NEWEST, url, ["--suite", "all", "--spec-version", revision])


def _run(
    judges: Judges, package: str, url: str, options: list[str], required: list[str] | None = None
) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        command = [judges.node, str(judges.at(package, "dist", "index.js")), "server", "--url", url, *options]
        try:
            ran = subprocess.run(
                [*command, "-o", folder],
                capture_output=True,
                text=True,
                timeout=RUN_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return _failed(package, options, f"not done within {RUN_S:.0f} s")
        found = read_checks(Path(folder))
    if not found:
        return _failed(package, options, (ran.stdout + ran.stderr)[-2000:])
    return judge(package, options, found, required)


def read_checks(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Scenario → its checks."""
    found = {}
    for path in sorted(folder.rglob("checks.json")):
        named = _STAMP.match(path.parent.name)
        found[named[1] if named else path.parent.name] = json.loads(path.read_text())
    return found


def judge(
    package: str, options: list[str], found: dict[str, list[dict[str, str]]], required: list[str] | None
) -> Verdict:
    """`required`: those that the judge itself scores; of the others all that ran count."""
    checks = warnings = passed = 0
    faults = [f"{name}: did not run" for name in required or () if name not in found]
    remarks: list[str] = []
    beside: list[str] = []
    scored = set(required) if required is not None else set()
    skipped = Counter(name.partition("-")[0] for name in found if EXTENSIONS.match(name))
    for name, results in found.items():
        if EXTENSIONS.match(name):
            continue
        statuses = Counter(each["status"] for each in results)
        wrong = [each for each in results if each["status"] in ("FAILURE", "WARNING")]
        faults += [f"{name}: {each['status']} {each['id']}: {each.get('errorMessage')}" for each in wrong]
        checks += statuses["SUCCESS"]
        warnings += statuses["WARNING"]
        if not wrong and not statuses["SUCCESS"]:
            remarks.append(f"{name}: nothing to judge")
        elif required is None:
            scored.add(name)
        if statuses["SUCCESS"] and not wrong:
            if name in scored:
                passed += 1
            else:
                beside.append(name)
        if statuses["SKIPPED"]:
            remarks.append(f"{name}: {statuses['SKIPPED']} of its checks did not apply")
    if beside:
        remarks.append(f"not scored by the judge and passed: {', '.join(beside)}")
    for kind, count in skipped.items():
        remarks.append(f"{count} scenarios of the {kind} extension: not offered, not scored")
    return Verdict(
        judge=package,
        what=" ".join(options),
        passed=passed,
        total=len(scored),
        checks=checks,
        warnings=warnings,
        remarks=tuple(remarks),
        faults=tuple(faults),
    )


def _failed(package: str, options: list[str], why: str) -> Verdict:
    return Verdict(judge=package, what=" ".join(options), passed=0, total=0, faults=(why,))
