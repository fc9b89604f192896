"""The judges of A2A against this broker: its compatibility kit (TCK), and the official Python client.

Both are Python with many dependencies of their own, so each is in an environment of its own in the judges' folder. The
TCK is on no registry of packages: it is taken from its repository, or from where TURRET_A2A_TCK says (a folder with a
clone). Where it can't be had the run says so and goes on.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as tree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.conformance.a2a_proxy import Proxy, proxy
from tests.conformance.judges import INSTALL_S, Missing, judges_folder
from tests.conformance.servers import ROOT, serving
from tests.conformance.verdict import Verdict

SDK: Final = "a2a-sdk==1.3.0"
TCK: Final = "https://github.com/a2aproject/a2a-tck"
COMMIT: Final = "357c4a87afa2818731590647cccbea31c31733a2"
RUN_S: Final = 300.0
TOKEN: Final = "operators-token-of-the-judges-0123456789abcdef"  # of a broker that lives for this run
CLIENT: Final = Path(__file__).parent / "a2a_client.py"
APART: Final = {
    "TestMessageResponse": "a message is always a task here: what its target says is never lost with a connection",
    "TestAgentCardLastModified": "it may be left out: a card has an ETag, and nobody keeps when an agent last changed",
}
"""Tests of the TCK that are run and not scored, by a part of their names, and why (docs/decisions/0029)."""


def verdicts() -> Iterator[Verdict]:
    """Both of them, each as it is done, on a broker of its own."""
    with served() as (front, agent_id):
        yield client(f"{front.upstream}/a2a/{agent_id}", front.token)
        url = f"{front.url}/a2a/{agent_id}"
        for level in ("must", "should", "may"):
            yield kit(url, level)


@contextmanager
def served() -> Iterator[tuple[Proxy, str]]:
    """A broker with two agents that have agreed, one of which answers; a proxy that signs in as the other one."""
    settings = {
        "TURRET_OPERATOR_BIND": "127.0.0.1:0",
        "TURRET_OPERATOR_TOKEN": TOKEN,
        "TURRET_WEBHOOKS_ALLOW_LOOPBACK": "true",
        "TURRET_NETWORK_LOOP_MESSAGES": "100000",
    }
    with proxy() as front, serving("gateways.cli", **settings) as broker:
        front.upstream = broker["http"]
        command = [
            sys.executable, "-m", "tests.conformance.a2a_parties", broker["http"], broker["operator"],
        ]  # fmt: skip
        parties = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "TURRET_OPERATOR_TOKEN": TOKEN}
        )
        try:
            assert parties.stdout is not None
            told: dict[str, Any] = json.loads(parties.stdout.readline())
            front.token = told["token"]
            yield front, told["agent_id"]
        finally:
            parties.terminate()
            parties.wait()
            assert parties.stdout is not None
            parties.stdout.close()


def client(url: str, token: str) -> Verdict:
    """The official client, signed in: tasks that are answered, streams, a cancelled task, push configurations."""
    try:
        python = _environment("a2a-sdk", [SDK, "httpx"])
    except Missing as error:
        return Verdict(judge=SDK, what="client", passed=0, total=0, skipped=str(error))
    ran = _run([str(python), str(CLIENT), url], CLIENT.parent, A2A_TOKEN=token)
    passed = ran.stdout.count("ok ")
    faults = () if ran.returncode == 0 else ((ran.stdout + ran.stderr)[-2000:],)
    return Verdict(
        judge=SDK, what="client", passed=passed, total=passed + len(faults), unit="steps", faults=faults
    )


def kit(url: str, level: str) -> Verdict:
    """The TCK's requirements of a level, over JSON-RPC. Of those that it calls SHOULD and MAY none fails a run."""
    name = f"a2a-tck@{COMMIT[:7]}"
    try:
        source = _source()
        python = _environment("a2a-tck", [str(source)])
    except Missing as error:
        return Verdict(judge=name, what=level.upper(), passed=0, total=0, skipped=str(error))
    report = source / f"{level}.xml"
    command = [
        str(python), "-m", "pytest", "tests/compatibility", f"--sut-host={url}", "--transport=jsonrpc", "-m", level,
        "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
    ]  # fmt: skip
    ran = _run(command, source)
    if not report.exists():
        return Verdict(
            judge=name, what=level.upper(), passed=0, total=0, faults=((ran.stdout + ran.stderr)[-2000:],)
        )
    return judge(name, level.upper(), report.read_text())


def judge(name: str, what: str, report: str) -> Verdict:
    """What the TCK wrote down: what it skipped is not scored, nor what stands in APART."""
    passed, skipped = 0, 0
    faults: list[str] = []
    remarks: list[str] = []
    for case in tree.fromstring(report).iter("testcase"):  # our own judge's
        title = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        if case.find("skipped") is not None:
            skipped += 1
        elif wrong is None:
            passed += 1
        else:
            why = next((why for part, why in APART.items() if part in title), None)
            said = " ".join((wrong.get("message") or "").split())
            if why is not None:
                remarks.append(f"{title}: not scored: {why}")
            else:
                faults.append(f"{title}: {re.sub(r' +', ' ', said)[:300]}")
    remarks.append(f"{skipped} tests of other transports and of what the card does not offer were skipped")
    return Verdict(
        judge=name, what=what, passed=passed, total=passed + len(faults), unit="tests", remarks=tuple(remarks),
        faults=tuple(faults),
    )  # fmt: skip


def _environment(name: str, packages: list[str]) -> Path:
    """The Python of an environment with these packages. Raises Missing."""
    place = judges_folder() / name
    python = place / "bin" / "python"
    if not (place / "done").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        print(f"installing {name}", flush=True)
        try:
            for command in (
                [sys.executable, "-m", "venv", str(place)],
                [str(python), "-m", "pip", "install", "-q", *packages],
            ):
                subprocess.run(command, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
        except (subprocess.SubprocessError, OSError) as error:
            raise Missing(f"{name} could not be installed: {error}") from None
        (place / "done").touch()
    return python


def _source() -> Path:
    """The TCK's tree at COMMIT. Raises Missing."""
    place = judges_folder() / f"a2a-tck-{COMMIT[:12]}"
    if (place / "done").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    origin = os.environ.get("TURRET_A2A_TCK") or TCK
    git = ["git", "-C", str(place)]
    try:
        for command in (
            [*git, "init", "-q"],
            [*git, "fetch", "-q", "--depth", "1", origin, COMMIT],
            [*git, "checkout", "-q", "FETCH_HEAD"],
        ):
            subprocess.run(
                command, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL, capture_output=True
            )
    except (subprocess.SubprocessError, OSError):
        raise Missing(f"the TCK can't be fetched from {origin}; TURRET_A2A_TCK names a clone") from None
    (place / "done").touch()
    return place


def _run(command: list[str], place: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=place,
        env={**os.environ, "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def main() -> int:
    """A2A's judges alone."""
    found = list(verdicts())
    for verdict in found:
        verdict.tell()
        for remark in verdict.remarks:
            print(f"     {remark}")
    return int(not all(verdict.good for verdict in found))


if __name__ == "__main__":
    sys.exit(main())
