"""The measurement of MCP measures: all servers, both eras, each answer checked. No time is asserted."""

import json

import pytest

from bench import mcp
from bench.load import ERAS
from bench.mcp import OURS, SDK, Run


def test_a_tiny_run_has_a_figure_for_each_server_and_era(capsys: pytest.CaptureFixture[str]) -> None:
    assert mcp.main(["--json", "--seconds", "0.05", "--runs", "1"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out.splitlines()[-1])
    assert {(each["server"], each["era"]) for each in report["figures"]} == {
        (server, era) for server in (OURS, *SDK) for era in ERAS
    }
    assert all(each["calls_per_s"] > 0 for each in report["figures"])
    assert "run 1/1" in said.err
    assert "python -m bench.mcp --json" in report["command"]


def test_cpu_is_the_least_of_the_runs_and_speed_their_median() -> None:
    ours = [Run(100, 1.0, 0.02), Run(300, 1.0, 0.03), Run(200, 1.0, 0.08)]
    found = {(OURS, ERAS[0]): ours, (mcp.YARDSTICK, ERAS[0]): [Run(100, 1.0, 0.04)]}
    figure, base = mcp.figures(found)
    assert (figure.cpu_us, figure.cpu_us_median, figure.calls_per_s) == (100.0, 200.0, 200.0)
    assert (figure.cpu_ratio, figure.calls_ratio) == (4.0, 2.0)
    assert (base.cpu_ratio, base.calls_ratio) == (1.0, 1.0)
