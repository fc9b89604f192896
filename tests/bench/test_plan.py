"""The benchmark of plans, for a moment. No time is asserted."""

import json

import pytest

from bench import plan


def test_a_tiny_run_has_every_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main(["--ticks", "50", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(report["plans"]) == list(plan.PLANS)
    assert all(0 < row["steps"] <= report["most_steps"] for row in report["plans"].values())
