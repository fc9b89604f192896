"""The benchmark of idle sockets, with few of them for a moment. No figure is asserted that a busy machine changes."""

import json

import pytest

from bench import idle
from bench.idle import Crowd
from bench.kit.server import turret
from bench.kit.websocket import Lost, frame


def test_a_tiny_run_has_figures_of_both_kinds_and_answers_pings(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--sockets", "20", "--seconds", "1.5", "--ping-s", "0.3", "--json"]
    assert idle.main(given) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["ok"], report["errors"]) == (True, [])
    for kind in ("dealer", "plain"):
        figures = report[kind]
        assert figures["sockets"] == 20
        assert figures["pings"] >= 20 + idle.FIRST
        assert figures["connect_p99_ms"] >= figures["connect_p50_ms"] > 0
        assert figures["ask_p50_ms"] > 0
        assert 0 < figures["stop_s"] < 10


def test_a_socket_that_the_broker_cut_fails_the_benchmark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Crowd.idle

    def idle_with_a_fault(self: Crowd, seconds: float) -> list[int]:
        self.sockets[3].socket.sendall(frame(b"\xff"))  # no UTF-8: the broker ends the connection
        return real(self, seconds)

    monkeypatch.setattr(Crowd, "idle", idle_with_a_fault)
    assert idle.main(["--sockets", "5", "--kinds", "plain", "--seconds", "0.1", "--json"]) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["ok"] is False
    assert "plain: closed: 1007" in report["errors"][0]


def test_an_event_on_an_idle_socket_is_a_fault() -> None:
    with turret() as broker:
        crowd = Crowd(broker, "plain")
        crowd.open(1)
        try:
            crowd.sockets[0].socket.sendall(frame(b"{}"))
            with pytest.raises(Lost):
                crowd.idle(5.0)
        finally:
            crowd.close()


def test_more_sockets_than_files_are_refused_before_anything_is_started() -> None:
    with pytest.raises(SystemExit):
        idle.main(["--sockets", "100000000"])
