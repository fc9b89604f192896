"""Signing in, as others see it: the suite's authorization scenarios, the TypeScript clients, and an outside issuer."""

import json
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import httpx

from tests.conformance.judges import CLIENT_V1, CLIENT_V2, ISSUER, NEWEST, Judges
from tests.conformance.person import Person
from tests.conformance.servers import serving
from tests.conformance.suites import judge, read_checks
from tests.conformance.verdict import Verdict

RUN_S: Final = 30.0
SCRIPTS: Final = Path(__file__).parent / "typescript"
SCENARIOS: Final = ["authorization-server-metadata-endpoint", "authorization-code-grant"]


def verdicts(judges: Judges) -> Iterator[Verdict]:
    """All of them, each as it is done, on a broker of their own."""
    with serving("gateways.cli") as broker:
        person = Person(broker["http"])
        yield authorization(judges, broker["http"], person)
        for package, script in ((CLIENT_V1, "oauth_v1.mjs"), (CLIENT_V2, "oauth_v2.mjs")):
            yield typescript(judges, broker["http"], person, package, script)
        person.close()
    yield outside(judges)


def authorization(judges: Judges, origin: str, person: Person) -> Verdict:
    """The suite's scenarios for authorization servers, with a person in front of the consent page."""
    port = free_port()
    redirect = f"http://127.0.0.1:{port}/callback"
    metadata = {"redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
    client = httpx.post(f"{origin}/oauth/register", json=metadata, trust_env=False).json()["client_id"]
    options = [
        "authorization",
        "--url",
        origin,
        "--client-id",
        client,
        "--resource",
        f"{origin}/mcp",
        "--port",
        str(port),
    ]
    with tempfile.TemporaryDirectory() as folder:
        command = [judges.node, str(judges.at(NEWEST, "dist", "index.js")), *options, "-o", folder]
        said = _with_person(command, folder, person, origin)
        found = read_checks(Path(folder))
    if not found:
        return Verdict(judge=NEWEST, what="authorization", passed=0, total=0, faults=(said[-2000:],))
    return judge(NEWEST, ["authorization"], found, SCENARIOS)


def typescript(judges: Judges, origin: str, person: Person, package: str, script: str) -> Verdict:
    """A client with nothing but the URL of a face."""
    scripts = judges.at(package).parents[2] / "scripts"
    shutil.copytree(SCRIPTS, scripts, dirs_exist_ok=True)
    faces = ("/mcp/network", "/mcp/arena")
    faults = []
    for face in faces:
        with tempfile.TemporaryDirectory() as home:
            command = [judges.node, str(scripts / script), origin + face, str(free_port())]
            said = _with_person(command, home, person, origin)
        last = said.strip().splitlines()[-1] if said.strip() else ""
        if not last.startswith('{"tools"'):
            faults.append(f"{face}: {said[-1500:]}")
    return Verdict(
        judge=package,
        what="signs in with nothing but the URL: " + ", ".join(faces),
        passed=len(faces) - len(faults),
        total=len(faces),
        unit="sign-ins",
        faults=tuple(faults),
    )


def outside(judges: Judges) -> Verdict:
    """Tokens of an outside issuer, which the broker verifies by its keys."""
    scripts = judges.at(ISSUER).parents[1] / "scripts"
    shutil.copytree(SCRIPTS, scripts, dirs_exist_ok=True)
    faults = []
    with (
        _issuing([judges.node, str(scripts / "issuer.mjs")]) as (issuer, make),
        serving("gateways.cli", TURRET_ISSUER=issuer) as broker,
    ):
        here, elsewhere = f"{broker['http']}/mcp/network", "https://elsewhere.example/mcp"
        good = {"aud": here, "sub": "somebody", "scope": "message"}
        asked = [
            ("a good one", good, 200),
            ("another resource", {**good, "aud": elsewhere}, 401),
            ("another issuer", {**good, "iss": elsewhere}, 401),
            ("over", {**good, "exp": 1}, 401),
            ("no scope of the face", {**good, "scope": "arena"}, 403),
        ]
        for what, claims, expect in asked:
            status = _list_tools(here, make(claims))
            if status != expect:
                faults.append(f"{what}: {status}, not {expect}")
    return Verdict(
        judge=ISSUER,
        what="tokens of an outside issuer at /mcp/network",
        passed=len(asked) - len(faults),
        total=len(asked),
        unit="tokens",
        faults=tuple(faults),
    )


def free_port() -> int:
    """A port of loopback where, a moment ago, nobody listened."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _list_tools(url: str, token: str) -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    shown = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    return httpx.post(url, json=body, headers=shown, trust_env=False, timeout=10).status_code


def _with_person(command: list[str], home: str, person: Person, origin: str) -> str:
    """Run a program; where it prints a URL of the broker's, the person goes there. What it printed."""
    process = subprocess.Popen(
        command,
        env={"HOME": home, "PATH": str(Path(command[0]).parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    timer = threading.Timer(RUN_S, process.kill)
    timer.start()
    said = ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if line.startswith(f"{origin}/oauth/authorize?"):
                said += f"{person.allow(line.strip()).partition('?')[0]}\n"
        process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    return said


@contextmanager
def _issuing(command: list[str]) -> Iterator[tuple[str, Any]]:
    """An issuer in a process of its own: its URL, and a function that makes a token with some claims."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"HOME": "/nowhere"}
    )
    assert process.stdin is not None
    assert process.stdout is not None
    line_in: IO[str] = process.stdin
    line_out: IO[str] = process.stdout

    def make(claims: dict[str, Any]) -> str:
        line_in.write(json.dumps(claims) + "\n")
        line_in.flush()
        token: str = json.loads(line_out.readline())["token"]
        return token

    try:
        yield json.loads(line_out.readline())["issuer"], make
    finally:
        process.kill()
        process.wait()
        line_in.close()
        line_out.close()
