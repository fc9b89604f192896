"""The benchmark of dealers, end to end for a moment. No time is asserted."""

import json

import pytest

from bench import dealers
from bench.kit.parties import Line

FIGURES = (
    "envelopes_per_s", "verifications_per_s", "ratio_to_verify", "p50_ms", "p99_ms", "cpu_us_per_envelope", "rss_mib",
)  # fmt: skip


def test_a_short_run_has_every_figure_and_its_transcripts_are_proven(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        dealers.main(
            ["--seconds", "0.3", "--conversations", "4", "--dealers", "4", "--rate", "30%", "--json"]
        )
        == 0
    )
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["ok"] is True
    assert report["errors"] == []
    assert all(report[name] > 0 for name in FIGURES)
    assert (report["conversations"], report["dealers"], report["loop"]) == (4, 4, "open")
    assert report["lag_p99_ms"] >= 0
    assert report["fsync"]["p50_ms"] > 0
    assert report["proven_envelopes"] > report["runs"][0]["envelopes"]
    assert report["closed_loop"]["envelopes_per_s"] > report["envelopes_per_s"]


def test_a_chain_that_is_not_the_signed_one_fails_the_benchmark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Line.sign

    def sign(self: Line, count: int) -> None:
        real(self, count)
        if len(self.chains) > 2:
            self.chains[2] = b"0" * 64  # as if the broker answered with another

    monkeypatch.setattr(Line, "sign", sign)
    assert dealers.main(["--seconds", "5", "--conversations", "1", "--json"]) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["ok"] is False
    assert "was due" in report["errors"][0]


def test_a_setting_that_the_broker_does_not_know_fails_clearly() -> None:
    with pytest.raises(SystemExit):
        dealers.main(["--conversations", "0"])
