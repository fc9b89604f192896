"""The libraries below us: none older than the flaws that matter here, and a check that asks what is known."""

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from broker.wire.keys import SigningKey, is_acceptable_pk
from tests.sizes import ROOT

FLOORS = {"h11": "0.16", "pynacl": "1.6.2"}
"""Below these a flaw is known in what we use: requests could be smuggled; a key outside the group was taken."""


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", text)[:3])


def required() -> dict[str, str]:
    """The lower bounds of what a broker installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    return dict(line.split(">=") for line in lines)


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.partition("#")[0].strip().split("==") for line in lines]
    return {name.lower(): pin for name, pin in (pair for pair in pairs if len(pair) == 2)}


@pytest.mark.requirement("threat.known-flaw")
@pytest.mark.parametrize("name", FLOORS)
def test_no_version_with_a_known_flaw_can_be_installed(name: str) -> None:
    floor = numbers(FLOORS[name])
    for found in (required()[name], pinned()[name], version(name)):
        assert numbers(found) >= floor


@pytest.mark.requirement("threat.known-flaw")
def test_all_that_a_broker_installs_is_pinned() -> None:
    assert sorted(set(required()) - {name.replace("_", "-") for name in pinned()}) == []


@pytest.mark.requirement("threat.known-flaw")
def test_a_key_with_a_part_of_small_order_is_no_desks_key() -> None:
    """(−x, −y) is an honest key plus the point of order 2: a check of x alone takes it (libsodium before 1.0.21)."""
    p = 2**255 - 19
    for _ in range(20):
        key = int.from_bytes(bytes.fromhex(SigningKey.generate().pk), "little")
        y, sign = key % 2**255, key >> 255
        mixed = (p - y) | ((1 - sign) << 255)
        assert not is_acceptable_pk(mixed.to_bytes(32, "little").hex())


KNOWS = 'file=$2; while [ "$1" != --output ]; do shift; done\n'
TELLS = 'echo PYSEC-1 >"$2"; exit 1\n'
ANSWERS = {
    "none": (f"{KNOWS}grep -q h11==0.14.0 $file || exit 0\n{TELLS}", 0, "none is known"),
    "some": (f"{KNOWS}{TELLS}", 1, "there are some"),
    "a registry that knows nothing": ("exit 0\n", 0, "SKIPPED"),
    "no network": ("echo no route to host >&2\nexit 1\n", 0, "SKIPPED"),
    "no network any more": (f"{KNOWS}grep -q h11==0.14.0 $file || exit 1\n{TELLS}", 0, "SKIPPED"),
}


@pytest.mark.requirement("threat.known-flaw")
@pytest.mark.parametrize("case", ANSWERS)
def test_advisories_are_told_and_what_can_not_be_known_is_skipped_aloud(tmp_path: Path, case: str) -> None:
    program, code, words = ANSWERS[case]
    audit = tmp_path / "pip-audit"
    audit.write_text(f"#!/bin/sh\n{program}")
    audit.chmod(0o755)
    ran = advisories({"PIP_AUDIT": str(audit)})
    assert ran.returncode == code
    assert words in ran.stdout
    assert ("PYSEC-1" in ran.stdout) is (case == "some")


@pytest.mark.requirement("threat.known-flaw")
def test_without_the_program_it_is_skipped_aloud(tmp_path: Path) -> None:
    if (ROOT / ".venv" / "bin" / "pip-audit").exists():
        pytest.skip("it is there")
    for name in ("sh", "dirname", "mktemp", "timeout", "rm", "tail", "cut", "cat"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    ran = advisories({"PATH": str(tmp_path)}, PIP_AUDIT="")
    assert (ran.returncode, "SKIPPED" in ran.stdout) == (0, True)


def advisories(environment: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("sh") or "sh", str(ROOT / ".ci" / "advisories")]
    given = {"PATH": "/usr/bin:/bin", **environment, **more}
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=30, check=False)
