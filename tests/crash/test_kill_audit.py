"""SIGKILL between a commit and the head beside the store: no damage is seen, and nothing that was answered is lost."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.wire.auditlog import Verdict, Verifier
from tests.sizes import ROOT
from tests.support.audited import kept_on_disk, serve
from tests.support.audits import WIRE


def verdict_of(directory: Path) -> Verdict:
    kept = kept_on_disk(directory)
    verifier = Verifier({WIRE.pk}, kept.head, kept.beside)
    for n, text in kept.rows.items():
        verifier.row(n, text)
    return verifier.end()


def die(directory: Path, when: str) -> None:
    """Have a broker serve there and be killed at its third row."""
    command = [sys.executable, "-m", "tests.crash.audited", str(directory), when]
    died = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()


@pytest.mark.requirement("audit.crash")
@pytest.mark.parametrize("when", ["commit", "name"])
async def test_a_broker_that_is_killed_between_commit_and_head_goes_on(
    when: str, tmp_path: Path, autojump_clock: Any
) -> None:
    die(tmp_path / "data", when)
    verdict = verdict_of(tmp_path / "data")
    assert (verdict.ok, verdict.rows) == (True, 3), verdict
    assert "is behind by 1" in verdict.remarks[0]
    await serve(tmp_path / "data", 1, "Later")
    verdict = verdict_of(tmp_path / "data")
    assert (verdict.ok, verdict.rows, verdict.remarks) == (True, 4, [])
