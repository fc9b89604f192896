"""The benchmark of overload, for a moment. No time is asserted."""

import json

import pytest

from bench import overload
from bench.kit.server import turret
from bench.kit.websocket import Lost
from bench.overload import Storm, judge

GOOD = {
    "normal_p99_ms": 10.0,
    "accepted_p99_ms": 49.0,
    "refused_p99_ms": 40.0,
    "recovered_s": 0.5,
    "rss_grown_mib": 5.0,
    "spent": False,
}


def test_a_tiny_run_has_all_figures_and_proves_what_was_accepted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("RECOVERY_S", 1.0), ("PROBE_S", 0.2), ("BEFORE_S", 0.3)):
        monkeypatch.setattr(overload, name, seconds)  # so much is signed ahead
    given = ["--seconds", "0.4", "--measure-s", "0.2", "--conversations", "32", "--dealers", "8", "--json"]
    overload.main(given)
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["errors"] == []
    assert report["due_per_s"] > report["sustained_per_s"] * 2.5
    assert report["accepted_per_s"] > 0
    assert report["accepted_p99_ms"] >= report["accepted_p50_ms"] > 0
    assert report["rss_before_mib"] > 0


def test_what_is_missed_is_named() -> None:
    assert judge(GOOD) == []
    for name, value in (
        ("accepted_p99_ms", 51.0),
        ("refused_p99_ms", 101.0),
        ("recovered_s", 5.5),
        ("rss_grown_mib", 201.0),
        ("spent", True),
    ):
        assert len(judge({**GOOD, name: value})) == 1, name


def test_another_answer_than_an_overload_fails_and_a_refused_envelope_is_sent_again() -> None:
    with turret(settings={"actors.late_s": 0.005}) as broker:
        storm = Storm(broker.dealing, 2, 2)
        try:
            storm.open()
            storm.sign(3)
            talk = storm.talks[0]
            storm._flood = overload.Flood([], [], {}, 0, 0, 1.0, False)
            again = b'{"jsonrpc":"2.0","id":%d,"error":{"data":{"code":"overloaded","retry_after_ms":9}}}'
            n = talk.next
            talk.sent_at = 1.0
            storm._answer(again % (talk.line.index << 24 | n))
            assert (talk.next, talk.sent_at, storm._flood.codes) == (n, 0.0, {"overloaded": 1})
            talk.sent_at = 1.0
            with pytest.raises(Lost):
                storm._answer((again % (talk.line.index << 24 | n)).replace(b"overloaded", b"conflict"))
            storm._all(storm.talks)
            assert [talk.next for talk in storm.talks] == [n + 1, n + 1]
        finally:
            storm.close()
