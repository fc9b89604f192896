"""Servers as processes: one that does not start says why, and a broker has its limits out of the way."""

import json
import urllib.request

import pytest

from bench.kit.server import running, turret


def test_a_server_that_does_not_start_is_a_fault_that_says_why() -> None:
    with pytest.raises(RuntimeError, match="usage"), running(["bench.sdk_server", "none"]):
        pass


def test_a_setting_that_the_broker_does_not_know_is_named() -> None:
    with (
        pytest.raises(RuntimeError, match="TURRET_ACTORS_IDLES is no setting"),
        turret(settings={"actors.idles": 1}),
    ):
        pass


def test_a_broker_runs_with_raised_limits_on_a_disk_and_is_gone_after_the_block() -> None:
    with turret(settings={"actors.idle_s": 5}) as broker:
        with urllib.request.urlopen(f"{broker.http}/.well-known/turret.json") as answer:
            known = json.load(answer)
        assert known["unsafe_limits"] is True
        assert known["wire"] == broker.pk
        assert "turret_loop_lag_seconds" in broker.metrics()
        assert broker.data.is_dir()
    assert not broker.data.exists()
