"""The benchmark of dealers, end to end for a moment. No time is asserted."""

import json
from typing import Any

import pytest

from bench import dealers, noisy, ring
from bench.kit.parties import Line
from bench.kit.run import Measured
from bench.kit.server import turret

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


def test_the_public_port_is_measured_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert dealers.main(["--seconds", "0.2", "--conversations", "2", "--ws", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["port"], report["loop"], report["errors"]) == ("ws", "closed", [])
    assert report["envelopes_per_s"] > 0


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


def test_a_broker_that_does_not_start_is_said_in_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURRET_LIMITS_RINGZ", "1")
    assert dealers.main(["--json"]) == 2
    assert "TURRET_LIMITS_RINGZ is no setting" in capsys.readouterr().err


def test_rings_and_noise_are_measured() -> None:
    with turret() as broker:
        rung = ring.measure(broker.dealing, times=3)
        assert (rung["ok"], rung["calls"]) == (True, 3)
        assert rung["ring_p50_ms"] > 0
        field = dealers.Field(broker.dealing, 2, 4)
        measured = Measured(broker, field.load, 2)
        found = noisy.measure(measured, broker.dealing, rate=50.0, seconds=0.4, runs=1)
        assert set(found["noise"]) == set(noisy.KINDS)
        assert found["p99_ratio"] > 0
        assert field.check() == []
        field.close()


def test_dealers_are_paired_with_all_others_and_never_with_themselves() -> None:
    field = object.__new__(dealers.Field)
    dealers_: Any = list("abcde")
    field.dealers = dealers_
    pairs = {field._pair(at) for at in range(6)}
    assert pairs == {(one, other) for one in dealers_[:2] for other in dealers_[2:]}
