"""What is read of the TCK's report, and what is said where it can't be had."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import a2a_judges
from tests.conformance.judges import Missing

REPORT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.core.TestGood" name="test_a[jsonrpc]"/>
<testcase classname="tests.core.TestGood" name="test_a[grpc]"><skipped message="no"/></testcase>
<testcase classname="tests.core.TestMessageResponse" name="test_b"><failure message="bare"/></testcase>
{more}</testsuite></testsuites>"""


def test_what_is_skipped_or_apart_is_not_scored() -> None:
    verdict = a2a_judges.judge("kit", "MUST", REPORT.format(more=""))
    assert (verdict.good, verdict.passed, verdict.total) == (True, 1, 1)
    assert verdict.remarks[0].startswith("TestMessageResponse.test_b: not scored: ")
    assert verdict.remarks[1].startswith("1 tests ")


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_what_fails_is_a_fault(kind: str) -> None:
    more = f'<testcase classname="x.TestBad" name="test_c"><{kind} message="no\n  way"/></testcase>'
    verdict = a2a_judges.judge("kit", "MUST", REPORT.format(more=more))
    assert not verdict.good
    assert verdict.faults == ("TestBad.test_c: no way",)


def test_where_the_kit_cant_be_had_the_run_says_so(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("TURRET_JUDGES", str(tmp_path))
    monkeypatch.setenv("TURRET_A2A_TCK", str(tmp_path / "nowhere"))
    with pytest.raises(Missing, match="nowhere"):
        a2a_judges._source()
    verdict = a2a_judges.kit("http://127.0.0.1:9/a2a/ag_1", "must")
    assert verdict.good
    assert "can't be fetched" in verdict.skipped

    def fails(*_: Any, **__: Any) -> None:
        raise subprocess.SubprocessError

    monkeypatch.setattr(subprocess, "run", fails)
    assert "could not be installed" in a2a_judges.client("http://127.0.0.1:9", "token").skipped
